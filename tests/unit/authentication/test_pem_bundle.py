"""Which texts hold CA certificates: as Go's readers see it."""

from __future__ import annotations

from base64 import b64encode

import pytest
from cryptography.hazmat.primitives.serialization import Encoding
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


def test_a_hostile_text_takes_no_longer_than_its_length():
    assert bundle_fault("\n-----END " * 200_000) == NONE
    assert bundle_fault("-----BEGIN X-----\n" * 200_000 + "\n-----END ") == NONE
