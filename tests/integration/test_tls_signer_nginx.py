"""The external key against a server that is not ours: nginx asks for the certificate and says whom it saw."""

from __future__ import annotations

import socket
import ssl
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from http.client import HTTPSConnection
from pathlib import Path

import pytest

from kubeauthn.client import signing_context
from kubeauthn.errors import SigningFailed
from kubeauthn.testing import CertificateAuthority
from tests.integration.signer_scene import NEW_KEY, MemorySigner, issue

pytestmark = pytest.mark.needs("nginx")

CONFIGURATION = """
daemon off;
pid {folder}/pid;
error_log {folder}/error.log info;
events {{ }}
http {{
  access_log off;
  client_body_temp_path {folder}/1; proxy_temp_path {folder}/2; fastcgi_temp_path {folder}/3;
  uwsgi_temp_path {folder}/4; scgi_temp_path {folder}/5;
  server {{
    listen 127.0.0.1:{port} ssl;
    ssl_certificate {folder}/server.pem;
    ssl_certificate_key {folder}/server.pem;
    ssl_client_certificate {folder}/ca.pem;
    {verify};
    ssl_protocols {protocol};
    ssl_session_cache shared:a:1m;
    location / {{ return 200 "$ssl_client_s_dn $ssl_protocol $ssl_session_reused\\n"; }}
  }}
}}
"""


@pytest.fixture(scope="module")
def ca() -> CertificateAuthority:
    return CertificateAuthority()


@pytest.fixture(scope="module", params=["TLSv1.2", "TLSv1.3"])
def nginx(request: pytest.FixtureRequest, ca: CertificateAuthority, tmp_path_factory) -> Iterator[tuple[str, int]]:
    with running(tmp_path_factory.mktemp("nginx"), ca, request.param, "ssl_verify_client on") as port:
        yield request.param, port


@contextmanager
def running(folder: Path, ca: CertificateAuthority, protocol: str, verify: str) -> Iterator[int]:
    leaf = ca.issue_server()
    (folder / "server.pem").write_bytes(leaf.chain_pem + leaf.key_pem)
    (folder / "ca.pem").write_bytes(ca.certificate_pem)
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    text = CONFIGURATION.format(folder=folder, port=port, protocol=protocol, verify=verify)
    (folder / "nginx.conf").write_text(text)
    with subprocess.Popen(["nginx", "-p", str(folder), "-c", str(folder / "nginx.conf")]) as process:
        try:
            wait_for_port(port, process)
            yield port
        finally:
            process.terminate()


def wait_for_port(port: int, process: subprocess.Popen[bytes]) -> None:
    deadline = time.monotonic() + 10
    while time.monotonic() < deadline and process.poll() is None:
        try:
            socket.create_connection(("127.0.0.1", port), 1).close()
        except OSError:
            time.sleep(0.02)
        else:
            return
    pytest.fail(f"nginx does not listen (exit code {process.poll()})")


def ask(port: int, context: ssl.SSLContext) -> str:
    connection = HTTPSConnection("localhost", port, context=context, timeout=10)
    try:
        connection.request("GET", "/")
        return connection.getresponse().read().decode().strip()
    finally:
        connection.close()


@pytest.mark.parametrize("kind", NEW_KEY)
def test_nginx_sees_the_certificate(nginx: tuple[str, int], ca: CertificateAuthority, kind: str):
    protocol, port = nginx
    signer = MemorySigner(NEW_KEY[kind]())
    context = signing_context(issue(ca, signer.key), signer, certificate_authority=ca.certificate_pem)
    assert ask(port, context) == f"CN=jane {protocol} ."
    assert len(signer.asked) == 1


def test_nginx_counts_as_many_full_handshakes_as_there_were_signatures(
    nginx: tuple[str, int], ca: CertificateAuthority
):
    protocol, port = nginx
    signer = MemorySigner(NEW_KEY["p256"]())
    context = signing_context(issue(ca, signer.key), signer, certificate_authority=ca.certificate_pem)
    answers = [ask(port, context) for _ in range(20)]
    assert answers == [f"CN=jane {protocol} ."] + [f"CN=jane {protocol} r"] * 19
    assert len(signer.asked) == 1


@pytest.mark.parametrize("protocol", ["TLSv1.2", "TLSv1.3"])
def test_without_a_signature_that_the_server_takes_nothing_is_sent(
    ca: CertificateAuthority, tmp_path: Path, protocol: str
):
    """As a kube-apiserver this one lets people in without a certificate, so the request would be nobody's."""
    wants_rsa = "ssl_verify_client optional; ssl_conf_command ClientSignatureAlgorithms RSA-PSS+SHA256:RSA+SHA256"
    with running(tmp_path, ca, protocol, wants_rsa) as port:
        rsa, p256 = (MemorySigner(NEW_KEY[kind]()) for kind in ("rsa", "p256"))
        fits, other = (
            signing_context(issue(ca, signer.key), signer, certificate_authority=ca.certificate_pem)
            for signer in (rsa, p256)
        )
        assert ask(port, fits) == f"CN=jane {protocol} ."
        with pytest.raises(SigningFailed, match="takes no signature that this key can make: none was shown"):
            ask(port, other)
        assert p256.asked == []


def test_a_server_that_asks_for_no_certificate_gets_none(ca: CertificateAuthority, tmp_path: Path):
    with running(tmp_path, ca, "TLSv1.3", "ssl_verify_client off") as port:
        signer = MemorySigner(NEW_KEY["p256"]())
        context = signing_context(issue(ca, signer.key), signer, certificate_authority=ca.certificate_pem)
        assert ask(port, context) == "TLSv1.3 ."
        assert signer.asked == []
