"""A certificate that stands in a file beside the key: `pathCert` in a signer's configuration."""

from __future__ import annotations

from kubeauthn._core import limits
from kubeauthn.errors import KeyStoreError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping


def read_certificate(configuration: Mapping[str, str]) -> bytes:
    """PEM or DER, as it is in the file. The private key of somebody careless is refused, not sent to a server."""
    from kubeauthn._io.files import Problem, read_or_problem

    path = configuration["pathCert"]
    content = read_or_problem(path, limits.CREDENTIAL_FILE_BYTES)
    if isinstance(content, Problem):
        hint = "kubeauthn signer request-certificate makes one" if content.missing else None
        raise KeyStoreError(f"pathCert: {path}: {content.reason}", hint=hint)
    if b"PRIVATE KEY-----" in content:
        raise KeyStoreError(f"pathCert: {path} holds a private key: it is to hold certificates alone")
    if b"-----BEGIN CERTIFICATE-----" not in content and not content.startswith(b"\x30"):
        raise KeyStoreError(f"pathCert: {path} is neither PEM nor DER")
    return content
