"""A TPM, or what takes its place, that answers otherwise than one does."""

from __future__ import annotations

from contextlib import nullcontext
from types import SimpleNamespace

import pytest
from cryptography.hazmat.primitives.asymmetric import padding, rsa, utils
from cryptography.hazmat.primitives.hashes import SHA256

from kubeauthn._core import tpm2
from kubeauthn._core.signerwire import SigningAlgorithm
from kubeauthn.errors import KeyStoreError, SignerRequestError
from kubeauthn.plugin.signer import Configuration
from kubeauthn.plugins import signer_tpm2
from kubeauthn.plugins.tpm2_device import TpmDevice


def test_an_index_that_gives_nothing_is_not_asked_for_ever(monkeypatch: pytest.MonkeyPatch):
    class Device:
        asked = 0

        def __init__(self, name: str) -> None: ...
        def __enter__(self) -> Device:
            return self

        def __exit__(self, *_: object) -> None: ...
        def ask(self, command: bytes, what: str) -> None:
            Device.asked += 1
            assert Device.asked < 100

    monkeypatch.setattr(signer_tpm2, "TpmDevice", Device)
    monkeypatch.setattr(tpm2, "nv_public", lambda reply: SimpleNamespace(attributes=tpm2.NV_WRITTEN, size=900))
    monkeypatch.setattr(tpm2, "nv_read", lambda *_: b"")
    monkeypatch.setattr(tpm2, "nv_data", lambda reply: b"")
    signer = signer_tpm2.Tpm2Signer(Configuration(handle="0x81000001", nvIndex="0x1500001"))
    with pytest.raises(KeyStoreError, match="nvIndex: the TPM gave 0 bytes of 0x1500001 and no more"):
        signer.certificate()


def test_a_tpm_with_the_longest_salt_is_named_as_what_it_is(monkeypatch: pytest.MonkeyPatch):
    """Revision 1.38 of its specification wants that salt, and TLS one as long as the hash."""
    key = rsa.generate_private_key(65537, 2048)
    numbers = key.public_key().public_numbers()
    public = tpm2.PublicArea(tpm2.RSA, tpm2.SIGNS, tpm2.NULL, None, modulus=numbers.n, exponent=numbers.e)
    salts = [222, 32]

    def made(digest: bytes) -> bytes:
        pad = padding.PSS(padding.MGF1(SHA256()), salts.pop(0))
        return key.sign(digest, pad, utils.Prehashed(SHA256()))

    monkeypatch.setattr(signer_tpm2, "TpmDevice", lambda name: nullcontext())
    monkeypatch.setattr(signer_tpm2.Tpm2Signer, "_public", lambda self, device: public)
    monkeypatch.setattr(signer_tpm2.Tpm2Signer, "_signed", lambda self, device, digest, scheme, name: made(digest))
    signer = signer_tpm2.Tpm2Signer(Configuration(handle="0x81000001"))
    pss = SigningAlgorithm("rsa", padding="pss", hash="sha256", salt=32)
    with pytest.raises(KeyStoreError, match="this TPM salts RSA-PSS with 222 bytes, and 32 were asked for"):
        signer.sign(bytes(32), pss)
    assert len(signer.sign(bytes(32), pss)) == 256


@pytest.mark.parametrize("port", ["0", "65536", "065535999", "٣", ""])
def test_a_port_that_is_none(port: str):
    with pytest.raises(SignerRequestError, match=r"tcp:127\.0\.0\.1:PORT"):
        TpmDevice(f"tcp:127.0.0.1:{port}")
