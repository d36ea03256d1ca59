"""Certificates for tests: an authority, and the leaves it issues.

Valid from 2020 to 2049 unless told otherwise, so that they also hold for a fake clock.
"""

from __future__ import annotations

import base64
import contextlib
import os
import ssl
import tempfile
from dataclasses import dataclass, field
from datetime import UTC, datetime
from ipaddress import ip_address
from typing import TYPE_CHECKING, Literal, cast

from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from kubeauthn.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

KeyType = Literal["ec", "rsa"]
PrivateKey = ec.EllipticCurvePrivateKey | rsa.RSAPrivateKey

NOT_BEFORE = datetime(2020, 1, 1, tzinfo=UTC)
NOT_AFTER = datetime(2049, 12, 31, tzinfo=UTC)
LOOPBACK_NAMES = ("127.0.0.1", "localhost")


@dataclass(frozen=True)
class Leaf:
    """A certificate with its key. `chain_pem` is the certificate and the intermediates that lead to the root."""

    certificate_pem: bytes
    key_pem: bytes = field(repr=False)
    chain_pem: bytes
    serial: int

    @property
    def certificate(self) -> x509.Certificate:
        return x509.load_pem_x509_certificate(self.certificate_pem)

    @property
    def not_before(self) -> datetime:
        return self.certificate.not_valid_before_utc

    @property
    def not_after(self) -> datetime:
        return self.certificate.not_valid_after_utc

    def load_into(self, context: ssl.SSLContext) -> None:
        """Use this certificate in an `SSLContext`."""
        with _as_path(self.chain_pem + self.key_pem) as path:
            context.load_cert_chain(path)

    def kubeconfig_user(self) -> dict[str, object]:
        """The kubeconfig user entry that carries this certificate inline."""
        return {
            "client-certificate-data": base64.b64encode(self.chain_pem).decode(),
            "client-key-data": base64.b64encode(self.key_pem).decode(),
        }


class CertificateAuthority:
    """A certificate authority; a root unless it was made by `intermediate`."""

    def __init__(self, name: str = "kubeauthn test CA", *, key_type: KeyType = "ec") -> None:
        key = _new_key(key_type)
        self._adopt(key, _sign_authority(name, key, issuer=None), chain=())

    def _adopt(self, key: PrivateKey, certificate: x509.Certificate, chain: Sequence[bytes]) -> None:
        self._key = key
        self._certificate = certificate
        self._chain = tuple(chain)  # the intermediates from this authority up, the root left out
        self.certificate_pem = certificate.public_bytes(Encoding.PEM)

    def intermediate(self, name: str = "kubeauthn test intermediate CA") -> CertificateAuthority:
        """An authority below this one. What it issues carries the intermediates in `chain_pem`."""
        key = _new_key("ec")
        certificate = _sign_authority(name, key, issuer=self)
        below = object.__new__(CertificateAuthority)
        below._adopt(key, certificate, chain=(certificate.public_bytes(Encoding.PEM), *self._chain))
        return below

    def issue_server(
        self,
        names: Sequence[str] = LOOPBACK_NAMES,
        *,
        serial: int | None = None,
        not_before: datetime | None = None,
        not_after: datetime | None = None,
        key_type: KeyType = "ec",
    ) -> Leaf:
        """A server certificate for these DNS names and IP addresses."""
        if not names:
            raise UsageError("a server certificate needs at least one name")
        subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "kubeauthn test server")])
        alternatives = x509.SubjectAlternativeName([_alternative_name(name) for name in names])
        usage = ExtendedKeyUsageOID.SERVER_AUTH
        return self._issue(subject, usage, alternatives, serial, not_before, not_after, key_type)

    def issue_client(
        self,
        user: str,
        groups: Sequence[str] = (),
        *,
        serial: int | None = None,
        not_before: datetime | None = None,
        not_after: datetime | None = None,
        key_type: KeyType = "ec",
    ) -> Leaf:
        """A client certificate as Kubernetes reads it: the user is the common name, groups are organizations."""
        organizations = [x509.NameAttribute(NameOID.ORGANIZATION_NAME, group) for group in groups]
        subject = x509.Name([*organizations, x509.NameAttribute(NameOID.COMMON_NAME, user)])
        return self._issue(subject, ExtendedKeyUsageOID.CLIENT_AUTH, None, serial, not_before, not_after, key_type)

    def _issue(
        self,
        subject: x509.Name,
        usage: x509.ObjectIdentifier,
        alternatives: x509.SubjectAlternativeName | None,
        serial: int | None,
        not_before: datetime | None,
        not_after: datetime | None,
        key_type: KeyType,
    ) -> Leaf:
        key = _new_key(key_type)
        builder = _builder(subject, key, self, not_before or NOT_BEFORE, not_after or NOT_AFTER, serial)
        builder = builder.add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        builder = builder.add_extension(_key_usage(signs_certificates=False), critical=True)
        builder = builder.add_extension(x509.ExtendedKeyUsage([usage]), critical=False)
        if alternatives is not None:
            builder = builder.add_extension(alternatives, critical=False)
        certificate = builder.sign(self._key, hashes.SHA256())
        pem = certificate.public_bytes(Encoding.PEM)
        return Leaf(
            certificate_pem=pem,
            key_pem=key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()),
            chain_pem=b"".join((pem, *self._chain)),
            serial=certificate.serial_number,
        )

    def client_context(self) -> ssl.SSLContext:
        """An `SSLContext` for a client that trusts this authority alone."""
        return ssl.create_default_context(cadata=self.certificate_pem.decode())

    def server_context(self, names: Sequence[str] = LOOPBACK_NAMES) -> ssl.SSLContext:
        """An `SSLContext` for a server with a fresh certificate for `names`."""
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self.issue_server(names).load_into(context)
        return context

    @property
    def subject(self) -> x509.Name:
        return self._certificate.subject


def _sign_authority(name: str, key: PrivateKey, issuer: CertificateAuthority | None) -> x509.Certificate:
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
    builder = _builder(subject, key, issuer, NOT_BEFORE, NOT_AFTER, None)
    builder = builder.add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
    builder = builder.add_extension(_key_usage(signs_certificates=True), critical=True)
    return builder.sign(issuer._key if issuer else key, hashes.SHA256())


def _builder(
    subject: x509.Name,
    key: PrivateKey,
    issuer: CertificateAuthority | None,
    not_before: datetime,
    not_after: datetime,
    serial: int | None,
) -> x509.CertificateBuilder:
    """What every certificate has. The two key identifiers are what strict verification asks for."""
    issuer_public = (issuer._key if issuer else key).public_key()
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer.subject if issuer else subject)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number() if serial is None else serial)
        .not_valid_before(not_before)
        .not_valid_after(not_after)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
        .add_extension(x509.AuthorityKeyIdentifier.from_issuer_public_key(issuer_public), critical=False)
    )


def _key_usage(*, signs_certificates: bool) -> x509.KeyUsage:
    return x509.KeyUsage(
        digital_signature=True,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        key_cert_sign=signs_certificates,
        crl_sign=signs_certificates,
        encipher_only=False,
        decipher_only=False,
    )


def _new_key(key_type: KeyType) -> PrivateKey:
    if key_type == "ec":
        return ec.generate_private_key(ec.SECP256R1())
    if key_type == "rsa":
        return rsa.generate_private_key(public_exponent=65537, key_size=2048)
    raise UsageError(f'the key type is "ec" or "rsa", not {cast("object", key_type)!r}')


def _alternative_name(name: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ip_address(name))
    except ValueError:
        return x509.DNSName(name)


@contextlib.contextmanager
def _as_path(content: bytes) -> Iterator[str]:
    """A path with this content, in memory where the system can, because it holds a private key."""
    if hasattr(os, "memfd_create"):
        descriptor = os.memfd_create("certificate", os.MFD_CLOEXEC)
        try:
            os.write(descriptor, content)
            yield f"/proc/self/fd/{descriptor}"
        finally:
            os.close(descriptor)
        return
    with tempfile.TemporaryDirectory() as directory:  # 0700, and gone at once
        path = os.path.join(directory, "certificate.pem")
        with open(path, "wb") as file:
            file.write(content)
        yield path
