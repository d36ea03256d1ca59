"""A token that gets another key while a client lives, as when an alias in a KMS is turned to a new one."""

from __future__ import annotations

import ssl
from collections.abc import Iterator
from pathlib import Path

import pytest
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat

from kubeauthn.client import connect, open_access
from kubeauthn.errors import CredentialWaiting, SigningFailed
from kubeauthn.testing import ApiServer, CertificateAuthority
from tests.integration.signer_scene import NEW_KEY, SignerProgram, issue

URL = "/api/v1/namespaces"


class Desk:
    def __init__(self, folder: Path, ca: CertificateAuthority, server: ApiServer) -> None:
        self.ca = ca
        self.server = server
        self.signer = SignerProgram(folder / "token", ca)
        self.config = folder / "config"
        server.write_kubeconfig(self.config, self.signer.user())

    def replace_key(self, kind: str = "p256") -> None:
        self.signer.key = NEW_KEY[kind]()
        pem = self.signer.key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
        self.signer.key_path.write_bytes(pem)
        self.server.drop_connections()

    def certify(self) -> None:
        self.signer.show(issue(self.ca, self.signer.key, user="jane"))


@pytest.fixture
def desk(tmp_path: Path) -> Iterator[Desk]:
    ca = CertificateAuthority()
    with ApiServer(ca=ca) as server:
        # A resumed session needs no signature, and would be good for as long as the old certificate is.
        server._context.num_tickets = 0
        server._context.options |= ssl.OP_NO_TICKET
        yield Desk(tmp_path, ca, server)


@pytest.mark.parametrize("kind", ["p256", "p384", "rsa"])
def test_the_certificate_of_a_new_key_is_fetched(desk: Desk, kind: str):
    with connect(kubeconfig=str(desk.config)) as api:
        assert api.get(URL).status_code == 200
        desk.replace_key(kind)
        desk.certify()
        with pytest.raises(SigningFailed, match="the signer returned"):
            api.get(URL)
        assert [api.get(URL).status_code for _ in range(2)] == [200, 200]
    assert desk.signer.count("CertificateRequest") == 2
    first, *others = [each.certificate_serial for each in desk.server.requests]
    assert first not in others


def test_a_signer_that_stays_without_a_fitting_certificate_is_not_asked_without_end(desk: Desk):
    with connect(kubeconfig=str(desk.config)) as api:
        assert api.get(URL).status_code == 200
        desk.replace_key()
        for _ in range(2):  # with the old certificate, and with what the signer says now: the same
            with pytest.raises(SigningFailed):
                api.get(URL)
        with pytest.raises(CredentialWaiting, match="does not verify .*; next attempt in"):
            api.get(URL)
    assert (desk.signer.count("CertificateRequest"), desk.signer.count("SignRequest")) == (2, 3)


def test_an_old_connection_takes_nothing_from_the_new_certificate(desk: Desk):
    """Contexts of the old one may live on in pools; what fails or is refused there says nothing of the new one."""
    access = open_access(kubeconfig=str(desk.config))
    old = access.credential().identity
    desk.replace_key()
    desk.certify()
    old.unfit("another key")  # type: ignore[union-attr]  # an external signer's
    new = access.credential()
    assert new.identity != old
    for _ in range(3):
        old.unfit("another key")  # type: ignore[union-attr]
        old.refused()  # type: ignore[union-attr]
    assert access.credential() is new
