"""Which texts hold CA certificates: as Go's readers see it."""

from __future__ import annotations

from base64 import b64encode
from datetime import datetime

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat
from cryptography.x509 import load_pem_x509_certificate

from kubeauthn._core.authentication.pem_bundle import bundle_fault
from kubeauthn.testing import CertificateAuthority

PEM = CertificateAuthority("ca").certificate_pem.decode()
DER = load_pem_x509_certificate(PEM.encode()).public_bytes(Encoding.DER)
SIGNED_PART = load_pem_x509_certificate(PEM.encode()).tbs_certificate_bytes
BODY = "".join(PEM.splitlines()[1:-1])
NONE = "data does not contain any valid RSA or ECDSA certificates"


def block(data: bytes | str, kind: str = "CERTIFICATE", headers: str = "") -> str:
    body = b64encode(data).decode() if isinstance(data, bytes) else data
    return f"-----BEGIN {kind}-----\n{headers}{body}\n-----END {kind}-----\n"


@pytest.mark.parametrize(
    "text",
    [
        PEM,
        PEM.rstrip("\n"),
        PEM + PEM,
        PEM.replace("\n", "\r\n"),
        "subject=ca\n" + PEM + "that was it\n",
        PEM.replace("-----\n", "-----  \t\n"),
        block(" ".join(BODY)),
        "-----BEGIN CERTIFICATE-----\nnever ended\n" + PEM,
        block(b"x", "PRIVATE KEY") + PEM,
        block(DER, headers="a: b\n\n") + PEM,
    ],
)
def test_a_bundle(text):
    assert bundle_fault(text) == ""


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("", NONE),
        ("/etc/ssl/certs/ca.pem", NONE),
        (b64encode(PEM.encode()).decode(), NONE),
        (block(DER, "TRUSTED CERTIFICATE"), NONE),
        (block(DER, "PUBLIC KEY"), NONE),
        (block(DER, headers="a: b\n\n"), NONE),
        (" " + PEM, NONE),
        (PEM.replace("-----END CERTIFICATE", "-----END OTHER"), NONE),
        (PEM.rstrip("\n") + "x", NONE),
        (block(BODY.rstrip("=")[:-1]), NONE),
        (block(BODY.rstrip("=") + "===="), NONE),
        (block(""), "x509: malformed certificate"),
        (block(b"\x30\x03\x02\x01\x01"), "x509: malformed tbs certificate"),
        (
            block(b"\x30\x82" + len(SIGNED_PART).to_bytes(2, "big") + SIGNED_PART),
            "x509: malformed algorithm identifier",
        ),
        (block(DER[:-1]), "x509: malformed certificate"),
        (block(DER + b"\x00"), "x509: trailing data"),
        (block(DER.replace(b"\xa0\x03\x02\x01\x02", b"\xa0\x03\x02\x01\x03", 1)), "x509: invalid version"),
        (PEM + block(b"x"), "x509: malformed certificate"),
    ],
)
def test_no_bundle(text, fault):
    assert bundle_fault(text) == fault


SIGNER = ec.generate_private_key(ec.SECP256R1())
NAME = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "ca")])
SERIAL = 0x1122334455
Key = rsa.RSAPrivateKey | ec.EllipticCurvePrivateKey | ed25519.Ed25519PrivateKey


def certificate(key: Key = SIGNER, extension: x509.ExtensionType | None = None, *, critical: bool = False) -> bytes:
    """Of this key, and as odd as the extension makes it."""
    builder = x509.CertificateBuilder(NAME, NAME, key.public_key(), SERIAL, datetime(2020, 1, 1), datetime(2040, 1, 1))
    if extension is not None:
        builder = builder.add_extension(extension, critical)
    return builder.sign(SIGNER, hashes.SHA256()).public_bytes(Encoding.DER)


def changed(data: bytes, part: bytes, other: bytes) -> bytes:
    assert data.count(part) == 1
    return data.replace(part, other)


def point_of(key: ec.EllipticCurvePrivateKey) -> bytes:
    return key.public_key().public_bytes(Encoding.X962, PublicFormat.UncompressedPoint)


def extension(kind: str, content: str) -> x509.UnrecognizedExtension:
    return x509.UnrecognizedExtension(x509.ObjectIdentifier(kind), bytes.fromhex(content))


RSA = rsa.generate_private_key(public_exponent=65537, key_size=2048)
MODULUS = RSA.public_key().public_numbers().n.to_bytes(256, "big")
CURVE = ec.generate_private_key(ec.SECP384R1())
POINT = point_of(CURVE)
SHA256, SHA384 = bytes.fromhex("2a8648ce3d040302"), bytes.fromhex("2a8648ce3d040303")


@pytest.mark.parametrize(
    "data",
    [
        certificate(),
        certificate(RSA),
        certificate(CURVE),
        certificate(ec.generate_private_key(ec.SECP224R1())),
        certificate(ec.generate_private_key(ec.SECP521R1())),
        certificate(ed25519.Ed25519PrivateKey.generate()),
        certificate(extension=extension("1.2.3.4", "0500"), critical=True),
        certificate(extension=x509.BasicConstraints(ca=False, path_length=None)),
        changed(certificate(), SERIAL.to_bytes(5, "big"), bytes.fromhex("0122334455")),
    ],
)
def test_a_certificate_that_go_reads(data):
    assert bundle_fault(block(data)) == ""


@pytest.mark.parametrize(
    ("data", "fault"),
    [
        # `cryptography` takes every one of these; kube-apiserver does not start with it
        (certificate(ec.generate_private_key(ec.SECP256K1())), "x509: unsupported elliptic curve"),
        (certificate(ec.generate_private_key(ec.BrainpoolP256R1())), "x509: unsupported elliptic curve"),
        (changed(certificate(CURVE), POINT, POINT[:-1] + bytes([POINT[-1] ^ 1])), "P384 point not on curve"),
        (changed(certificate(CURVE), POINT, b"\2" + POINT[1:]), "ecdsa: invalid uncompressed public key"),
        (
            changed(certificate(RSA), b"\0" + MODULUS, b"\x80" + MODULUS),
            "x509: RSA modulus is not a positive number",
        ),
        (
            changed(certificate(RSA), MODULUS + b"\2\3\1\0\1", MODULUS + b"\2\3\xff\0\1"),
            "x509: RSA public exponent is not a positive number",
        ),
        (changed(certificate(), b"\2\5\x11\x22", b"\2\5\x91\x22"), "x509: negative serial number"),
        (
            certificate().replace(SHA256, SHA384, 1),
            "x509: inner and outer signature algorithm identifiers don't match",
        ),
        (
            certificate(extension=x509.SubjectKeyIdentifier(b"a"), critical=True),
            "x509: subject key identifier incorrectly marked critical",
        ),
        (
            certificate(extension=x509.AuthorityKeyIdentifier(b"a", None, None), critical=True),
            "x509: authority key identifier incorrectly marked critical",
        ),
        (certificate(extension=extension("2.5.29.19", "0500")), "x509: invalid basic constraints"),
        (certificate(extension=extension("2.5.29.15", "0500")), "x509: invalid key usage"),
        (certificate(extension=extension("2.5.29.17", "0500")), "x509: invalid subject alternative names"),
    ],
)
def test_a_certificate_that_go_does_not_read(data, fault):
    assert bundle_fault(block(data)) == fault


def test_a_hostile_text_takes_no_longer_than_its_length():
    assert bundle_fault("\n-----END " * 200_000) == NONE
    assert bundle_fault("-----BEGIN X-----\n" * 200_000 + "\n-----END ") == NONE
