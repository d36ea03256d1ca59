"""Whether Go's X.509 reader takes a certificate, and so whether kube-apiserver starts with it.

`cryptography` looks at the public key and the extensions only when somebody asks for them; Go does at once. What is
wrong is told in Go's words as far as its first part goes; inside an extension nothing is judged.
"""

from __future__ import annotations

import warnings

from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.utils import CryptographyDeprecationWarning
from cryptography.x509 import InvalidVersion, load_der_x509_certificate

from kubeauthn._core.not_a_certificate import NOT_A_CERTIFICATE

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    Element = tuple[int, int, int]
    """The tag of a DER element, and where its content begins and ends."""

_INTEGER, _BITS, _OCTETS, _OBJECT, _SEQUENCE = 0x02, 0x03, 0x04, 0x06, 0x30
_VERSION, _EXTENSIONS = 0xA0, 0xA3
_EC_KEY = bytes.fromhex("2a8648ce3d0201")
_RSA_KEY = bytes.fromhex("2a864886f70d010101")
_CURVES: dict[bytes, tuple[str, ec.EllipticCurve]] = {
    bytes.fromhex("2b81040021"): ("P224", ec.SECP224R1()),
    bytes.fromhex("2a8648ce3d030107"): ("P256", ec.SECP256R1()),
    bytes.fromhex("2b81040022"): ("P384", ec.SECP384R1()),
    bytes.fromhex("2b81040023"): ("P521", ec.SECP521R1()),
}
_UNCOMPRESSED = 4
_KNOWN_EXTENSIONS = {
    bytes.fromhex("551d0e"): ("subject key identifier", _OCTETS),
    bytes.fromhex("551d0f"): ("key usage", _BITS),
    bytes.fromhex("551d11"): ("subject alternative names", _SEQUENCE),
    bytes.fromhex("551d13"): ("basic constraints", _SEQUENCE),
    bytes.fromhex("551d1e"): ("NameConstraints extension", _SEQUENCE),
    bytes.fromhex("551d1f"): ("CRL distribution points", _SEQUENCE),
    bytes.fromhex("551d20"): ("certificate policies", _SEQUENCE),
    bytes.fromhex("551d23"): ("authority key identifier", _SEQUENCE),
    bytes.fromhex("551d25"): ("extended key usages", _SEQUENCE),
    bytes.fromhex("2b06010505070101"): ("authority info access", _SEQUENCE),
}
_NEVER_CRITICAL = ("subject key identifier", "authority key identifier", "authority info access")


def certificate_fault(data: bytes) -> str:
    """Why these bytes are no certificate that Go reads, in its words; "" if they are one."""
    try:
        with warnings.catch_warnings():  # of serial numbers, which are judged below
            warnings.simplefilter("ignore", CryptographyDeprecationWarning)
            load_der_x509_certificate(data)
    except InvalidVersion:
        return "x509: invalid version"
    except NOT_A_CERTIFICATE:
        return _outermost_fault(data)
    return _inner_fault(data)


def _outermost_fault(data: bytes) -> str:
    """Of bytes that are not of the form of a certificate."""
    whole = _element(data, 0, len(data))
    if whole is None or whole[0] != _SEQUENCE:
        return "x509: malformed certificate"
    signed = _element(data, whole[1], whole[2])
    if signed is None or signed[0] != _SEQUENCE:
        return "x509: malformed tbs certificate"
    algorithm = _element(data, signed[2], whole[2])
    if algorithm is None or algorithm[0] != _SEQUENCE:
        return "x509: malformed algorithm identifier"
    return "x509: trailing data" if whole[2] < len(data) else "x509: malformed certificate"


def _inner_fault(data: bytes) -> str:
    """Of bytes that have the form of a certificate: each element is there."""
    (whole,) = _elements(data, 0, len(data))
    signed, outer_algorithm, _ = _elements(data, whole[1], whole[2])
    parts = [part for part in _elements(data, signed[1], signed[2]) if part[0] != _VERSION]
    serial, algorithm, _, _, _, key = parts[:6]
    if data[serial[1]] & 0x80:
        return "x509: negative serial number"
    if _content(data, algorithm) != _content(data, outer_algorithm):
        return "x509: inner and outer signature algorithm identifiers don't match"
    fault = _key_fault(data, key)
    if fault:
        return fault
    for tag, start, end in parts[6:]:
        if tag == _EXTENSIONS:
            (listed,) = _elements(data, start, end)
            return next(filter(None, (_extension_fault(data, entry) for entry in _elements(data, *listed[1:]))), "")
    return ""


def _key_fault(data: bytes, key: Element) -> str:
    algorithm, bits = _elements(data, key[1], key[2])
    kind, *parameters = _elements(data, algorithm[1], algorithm[2])
    content = data[bits[1] + 1 : bits[2]]  # the first byte counts the bits that are not used
    if _content(data, kind) == _EC_KEY:
        curve = _CURVES.get(_content(data, parameters[0])) if parameters and parameters[0][0] == _OBJECT else None
        return "x509: unsupported elliptic curve" if curve is None else _point_fault(content, *curve)
    return _rsa_fault(content) if _content(data, kind) == _RSA_KEY else ""


def _point_fault(point: bytes, name: str, curve: ec.EllipticCurve) -> str:
    if len(point) != 1 + 2 * ((curve.key_size + 7) // 8) or point[0] != _UNCOMPRESSED:
        return "ecdsa: invalid uncompressed public key"
    try:
        ec.EllipticCurvePublicKey.from_encoded_point(curve, point)
    except ValueError:
        return f"{name} point not on curve"
    return ""


def _rsa_fault(key: bytes) -> str:
    whole = _element(key, 0, len(key))
    numbers = [part for part in _elements(key, whole[1], whole[2]) if part[0] == _INTEGER] if whole else []
    if not whole or whole[0] != _SEQUENCE or len(numbers) < 2:
        return "x509: invalid RSA public key"
    for number, name in zip(numbers, ("modulus", "public exponent"), strict=False):
        if not _content(key, number).lstrip(b"\0") or key[number[1]] & 0x80:
            return f"x509: RSA {name} is not a positive number"
    return ""


def _extension_fault(data: bytes, extension: Element) -> str:
    kind, *critical, value = _elements(data, extension[1], extension[2])
    known = _KNOWN_EXTENSIONS.get(_content(data, kind))
    if known is None:
        return ""
    name, tag = known
    if name in _NEVER_CRITICAL and any(data[start] for _, start, _ in critical):
        return f"x509: {name} incorrectly marked critical"
    inner = _element(data, value[1], value[2])
    return "" if inner is not None and inner[0] == tag else f"x509: invalid {name}"


def _content(data: bytes, element: Element) -> bytes:
    return data[element[1] : element[2]]


def _elements(data: bytes, start: int, end: int) -> Iterator[Element]:
    while (element := _element(data, start, end)) is not None:
        yield element
        start = element[2]


def _element(data: bytes, start: int, limit: int) -> Element | None:
    """The DER element at `start`; None if there is none that ends before the limit."""
    if start + 2 > limit:
        return None
    tag, length, content = data[start], data[start + 1], start + 2
    if length >= 0x80:
        count = length - 0x80
        length = int.from_bytes(data[content : content + count], "big")
        content += count
    end = content + length
    return (tag, content, end) if content <= end <= limit else None
