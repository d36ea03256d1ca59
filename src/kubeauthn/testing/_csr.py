"""The approver of a test's cluster: signs what is requested of the CSR API, or says no."""

from __future__ import annotations

from base64 import b64decode, b64encode
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

from cryptography import x509
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.serialization import Encoding
from cryptography.x509.oid import ExtendedKeyUsageOID

from kubeauthn.testing._resources import ResourceType

if TYPE_CHECKING:
    from kubeauthn.testing.pki import CertificateAuthority

CERTIFICATE_REQUESTS = ResourceType(
    "certificates.k8s.io",
    "v1",
    "certificatesigningrequests",
    "CertificateSigningRequest",
    False,
    ("csr",),
    has_status=True,
)
DEFAULT_SECONDS = 365 * 86400


def approved(item: dict[str, Any], ca: CertificateAuthority) -> dict[str, Any]:
    """The same object with its certificate. A request whose own signature does not hold fails, as in Kubernetes."""
    spec = item.get("spec", {})
    try:
        request = x509.load_pem_x509_csr(b64decode(spec["request"]))
        valid = request.is_signature_valid
    except (KeyError, ValueError):
        valid = False
    if not valid:
        return _with(item, "Failed", "SignerValidationFailure", "the request's signature is not valid")
    now = datetime.now(UTC)
    certificate = (
        x509.CertificateBuilder()
        .subject_name(request.subject)
        .issuer_name(ca.subject)
        .public_key(request.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - timedelta(minutes=5))
        .not_valid_after(now + timedelta(seconds=spec.get("expirationSeconds") or DEFAULT_SECONDS))
        .add_extension(x509.ExtendedKeyUsage([ExtendedKeyUsageOID.CLIENT_AUTH]), critical=False)
        .sign(ca._key, SHA256())
    )
    done = _with(item, "Approved", "TestApproved", "approved by the test")
    done["status"]["certificate"] = b64encode(certificate.public_bytes(Encoding.PEM)).decode()
    return done


def denied(item: dict[str, Any], message: str) -> dict[str, Any]:
    return _with(item, "Denied", "TestDenied", message)


def _with(item: dict[str, Any], kind: str, reason: str, message: str) -> dict[str, Any]:
    condition = {"type": kind, "status": "True", "reason": reason, "message": message}
    return {**item, "status": {**item.get("status", {}), "conditions": [condition]}}
