"""Sign a digest with a key that `cryptography` holds."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cryptography.hazmat.primitives.asymmetric import ec, ed25519, padding, rsa, utils
from cryptography.hazmat.primitives.hashes import SHA256, SHA384, SHA512, HashAlgorithm

from kubeauthn.errors import KeyStoreError

if TYPE_CHECKING:
    from kubeauthn._core.signerwire import SigningAlgorithm

_HASHES: dict[str, HashAlgorithm] = {"sha256": SHA256(), "sha384": SHA384(), "sha512": SHA512()}


def sign_digest(key: object, digest: bytes, algorithm: SigningAlgorithm) -> bytes:
    if isinstance(key, rsa.RSAPrivateKey) and algorithm.hash:
        chosen = _HASHES[algorithm.hash]
        pad = padding.PSS(padding.MGF1(chosen), algorithm.salt) if algorithm.padding == "pss" else padding.PKCS1v15()
        return key.sign(digest, pad, utils.Prehashed(chosen))
    if isinstance(key, ec.EllipticCurvePrivateKey) and algorithm.hash and algorithm.padding != "pss":
        return key.sign(digest, ec.ECDSA(utils.Prehashed(_HASHES[algorithm.hash])))
    if isinstance(key, ed25519.Ed25519PrivateKey) and not algorithm.hash:
        return key.sign(digest)
    raise KeyStoreError(f"the key is of another kind, and cannot sign as asked: {algorithm}")
