"""Servers that ask for the certificate only when they know what is wanted (post-handshake authentication)."""

from __future__ import annotations

import socket
import ssl
import threading
from contextlib import suppress

import pytest

from kubeauthn._core.signerwire import SigningAlgorithm
from kubeauthn.client import signing_context
from kubeauthn.errors import SigningFailed
from kubeauthn.testing import CertificateAuthority
from tests.integration.signer_scene import NEW_KEY, MemorySigner, issue


class LaterServer:
    """Reads a byte, asks for the certificate, and answers with its name."""

    def __init__(self, ca: CertificateAuthority) -> None:
        self._context = ca.server_context()
        self._context.load_verify_locations(cadata=ca.certificate_pem.decode())
        self._context.verify_mode = ssl.CERT_REQUIRED
        self._context.post_handshake_auth = True
        self._listener = socket.create_server(("127.0.0.1", 0))
        threading.Thread(target=self._serve, daemon=True).start()

    def ask(self, context: ssl.SSLContext, signer: MemorySigner) -> str:
        with socket.create_connection(self._listener.getsockname(), 10) as plain:
            with context.wrap_socket(plain, server_hostname="localhost") as connection:
                assert signer.asked == []
                connection.sendall(b"?")
                connection.recv(1)
                connection.sendall(b"!")
                return connection.recv(200).decode()

    def close(self) -> None:
        self._listener.close()

    def _serve(self) -> None:
        plain, _ = self._listener.accept()
        plain.settimeout(10)
        with suppress(OSError), self._context.wrap_socket(plain, server_side=True) as connection:
            connection.recv(1)
            connection.verify_client_post_handshake()
            connection.sendall(b".")
            connection.recv(1)
            shown = connection.getpeercert()
            assert shown is not None
            connection.sendall(str(dict(part[0] for part in shown["subject"])["commonName"]).encode())


@pytest.mark.parametrize("kind", NEW_KEY)
def test_the_certificate_is_shown_when_it_is_asked_for(kind: str):
    ca = CertificateAuthority()
    signer = MemorySigner(NEW_KEY[kind]())
    context = signing_context(issue(ca, signer.key), signer, certificate_authority=ca.certificate_pem)
    context.post_handshake_auth = True
    server = LaterServer(ca)
    try:
        assert server.ask(context, signer) == "jane"
    finally:
        server.close()
    assert len(signer.asked) == 1


def test_a_failure_then_is_ours_too():
    ca = CertificateAuthority()
    signer = MemorySigner(NEW_KEY["p256"]())

    def pulled_out(digest: bytes, algorithm: SigningAlgorithm) -> bytes:
        raise LookupError("no token")

    context = signing_context(issue(ca, signer.key), pulled_out, certificate_authority=ca.certificate_pem)
    context.post_handshake_auth = True
    server = LaterServer(ca)
    try:
        with pytest.raises(SigningFailed, match="the external signer failed: LookupError") as caught:
            server.ask(context, signer)
    finally:
        server.close()
    assert isinstance(caught.value.__cause__, LookupError)
