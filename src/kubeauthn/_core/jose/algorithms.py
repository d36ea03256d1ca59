"""The nine signature algorithms, and no others: RS, PS and ES with 256, 384 and 512 bits."""

from __future__ import annotations

from collections.abc import Callable
from hashlib import sha256, sha384, sha512
from typing import TYPE_CHECKING

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec, padding, rsa
from cryptography.hazmat.primitives.asymmetric.utils import Prehashed, encode_dss_signature

if TYPE_CHECKING:
    from hashlib import _Hash as HASH

Verifier = Callable[[bytes, bytes], bool]
"""Takes the signature and what was signed; says whether they belong together."""

PublicKey = rsa.RSAPublicKey | ec.EllipticCurvePublicKey

# `hashlib` makes the digest: half a microsecond less than where `cryptography` makes it.
_HASHES: dict[str, tuple[Callable[[bytes], HASH], hashes.HashAlgorithm]] = {
    "256": (sha256, hashes.SHA256()),
    "384": (sha384, hashes.SHA384()),
    "512": (sha512, hashes.SHA512()),
}
_CURVES = {"secp256r1": "ES256", "secp384r1": "ES384", "secp521r1": "ES512"}

RSA_ALGORITHMS = ("RS256", "RS384", "RS512", "PS256", "PS384", "PS512")
ALGORITHMS = (*_CURVES.values(), "PS256", "PS384", "PS512", "RS256", "RS384", "RS512")


def verifier(key: PublicKey, algorithm: str) -> Verifier | None:
    """What checks signatures of this algorithm with this key; None where the two do not belong together."""
    if isinstance(key, rsa.RSAPublicKey):
        return _rsa_verifier(key, algorithm) if algorithm in RSA_ALGORITHMS else None
    return _ec_verifier(key, algorithm) if _CURVES.get(key.curve.name) == algorithm else None


# DigestInfo without the digest: RFC 8017, 9.2, note 1.
_DIGEST_INFO = {
    "RS256": bytes.fromhex("3031300d060960864801650304020105000420"),
    "RS384": bytes.fromhex("3041300d060960864801650304020205000430"),
    "RS512": bytes.fromhex("3051300d060960864801650304020305000440"),
}


def _rsa_verifier(key: rsa.RSAPublicKey, algorithm: str) -> Verifier:
    return _pkcs1_verifier(key, algorithm) if algorithm.startswith("RS") else _pss_verifier(key, algorithm)


def _pkcs1_verifier(key: rsa.RSAPublicKey, algorithm: str) -> Verifier:
    """RFC 8017, 8.2.2: what the signature holds has to be, to the last byte, what the signer must have put there.

    `cryptography` takes the padding off, and refuses any other than that of a signature. Its `verify` says the same and
    takes a tenth longer, for it asks of each argument what it is.
    """
    digest, _ = _HASHES[algorithm[2:]]
    prefix = _DIGEST_INFO[algorithm]
    recover = key.recover_data_from_signature
    fill = padding.PKCS1v15()

    def verify(signature: bytes, signed: bytes) -> bool:
        try:
            return recover(signature, fill, None) == prefix + digest(signed).digest()
        except InvalidSignature:
            return False

    return verify


def _pss_verifier(key: rsa.RSAPublicKey, algorithm: str) -> Verifier:
    digest, kind = _HASHES[algorithm[2:]]
    # RFC 7518, 3.5: the salt is as long as the hash. Said so, and not as a number, it is checked in less time.
    fill = padding.PSS(padding.MGF1(kind), padding.PSS.DIGEST_LENGTH)
    made = Prehashed(kind)
    check = key.verify

    def verify(signature: bytes, signed: bytes) -> bool:
        try:
            check(signature, digest(signed).digest(), fill, made)
        except InvalidSignature:
            return False
        return True

    return verify


def _ec_verifier(key: ec.EllipticCurvePublicKey, algorithm: str) -> Verifier:
    digest, kind = _HASHES[algorithm[2:]]
    scheme = ec.ECDSA(Prehashed(kind))
    size = (key.curve.key_size + 7) // 8
    check = key.verify

    def verify(signature: bytes, signed: bytes) -> bool:
        # RFC 7518, 3.4: r and s side by side, each as long as the curve's field
        if len(signature) != 2 * size:
            return False
        try:
            check(_as_der(signature, size), digest(signed).digest(), scheme)
        except InvalidSignature:
            return False
        return True

    return verify


def _as_der(signature: bytes, size: int) -> bytes:
    """r and s as two INTEGERs in a SEQUENCE."""
    r, s = signature[:size], signature[size:]
    if size > _SHORT or not r[0] or not s[0]:
        return encode_dss_signature(int.from_bytes(r, "big"), int.from_bytes(s, "big"))
    # Without leading zeros, and with lengths below 128, only signs need care: a first bit that is set asks for a zero.
    first = b"\x02%c\0%b" % (size + 1, r) if r[0] & 0x80 else b"\x02%c%b" % (size, r)
    second = b"\x02%c\0%b" % (size + 1, s) if s[0] & 0x80 else b"\x02%c%b" % (size, s)
    return b"\x30%c%b%b" % (len(first) + len(second), first, second)


_SHORT = 48
"""Bytes of r or s of which two make a SEQUENCE whose length is one byte."""
