"""What a certificate says of itself. Loads `cryptography`: to be imported only when there is a certificate."""

from __future__ import annotations

from dataclasses import dataclass
from hashlib import sha256
from typing import Any

from cryptography import x509

from kubeauthn._core import rfc3339
from kubeauthn._core.not_a_certificate import NOT_A_CERTIFICATE


@dataclass(frozen=True)
class CertificateView:
    subject: str
    issuer: str
    serial: str
    not_before: float
    not_after: float

    def as_json(self) -> dict[str, Any]:
        return {
            "subject": self.subject,
            "issuer": self.issuer,
            "serial": self.serial,
            "notBefore": rfc3339.format(self.not_before),
            "notAfter": rfc3339.format(self.not_after),
        }


def certificate_views(pem: bytes) -> list[CertificateView]:
    """Every certificate in a PEM text, in its order; none if it is not PEM."""
    try:
        return [_view(certificate) for certificate in x509.load_pem_x509_certificates(pem)]
    except NOT_A_CERTIFICATE:
        return []


def presented_view(der: bytes) -> str:
    """A server's certificate in one line, so that it can be compared with what somebody else sees."""
    try:
        certificate = x509.load_der_x509_certificate(der)
    except NOT_A_CERTIFICATE:
        return "a certificate that cannot be read"
    fingerprint = sha256(der).hexdigest().upper()
    pairs = ":".join(fingerprint[place : place + 2] for place in range(0, len(fingerprint), 2))
    return f"{_name(certificate, 'subject')}, issued by {_name(certificate, 'issuer')}, SHA-256 {pairs}"


def _view(certificate: x509.Certificate) -> CertificateView:
    return CertificateView(
        subject=_name(certificate, "subject"),
        issuer=_name(certificate, "issuer"),
        serial=f"{certificate.serial_number:x}",
        not_before=certificate.not_valid_before_utc.timestamp(),
        not_after=certificate.not_valid_after_utc.timestamp(),
    )


def _name(certificate: x509.Certificate, which: str) -> str:
    try:
        text: str = getattr(certificate, which).rfc4514_string()
    except ValueError:
        return "a name that cannot be read"
    return text or "an empty name"
