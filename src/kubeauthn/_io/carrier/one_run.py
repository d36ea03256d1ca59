"""Keys and certificates for one run of a local proxy. They are in memory, and end with it."""

from __future__ import annotations

import ssl
from datetime import UTC, datetime, timedelta

from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from kubeauthn._core.credential import ClientIdentity
from kubeauthn._secret import Secret

LIFE = timedelta(days=7)
_SKEW = timedelta(minutes=5)


_SIGNS_CERTIFICATES = x509.KeyUsage(
    digital_signature=False, content_commitment=False, key_encipherment=False, data_encipherment=False,
    key_agreement=False, key_cert_sign=True, crl_sign=True, encipher_only=False, decipher_only=False,
)  # fmt: skip
"""Strict verification, the default since Python 3.13, asks it of an authority."""


class OneRunAuthority:
    """A certificate authority whose key never leaves this process."""

    def __init__(self, name: str, *, life: timedelta = LIFE, issues_for: timedelta | None = None) -> None:
        """`issues_for`: the life of what it signs, where that is made anew from time to time."""
        self._key = ec.generate_private_key(ec.SECP256R1())
        self._name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
        self._life = life
        self._certificate = self._signed(self._name, self._key, None, None)
        self._life = issues_for or life
        self.certificate = self._certificate.public_bytes(Encoding.PEM)

    def server(self) -> ClientIdentity:
        """For `localhost` and the loopback's addresses."""
        from ipaddress import ip_address

        names = x509.SubjectAlternativeName(
            [x509.DNSName("localhost"), x509.IPAddress(ip_address("127.0.0.1")), x509.IPAddress(ip_address("::1"))]
        )
        return self._issue("localhost", ExtendedKeyUsageOID.SERVER_AUTH, names)

    def client(self, name: str) -> ClientIdentity:
        return self._issue(name, ExtendedKeyUsageOID.CLIENT_AUTH, None)

    def _issue(
        self, name: str, usage: x509.ObjectIdentifier, names: x509.SubjectAlternativeName | None
    ) -> ClientIdentity:
        key = ec.generate_private_key(ec.SECP256R1())
        subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
        certificate = self._signed(subject, key, usage, names)
        return ClientIdentity(
            certificate.public_bytes(Encoding.PEM),
            Secret(key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()).decode()),
            not_before=certificate.not_valid_before_utc.timestamp(),
            not_after=certificate.not_valid_after_utc.timestamp(),
        )

    def _signed(
        self,
        subject: x509.Name,
        key: ec.EllipticCurvePrivateKey,
        usage: x509.ObjectIdentifier | None,
        names: x509.SubjectAlternativeName | None,
    ) -> x509.Certificate:
        now = datetime.now(UTC)
        builder = (
            x509.CertificateBuilder()
            .subject_name(subject)
            .issuer_name(self._name)
            .public_key(key.public_key())
            .serial_number(x509.random_serial_number())
            .not_valid_before(now - _SKEW)
            .not_valid_after(now + self._life)
            .add_extension(x509.BasicConstraints(ca=usage is None, path_length=None), critical=True)
            .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
            .add_extension(x509.AuthorityKeyIdentifier.from_issuer_public_key(self._key.public_key()), critical=False)
        )
        if usage is None:
            builder = builder.add_extension(_SIGNS_CERTIFICATES, critical=True)
        else:
            builder = builder.add_extension(x509.ExtendedKeyUsage([usage]), critical=False)
        if names is not None:
            builder = builder.add_extension(names, critical=False)
        return builder.sign(self._key, hashes.SHA256())


def listening_context(server: ClientIdentity, clients: bytes) -> ssl.SSLContext:
    """TLS for a listener that lets in only those whose certificate `clients` (PEM) has signed."""
    from kubeauthn._io.tls import load_identity

    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.verify_mode = ssl.CERT_REQUIRED
    context.load_verify_locations(cadata=clients.decode())
    context.num_tickets = 0
    context.set_alpn_protocols(["http/1.1"])
    load_identity(context, server)
    return context
