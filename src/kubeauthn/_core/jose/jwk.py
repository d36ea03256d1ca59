"""One key of a key set (RFC 7517): public RSA and EC keys that may verify signatures. Private parts are not read."""

from __future__ import annotations

from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives.asymmetric import ec, rsa

from kubeauthn._core.jose.algorithms import RSA_ALGORITHMS, PublicKey
from kubeauthn._core.jose.compact import decode_text
from kubeauthn._core.jose.limits import RSA_LARGEST_BITS, RSA_LARGEST_EXPONENT, RSA_SMALLEST_BITS

_CURVES: dict[str, tuple[ec.EllipticCurve, str]] = {
    "P-256": (ec.SECP256R1(), "ES256"),
    "P-384": (ec.SECP384R1(), "ES384"),
    "P-521": (ec.SECP521R1(), "ES512"),
}
_LONGEST_NUMBER = 4096
"""Characters of a key's number: more than the largest key has."""


class UnusableKey(ValueError):
    """This key cannot be read, is too weak, or is not for verifying signatures."""


class OtherPurpose(UnusableKey):
    """It is a key for something else: for encryption, or for an algorithm that no token may be signed with."""


def read_key(jwk: object) -> tuple[str, PublicKey]:
    """The id ("" if it has none) and the key. Raises UnusableKey with the reason."""
    if not isinstance(jwk, dict):
        raise UnusableKey("it is no JSON object")
    kid = jwk.get("kid")
    if kid is not None and not isinstance(kid, str):
        raise UnusableKey("its kid is no string")
    _check_purpose(jwk)
    kind = jwk.get("kty")
    if kind == "RSA":
        return kid or "", _rsa_key(jwk)
    if kind == "EC":
        return kid or "", _ec_key(jwk)
    raise OtherPurpose("its kty is neither RSA nor EC")


def _check_purpose(jwk: dict[str, object]) -> None:
    """`use`, `key_ops` and `alg` say what a key is for. Absent, they allow everything."""
    if jwk.get("use") not in (None, "", "sig"):
        raise OtherPurpose("its use is not sig")
    operations = jwk.get("key_ops")
    if operations is not None and not (isinstance(operations, list) and "verify" in operations):
        raise OtherPurpose("its key_ops do not have verify")
    algorithm = jwk.get("alg")
    if algorithm is None or algorithm == "":
        return
    # RS256 on a key does not forbid RS512 or PS256: issuers write one and sign with another, and kube-apiserver allows
    # it. An algorithm of another family, or one for encryption, does forbid.
    fits = RSA_ALGORITHMS if jwk.get("kty") == "RSA" else [name for curve, name in _ec_algorithms(jwk)]
    if algorithm not in fits:
        raise OtherPurpose("its alg is not one that this kind of key verifies with")


def _ec_algorithms(jwk: dict[str, object]) -> list[tuple[ec.EllipticCurve, str]]:
    curve = jwk.get("crv")
    return [_CURVES[curve]] if isinstance(curve, str) and curve in _CURVES else []


def _rsa_key(jwk: dict[str, object]) -> rsa.RSAPublicKey:
    modulus, exponent = _number(jwk, "n"), _number(jwk, "e")
    bits = modulus.bit_length()
    if not RSA_SMALLEST_BITS <= bits <= RSA_LARGEST_BITS:
        raise UnusableKey(f"it is an RSA key of {bits} bits, not of {RSA_SMALLEST_BITS} to {RSA_LARGEST_BITS}")
    if not 3 <= exponent <= RSA_LARGEST_EXPONENT:
        raise UnusableKey("its exponent is too small or too large")
    try:
        return rsa.RSAPublicNumbers(exponent, modulus).public_key()
    except (ValueError, UnsupportedAlgorithm):
        raise UnusableKey("its numbers are no RSA key") from None


def _ec_key(jwk: dict[str, object]) -> ec.EllipticCurvePublicKey:
    found = _ec_algorithms(jwk)
    if not found:
        raise UnusableKey("its curve is none of P-256, P-384 and P-521")
    x, y = _number(jwk, "x"), _number(jwk, "y")
    try:
        return ec.EllipticCurvePublicNumbers(x, y, found[0][0]).public_key()
    except (ValueError, UnsupportedAlgorithm):  # the second where the system allows only some curves
        raise UnusableKey("its point is not on its curve") from None


def _number(jwk: dict[str, object], name: str) -> int:
    text = jwk.get(name)
    if not isinstance(text, str) or not 0 < len(text) <= _LONGEST_NUMBER:
        raise UnusableKey(f"its {name} is no number in base64url")
    try:
        return int.from_bytes(decode_text(text), "big")
    except ValueError:  # UnicodeEncodeError is one too
        raise UnusableKey(f"its {name} is no number in base64url") from None
