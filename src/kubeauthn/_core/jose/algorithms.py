"""The nine signature algorithms, and no others: RS, PS and ES with 256, 384 and 512 bits."""

from __future__ import annotations

from collections.abc import Callable

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec, padding, rsa
from cryptography.hazmat.primitives.asymmetric.utils import encode_dss_signature

Verifier = Callable[[bytes, bytes], bool]
"""Takes the signature and what was signed; says whether they belong together."""

PublicKey = rsa.RSAPublicKey | ec.EllipticCurvePublicKey

_HASHES: dict[str, hashes.HashAlgorithm] = {
    "256": hashes.SHA256(),
    "384": hashes.SHA384(),
    "512": hashes.SHA512(),
}
_CURVES = {"secp256r1": "ES256", "secp384r1": "ES384", "secp521r1": "ES512"}

RSA_ALGORITHMS = ("RS256", "RS384", "RS512", "PS256", "PS384", "PS512")
ALGORITHMS = (*_CURVES.values(), "PS256", "PS384", "PS512", "RS256", "RS384", "RS512")


def verifier(key: PublicKey, algorithm: str) -> Verifier | None:
    """What checks signatures of this algorithm with this key; None where the two do not belong together."""
    if isinstance(key, rsa.RSAPublicKey):
        return _rsa_verifier(key, algorithm) if algorithm in RSA_ALGORITHMS else None
    return _ec_verifier(key, algorithm) if _CURVES.get(key.curve.name) == algorithm else None


def _rsa_verifier(key: rsa.RSAPublicKey, algorithm: str) -> Verifier:
    digest = _HASHES[algorithm[2:]]
    fill: padding.AsymmetricPadding = padding.PKCS1v15()
    if algorithm.startswith("PS"):
        # RFC 7518, 3.5: the salt is as long as the hash
        fill = padding.PSS(padding.MGF1(digest), digest.digest_size)
    check = key.verify

    def verify(signature: bytes, signed: bytes) -> bool:
        try:
            check(signature, signed, fill, digest)
        except InvalidSignature:
            return False
        return True

    return verify


def _ec_verifier(key: ec.EllipticCurvePublicKey, algorithm: str) -> Verifier:
    scheme = ec.ECDSA(_HASHES[algorithm[2:]])
    size = (key.curve.key_size + 7) // 8
    check = key.verify
    number = int.from_bytes

    def verify(signature: bytes, signed: bytes) -> bool:
        # RFC 7518, 3.4: r and s side by side, each as long as the curve's field
        if len(signature) != 2 * size:
            return False
        der = encode_dss_signature(number(signature[:size], "big"), number(signature[size:], "big"))
        try:
            check(der, signed, scheme)
        except InvalidSignature:
            return False
        return True

    return verify
