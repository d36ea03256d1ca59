"""A certificate request signed by a signer, and the certificate that comes back put where the signer finds it."""

from __future__ import annotations

import hashlib
import os
from typing import TYPE_CHECKING, Any

from cryptography import x509
from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat, load_der_public_key
from cryptography.x509.oid import NameOID

from kubeauthn._core import csr
from kubeauthn._core.not_a_certificate import NOT_A_CERTIFICATE
from kubeauthn._core.signerwire import SigningAlgorithm
from kubeauthn.errors import KeyStoreError, UsageError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from kubeauthn.plugin.signer import Configuration


def place_to_install(kind: str, configuration: Configuration) -> str:
    """`token` or `file`; found out before anything is asked of a server."""
    if configuration.get("pathCert"):
        return "file"
    if kind == "pkcs11":
        return "token"
    raise UsageError("say where the certificate goes: set pathCert in the signer's configuration")


def subject_of(name: str, groups: Sequence[str]) -> x509.Name:
    """As Kubernetes reads it: groups are organizations, the user is the common name."""
    try:
        organizations = [x509.NameAttribute(NameOID.ORGANIZATION_NAME, group) for group in groups]
        return x509.Name([*organizations, x509.NameAttribute(NameOID.COMMON_NAME, name)])
    except ValueError as error:
        raise UsageError(f"--name or --group cannot stand in a certificate: {error}") from None


def present_subject(signer: Any, now: float) -> tuple[x509.Name, float]:
    """The subject of the certificate that is there, and how much of its time is left (0 to 1)."""
    from kubeauthn.plugin.signer import der_chain

    try:
        certificate = x509.load_der_x509_certificate(der_chain(signer.certificate())[0])
    except NOT_A_CERTIFICATE:
        raise KeyStoreError("what the signer gives as a certificate is none") from None
    begin, end = (time.timestamp() for time in (certificate.not_valid_before_utc, certificate.not_valid_after_utc))
    return certificate.subject, max(0.0, min(1.0, (end - now) / max(end - begin, 1.0)))


def build_request(signer: Any, subject: x509.Name) -> str:
    """PEM. The signature is verified here, so that a wrong one never reaches the server."""
    from kubeauthn.plugin._signer_rehearsal import verify_with

    public_key = signer.public_key()
    try:
        key = load_der_public_key(public_key)
    except (ValueError, UnsupportedAlgorithm):
        raise KeyStoreError("what the signer gives as a public key is none, or of a kind that is not known") from None
    algorithm = request_algorithm(key)
    info = csr.request_info(subject.public_bytes(), public_key)
    digest = hashlib.new(algorithm.hash, info).digest() if algorithm.hash else info
    signature = signer.sign(digest, algorithm)
    verify_with(key, signature, digest, algorithm)
    return csr.pem("CERTIFICATE REQUEST", csr.signed_request(info, signature, algorithm))


def request_algorithm(key: object) -> SigningAlgorithm:
    from kubeauthn.plugin._signer_rehearsal import tls_algorithms

    return next(one for one in tls_algorithms(key) if one.padding != "pss")


def check_issued(chain: bytes, public_key: bytes) -> None:
    """The certificate is for the key that asked: whatever a server sends, nothing else is installed."""
    try:
        key = x509.load_pem_x509_certificates(chain)[0].public_key()
    except (*NOT_A_CERTIFICATE, IndexError, UnsupportedAlgorithm):
        raise KeyStoreError("what was issued is not a PEM certificate") from None
    if key.public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo) != public_key:
        raise KeyStoreError("the certificate that was issued is for another key, and was not installed")


def install(signer: Any, configuration: Configuration, chain: bytes, place: str) -> str:
    """Where it went, in words."""
    from kubeauthn._io.files import write_atomically

    if place == "file":
        path = configuration["pathCert"]
        write_atomically(path, chain)
        return os.path.abspath(path)
    leaf = x509.load_pem_x509_certificates(chain)[0]
    signer.key.install(leaf.public_bytes(Encoding.DER), leaf.subject.public_bytes(), leaf.issuer.public_bytes())
    return str(signer.key.token_name)
