"""TokenReview over the wire, with the real server process: HTTP/1.1, HTTP/2, TLS, audiences, reasons, and its end."""

from __future__ import annotations

import json
import os
import signal
import socket
import ssl
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

import httpx2
import pytest
import yaml

from kubeauthn.testing import CertificateAuthority, Issuer
from tests.integration.serve_process import (
    PATIENCE,
    Serve,
    configuration,
    review,
    until,
    write_certificate,
)

if TYPE_CHECKING:
    pass


def test_versions_protocols_and_paths(file: Path, tmp_path: Path, token: str) -> None:
    with Serve(file, tls=tmp_path / "tls") as serve:
        serve.ready()
        for http2, version in ((False, "HTTP/1.1"), (True, "HTTP/2")):
            with serve.client(http2=http2) as client:
                for asked in ("v1", "v1beta1"):
                    for path in ("/", "/authenticate", "/?timeout=30s"):
                        answer = client.post(path, json=review(token, version=asked))
                        assert (answer.status_code, answer.http_version) == (200, version)
                        assert answer.json()["apiVersion"] == f"authentication.k8s.io/{asked}"
                        user = {"username": "jane", "groups": ["dev", "ops"]}
                        assert answer.json()["status"] == {"authenticated": True, "user": user}


def test_audiences_are_the_intersection_and_never_an_echo(file: Path, token: str) -> None:
    with Serve(file, "--api-audiences", "api,https://kubernetes.default.svc") as serve:
        serve.ready()
        assert serve.review(token, audiences=["api", "evil"])["audiences"] == ["api"]
        assert serve.review(token)["audiences"] == ["api", "https://kubernetes.default.svc"]
        assert serve.review(token, audiences=["evil"]) == {"authenticated": False}
    with Serve(file) as serve:
        serve.ready()
        assert "audiences" not in serve.review(token, audiences=["evil"])


def test_reasons_are_for_the_log_unless_they_are_asked_for(file: Path, issuer: Issuer) -> None:
    late = issuer.token("jane", audience="kubernetes", expires_in=-60)
    with Serve(file) as serve:
        serve.ready()
        with serve.client() as client:
            answer = client.post("/", json=review(late))
        assert answer.json()["status"] == {"authenticated": False}
        told = serve.said("token not authenticated")[0]
        assert told["request_id"] == answer.headers["x-request-id"]
        assert (told["outcome"], told["rule"], told["issuer"]) == ("refused", "TokenExpired", issuer.url)
        assert late.split(".")[2] not in "".join(serve.raw)
        assert late.split(".")[1] not in "".join(serve.raw)
    with Serve(file, "--show-reasons") as serve:
        serve.ready()
        assert serve.review(late) == {"authenticated": False, "error": "the token is expired"}


def test_an_issuer_that_is_down_is_no_refusal_to_remember(tmp_path: Path) -> None:
    with Issuer() as gone:
        token = gone.token("jane", audience="kubernetes")
    file = tmp_path / "authn.yaml"
    file.write_text(configuration(gone))
    with Serve(file) as serve:
        # kube-apiserver remembers what comes without an error for two minutes.
        assert serve.review(token) == {"authenticated": False, "error": "the token's issuer cannot be reached"}
        with serve.client() as client:
            answer = client.get("/readyz")
            assert answer.status_code == 503
            assert f"[-]issuer {gone.url} failed" in answer.text
            assert client.get("/livez").status_code == 200


def test_a_new_key_that_cannot_be_asked_for_yet_is_no_refusal_to_remember(tmp_path: Path) -> None:
    with Issuer() as issuer:
        file = tmp_path / "authn.yaml"
        file.write_text(configuration(issuer))
        claims = {"iss": issuer.url, "aud": "kubernetes", "sub": "jane", "exp": int(time.time()) + 600}
        with Serve(file) as serve:
            serve.ready()
            assert serve.review(issuer.token("jane", audience="kubernetes"))["authenticated"]
            assert serve.review(issuer.sign(claims, headers={"kid": "made-up"})) == {"authenticated": False}
            issuer.rotate()
            newer = serve.review(issuer.token("jane", audience="kubernetes"))
            assert newer == {"authenticated": False, "error": "the token's signature cannot be verified"}


def test_any_issuer_is_enough_where_the_policy_says_so(issuer: Issuer, tmp_path: Path) -> None:
    with Issuer() as gone:
        sick = configuration(gone).partition("jwt:\n")[2]
    file = tmp_path / "authn.yaml"
    file.write_text(configuration(issuer) + sick)
    with Serve(file, "--ready-policy", "any") as serve:
        serve.ready()
        with serve.client() as client:
            shown = client.get("/readyz?verbose").text
    assert f"[+]issuer {issuer.url} ok" in shown
    assert f"[-]issuer {gone.url} failed" in shown


def test_a_unix_socket(file: Path, tmp_path: Path, token: str) -> None:
    path = tmp_path / "s"
    with Serve(file, "--listen", f"unix:{path}") as serve:

        def asked() -> bool:
            with serve.client(transport=httpx2.HTTPTransport(uds=str(path))) as client:
                answer = client.post("/", json=review(token))
            return bool(answer.json()["status"]["authenticated"])

        until(asked, "an answer over the socket")
    assert not path.exists()


def test_self_signed_prints_what_kube_apiserver_wants(file: Path, tmp_path: Path, token: str) -> None:
    with Serve(file, "--self-signed") as serve:
        until(lambda: "current-context" in "".join(serve.stdout), "the kubeconfig")
        cluster = yaml.safe_load("".join(serve.stdout))["clusters"][0]["cluster"]
        assert cluster["server"] == f"{serve.address}/authenticate"
        import base64

        authority = base64.b64decode(cluster["certificate-authority-data"]).decode()
        context = ssl.create_default_context(cadata=authority)
        with httpx2.Client(verify=context, timeout=PATIENCE) as client:
            assert client.post(cluster["server"], json=review(token)).json()["status"]["authenticated"] is True


def test_client_certificates(file: Path, tmp_path: Path, token: str) -> None:
    clients = CertificateAuthority("clients")
    (tmp_path / "clients.pem").write_bytes(clients.certificate_pem)
    with Serve(file, "--client-ca", str(tmp_path / "clients.pem"), tls=tmp_path / "tls") as serve:
        context = serve.ca.client_context()
        clients.issue_client("kube-apiserver").load_into(context)
        with serve.client(verify=context) as client:
            until(lambda: client.get("/readyz").status_code == 200, "keys")
            assert client.post("/", json=review(token)).json()["status"]["authenticated"] is True
        for stranger in (None, CertificateAuthority("others").issue_client("kube-apiserver")):
            context = serve.ca.client_context()
            if stranger is not None:
                stranger.load_into(context)
            with serve.client(verify=context) as client, pytest.raises(httpx2.TransportError):
                client.post("/", json=review(token))


def served_certificate(serve: Serve) -> bytes:
    host, port = serve.address.removeprefix("https://").split(":")
    with socket.create_connection((host, int(port)), timeout=PATIENCE) as connection:
        with serve.ca.client_context().wrap_socket(connection, server_hostname=host) as wrapped:
            return wrapped.getpeercert(binary_form=True) or b""


def workers(serve: Serve) -> set[str]:
    """Their process ids."""
    process = serve.process.pid
    children = Path(f"/proc/{process}/task/{process}/children").read_text().split()
    found = set()
    for child in children:
        with suppress(FileNotFoundError, ProcessLookupError):  # one that ends just now
            if b"resource_tracker" not in Path(f"/proc/{child}/cmdline").read_bytes():
                found.add(child)
    return found


def settled(serve: Serve) -> bool:
    """Nobody came or went for as long as a change of the files can take to be seen, and twice that."""
    now = workers(serve)
    deadline = time.monotonic() + 6
    while time.monotonic() < deadline:
        if workers(serve) != now:
            return False
        time.sleep(0.2)
    return len(now) == 2


def test_a_new_certificate_is_used_and_no_request_is_lost(file: Path, tmp_path: Path, token: str) -> None:
    with Serve(file, "--workers", "2", tls=tmp_path / "tls") as serve:
        serve.ready()
        before, old_workers = served_certificate(serve), workers(serve)
        new = write_certificate(serve.ca, tmp_path / "tls")
        assert before != new

        def changed() -> bool:
            # Every one of these is a connection of its own, and each must be answered.
            assert serve.review(token)["authenticated"] is True
            return all(served_certificate(serve) == new for _ in range(5))

        until(changed, "the new certificate", 60)
        until(lambda: not old_workers & workers(serve) and settled(serve), "every old worker is gone", 60)
        (tmp_path / "tls" / "tls.crt").write_text("no certificate")
        serve.said("the new certificate is not used")
        assert {served_certificate(serve) for _ in range(10)} == {new}


def test_the_end_waits_for_requests_under_way(file: Path, token: str) -> None:
    with Serve(file, "--grace-period", "20") as serve:
        serve.ready()
        body = json.dumps(review(token)).encode()
        host, port = serve.address.removeprefix("http://").split(":")
        head = f"POST / HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\ncontent-length: {len(body)}\r\n\r\n"
        with socket.create_connection((host, int(port)), timeout=PATIENCE) as connection:
            connection.sendall(head.encode() + body[:20])
            until(lambda: "kubeauthn_workers 1" in serve.metrics(), "the request has arrived before this one")
            os.kill(serve.process.pid, signal.SIGTERM)
            until(lambda: not _accepts(host, int(port)), "the door is shut")
            connection.sendall(body[20:])
            assert b'"authenticated":true' in connection.recv(65536)
        assert serve.process.wait(PATIENCE) == 0


def test_the_end_waits_no_longer_than_the_grace_time(file: Path, token: str) -> None:
    with Serve(file, "--grace-period", "1") as serve:
        serve.ready()
        host, port = serve.address.removeprefix("http://").split(":")
        with socket.create_connection((host, int(port)), timeout=PATIENCE) as connection:
            connection.sendall(b"POST / HTTP/1.1\r\nhost: x\r\ncontent-length: 100\r\n\r\n{")
            until(lambda: "kubeauthn_workers 1" in serve.metrics(), "the request has arrived before this one")
            os.kill(serve.process.pid, signal.SIGTERM)
            try:
                told = connection.recv(65536)
            except ConnectionResetError:
                told = b""
            assert told == b"", "nobody waited until the body was too late, which is told as 408"
        serve.process.wait(PATIENCE)


def _accepts(host: str, port: int) -> bool:
    try:
        socket.create_connection((host, port), timeout=1).close()
    except OSError:
        return False
    return True


def test_kept_keys_serve_after_a_restart_while_the_issuer_is_down(tmp_path: Path) -> None:
    file, kept = tmp_path / "authn.yaml", tmp_path / "keys"
    with Issuer() as gone:
        file.write_text(configuration(gone))
        token = gone.token("jane", audience="kubernetes")
        with Serve(file, "--keep-keys", str(kept)) as serve:
            serve.ready()
            until(lambda: list(kept.glob("*.json")), "keys on disk")
    with Serve(file, "--keep-keys", str(kept)) as serve:
        assert serve.review(token)["authenticated"] is True
        with serve.client() as client:
            assert "with kept keys" in client.get("/readyz?verbose").text
    path = next(kept.glob("*.json"))
    path.write_text(json.dumps(json.loads(path.read_text()) | {"fetchedAt": time.time() - 3 * 3600}))
    with Serve(file, "--keep-keys", str(kept), "--keep-keys-hours", "2") as serve:
        assert serve.review(token)["authenticated"] is False


def test_explain_is_there_when_it_is_switched_on_and_not_through_a_proxy(file: Path, token: str) -> None:
    with Serve(file, "--debug-explain") as serve:
        serve.ready()
        with serve.client() as client:
            answer = client.post("/debug/explain", content=token)
            assert (answer.status_code, answer.json()["verdict"]) == (200, "authenticated")
            assert token.split(".")[2] not in answer.text
            # The second is what a proxy sends that appends the address to what its client said: no text at all.
            for said in (b"127.0.0.1", b"\xff, 192.0.2.1"):
                proxied = client.post("/debug/explain", content=token, headers={b"x-forwarded-for": said})
                assert proxied.status_code == 404
            # A page under a name that leads to this machine: a browser says so, and nobody else does.
            for name in ("Origin", "Referer", "Sec-Fetch-Site"):
                browsed = client.post("/debug/explain", content=token, headers={name: "http://rebound.test"})
                assert browsed.status_code == 404, name


@pytest.mark.parametrize(
    ("options", "code", "text"),
    [
        (["--listen", "0.0.0.0:0"], 2, "tokens do not travel in the clear"),
        (["--listen", "nonsense"], 2, "--listen expects HOST:PORT or unix:PATH"),
        (["--tls-cert", "x"], 2, "--tls-cert and --tls-key belong together"),
        (["--client-ca", "x"], 2, "--client-ca needs TLS"),
        (["--listen", "127.0.0.1:" + "9" * 5000], 2, "--listen expects HOST:PORT or unix:PATH"),
        (["--workers", "0"], 2, "--workers expects"),
        (["--grace-period", "9" * 20], 2, "--grace-period expects"),
        (["--keep-keys-hours", "nan"], 2, "--keep-keys-hours expects"),
        (["--assertion-seconds", "nan"], 2, "an assertion has"),
        (["--assertion-seconds", "inf"], 2, "an assertion has"),
        # A variable in a script that nobody set: the check that it stands for must not be left out silently.
        (["--tls-cert", "", "--tls-key", ""], 2, "argument --tls-cert: expected a value"),
        (["--client-ca="], 2, "argument --client-ca: expected a value"),
        (["--api-audiences", ""], 2, "argument --api-audiences: expected a value"),
        (["--api-audiences", " , "], 2, "argument --api-audiences: expected a value"),
        (["--revocation-file", ""], 2, "argument --revocation-file: expected a value"),
        (["--audit-log", ""], 2, "argument --audit-log: expected a value"),
        (["--tls-cert", "/nowhere", "--tls-key", "/nowhere"], 4, "/nowhere"),
    ],
)
def test_what_cannot_work_is_told_at_the_start(file: Path, options: list[str], code: int, text: str) -> None:
    command = [sys.executable, "-m", "kubeauthn", "serve", str(file), *options]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE, check=False)
    assert (ended.returncode, text in ended.stderr) == (code, True), ended.stderr


def test_a_file_with_a_fault_is_not_served(tmp_path: Path) -> None:
    (tmp_path / "authn.yaml").write_text("jwt: [")
    command = [sys.executable, "-m", "kubeauthn", "serve", str(tmp_path / "authn.yaml")]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE, check=False)
    assert ended.returncode == 4
    assert ended.stderr.startswith("error: ")
    assert "Traceback" not in ended.stderr
