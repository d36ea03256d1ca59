"""`kubeauthn serve` and its certificate: what was checked is what workers get, whatever becomes of the files."""

from __future__ import annotations

import json
import os
import signal
import socket
import ssl
import subprocess
import sys
import time
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec

from kubeauthn.testing import CertificateAuthority
from tests.integration.container_image import why_not
from tests.integration.serve_process import PATIENCE, Serve, review, until, write_certificate

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="looks at processes as Linux shows them")


@pytest.fixture
def scratch(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where temporary files of the server would be."""
    directory = tmp_path / "scratch"
    directory.mkdir()
    for name in ("TMPDIR", "TEMP", "TMP"):
        monkeypatch.setenv(name, str(directory))
    return directory


def served(serve: Serve) -> bytes:
    """The certificate that a new connection is shown. One try: no handshake is cut."""
    host, port = serve.address.removeprefix("https://").split(":")
    with socket.create_connection((host, int(port)), timeout=PATIENCE) as connection:
        with serve.ca.client_context().wrap_socket(connection, server_hostname=host) as wrapped:
            return wrapped.getpeercert(binary_form=True) or b""


def break_files(directory: Path) -> None:
    for name in ("tls.crt", "tls.key"):
        (directory / name).write_text("-----BEGIN NOTHING-----\n")


def all_replaced(serve: Serve, before: set[int], count: int) -> bool:
    now = set(serve.workers())
    return len(now) == count and not before & now


def answers(serve: Serve, token: str) -> bool:
    assert serve.process.poll() is None, "".join(serve.raw)
    assert serve.review(token)["authenticated"] is True
    return True


def test_files_that_break_while_workers_are_replaced_change_nothing(
    file: Path, tmp_path: Path, token: str, scratch: Path
) -> None:
    tls = tmp_path / "tls"
    with Serve(file, "--workers", "2", tls=tls) as serve:
        serve.ready()
        before = set(serve.workers())
        new = write_certificate(serve.ca, tls)
        serve.said("the certificate changed: workers are replaced, one after the other")
        break_files(tls)
        until(lambda: answers(serve, token) and all_replaced(serve, before, 2), "both workers are new", 60)
        assert {served(serve) for _ in range(20)} == {new}
        serve.said("the new certificate is not used")
        assert list(scratch.iterdir()) == []
    assert serve.process.returncode == 0


def test_a_worker_that_dies_while_the_files_are_broken_comes_back_with_the_good_pair(
    file: Path, tmp_path: Path, token: str
) -> None:
    tls = tmp_path / "tls"
    with Serve(file, tls=tls) as serve:
        serve.ready()
        good = served(serve)
        break_files(tls)
        serve.said("the new certificate is not used")
        before = set(serve.workers())
        os.kill(before.pop(), signal.SIGKILL)
        until(lambda: all_replaced(serve, before, 1) and answers(serve, token), "a new worker")
        assert {served(serve) for _ in range(5)} == {good}
    assert serve.process.returncode == 0


def test_a_worker_that_dies_right_after_it_was_replaced_is_no_crash_loop(
    file: Path, tmp_path: Path, token: str
) -> None:
    tls = tmp_path / "tls"
    with Serve(file, tls=tls) as serve:
        serve.ready()
        before = set(serve.workers())
        new = write_certificate(serve.ca, tls)
        until(lambda: all_replaced(serve, before, 1), "the worker is new", 60)
        break_files(tls)
        [young] = serve.workers()
        os.kill(young, signal.SIGKILL)
        until(lambda: all_replaced(serve, {*before, young}, 1) and answers(serve, token), "a new worker")
        assert served(serve) == new


def end_told(serve: Serve) -> float:
    lines = [line for line in serve.metrics().splitlines() if line.startswith("kubeauthn_certificate_expiry")]
    [line] = lines
    return float(line.split()[1])


def test_a_certificate_that_has_expired_does_not_replace_one_that_has_not(file: Path, tmp_path: Path) -> None:
    """An old one put back by mistake on a Friday: every client would refuse the connection."""
    now = datetime.now(UTC)
    with Serve(file, tls=tmp_path / "tls") as serve:
        before, workers, ends = served(serve.ready()), serve.workers(), end_told(serve)
        assert ends > now.timestamp()
        write_certificate(serve.ca, tmp_path / "tls", not_after=now - timedelta(minutes=1))
        assert serve.said("the new certificate is not used")[0]["reason"].endswith(": has expired")
        assert (served(serve), serve.workers(), end_told(serve)) == (before, workers, ends)
        soon = (now + timedelta(hours=2)).replace(microsecond=0)
        expected = write_certificate(serve.ca, tmp_path / "tls", not_after=soon)
        until(lambda: served(serve) == expected, "the next one is used")
        assert end_told(serve) == soon.timestamp()


def pair_on_p521(directory: Path) -> None:
    """A pair that OpenSSL takes and the server's TLS library does not."""
    key = ec.generate_private_key(ec.SECP521R1())
    (directory / "tls.key").write_bytes(
        key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    )
    made = ["openssl", "req", "-x509", "-new", "-subj", "/CN=x", "-key", str(directory / "tls.key")]
    subprocess.run([*made, "-out", str(directory / "tls.crt")], check=True, capture_output=True)
    ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER).load_cert_chain(directory / "tls.crt", directory / "tls.key")


def test_a_key_that_workers_could_not_use_is_found_before_they_are_replaced(
    file: Path, tmp_path: Path, token: str
) -> None:
    tls = tmp_path / "tls"
    with Serve(file, tls=tls) as serve:
        serve.ready()
        good, before = served(serve), serve.workers()
        pair_on_p521(tls)
        lines = serve.said("the new certificate is not used")
        until(lambda: "is taken" in serve.said("the new certificate is not used")[-1]["reason"], str(lines))
        assert (served(serve), serve.workers()) == (good, before)
        assert "panicked" not in "".join(serve.raw)


def test_a_key_that_workers_could_not_use_is_told_at_the_start(file: Path, tmp_path: Path) -> None:
    pair_on_p521(tmp_path)
    files = ["--tls-cert", str(tmp_path / "tls.crt"), "--tls-key", str(tmp_path / "tls.key")]
    command = [sys.executable, "-m", "kubeauthn", "serve", str(file), "--listen", "127.0.0.1:0", *files]
    result = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE)
    assert result.returncode == 4
    assert result.stderr.startswith(f"error: certificate {files[1]} and key {files[3]}: ")
    assert result.stderr.count("\n") == 2, "the error and its hint"


def test_a_key_that_was_made_here_is_in_no_file(file: Path, scratch: Path, token: str) -> None:
    with Serve(file, "--self-signed", "--workers", "2") as serve:
        until(lambda: "current-context" in "".join(serve.stdout), "the kubeconfig")
        until(lambda: len(serve.workers()) == 2, "both workers")
        assert list(scratch.rglob("*")) == []
        serve.process.kill()
    assert list(scratch.rglob("*")) == []


def test_the_client_ca_is_read_again_too(file: Path, tmp_path: Path) -> None:
    first, second = CertificateAuthority("first"), CertificateAuthority("second")
    authority = tmp_path / "clients.pem"
    authority.write_bytes(first.certificate_pem)
    with Serve(file, "--client-ca", str(authority), tls=tmp_path / "tls") as serve:
        context = serve.ca.client_context()
        second.issue_client("kube-apiserver").load_into(context)

        def admitted() -> bool:
            import httpx2

            with serve.client(verify=context) as client:
                try:
                    return client.get("/livez").status_code == 200
                except httpx2.TransportError:
                    return False

        assert not admitted()
        authority.write_bytes(second.certificate_pem)
        until(admitted, "a client of the new authority", 60)


@pytest.mark.parametrize("pause", ["in the handshake", "before the request"])
def test_a_worker_that_ends_lets_a_new_connection_say_what_it_wants(
    file: Path, tmp_path: Path, token: str, pause: str
) -> None:
    with Serve(file, "--workers", "2", tls=tmp_path / "tls") as serve:
        serve.ready()
        host, port = serve.address.removeprefix("https://").split(":")
        incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
        session = serve.ca.client_context().wrap_bio(incoming, outgoing, server_hostname=host)
        with socket.create_connection((host, int(port)), timeout=PATIENCE) as connection:

            def step(action: Callable[[], bytes | None]) -> bytes | None:
                while True:
                    try:
                        return action()
                    except ssl.SSLWantReadError:
                        connection.sendall(outgoing.read())
                        received = connection.recv(65536)
                        assert received, "cut"
                        incoming.write(received)
                    finally:
                        connection.sendall(outgoing.read())

            if pause == "in the handshake":
                with pytest.raises(ssl.SSLWantReadError):
                    session.do_handshake()
                connection.sendall(outgoing.read())
                incoming.write(connection.recv(65536))
            else:
                step(session.do_handshake)
            for worker in serve.workers():  # it is with one of them
                os.kill(worker, signal.SIGTERM)
            time.sleep(0.3)
            step(session.do_handshake)
            body = json.dumps(review(token)).encode()
            head = (
                f"POST / HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\ncontent-length: {len(body)}\r\n\r\n"
            )
            session.write(head.encode() + body)
            assert b'"authenticated":true' in (step(lambda: session.read(65536)) or b"")


def test_a_worker_that_ends_takes_no_more_connections(file: Path, tmp_path: Path, token: str) -> None:
    """They wait for the one that comes after it, and none is lost."""
    with Serve(file, tls=tmp_path / "tls") as serve:
        serve.ready()
        [old] = serve.workers()
        with serve.client() as kept:
            assert kept.get("/livez").status_code == 200  # so that it goes on for a moment
            os.kill(old, signal.SIGTERM)
            until(lambda: answers(serve, token) and old not in serve.workers(), "another worker")
            for _ in range(20):
                assert answers(serve, token)


def test_a_system_that_shows_no_descriptors_is_named_and_not_the_file(tmp_path: Path) -> None:
    if reason := why_not():
        pytest.skip(reason)
    write_certificate(CertificateAuthority(), tmp_path)
    script = 'mount -t tmpfs tmpfs /proc && exec "$@"'  # /dev/fd leads there too
    serve = [sys.executable, "-m", "kubeauthn", "serve", str(tmp_path / "authn.yaml"), "--listen", "127.0.0.1:0",
             "--tls-cert", str(tmp_path / "tls.crt"), "--tls-key", str(tmp_path / "tls.key")]  # fmt: skip
    done = subprocess.run(["unshare", "--mount", "--propagation", "private", "sh", "-c", script, "sh", *serve],
                          capture_output=True, text=True, timeout=PATIENCE, check=False)  # fmt: skip
    assert "neither /proc/self/fd nor /dev/fd" in done.stderr
    assert "no such file" not in done.stderr.lower()
    assert done.returncode not in (0, 1)
