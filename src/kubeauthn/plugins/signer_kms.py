"""`kubeauthn-signer-kms`: an external signer for a key in a cloud's key management service.

Configuration: `keyId` (an id, ARN or alias), `pathCert`, and `service` (`aws`, the default). For AWS: `region`,
`profile`, `endpointUrl`; credentials come from where every AWS program takes them.
"""

from __future__ import annotations

from kubeauthn.errors import KeyStoreError, SignerRequestError
from kubeauthn.plugin import signer
from kubeauthn.plugins.signer_help import answer_help

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import NoReturn, Protocol

    from kubeauthn.plugin.signer import Configuration, SigningAlgorithm

    class KeyService(Protocol):
        """What a service must do to be one. A new one is a module with such a class, and a line in `SERVICES`."""

        def __init__(self, configuration: Configuration) -> None: ...

        def public_key(self) -> bytes:
            """SubjectPublicKeyInfo, DER."""

        def sign(self, digest: bytes, algorithm: SigningAlgorithm) -> bytes:
            """In the form TLS carries."""


SERVICES = {"aws": "kubeauthn.plugins.kms_aws:AwsKms"}


class KmsSigner:
    """The certificate from a file, signatures from the service."""

    def __init__(self, configuration: Configuration) -> None:
        configuration.require("keyId", "pathCert")
        self._configuration = configuration
        self._service = _service(configuration)

    def certificate(self) -> bytes:
        from kubeauthn.plugins.certificate_file import read_certificate

        return read_certificate(self._configuration)

    def public_key(self) -> bytes:
        return self._service.public_key()

    def sign(self, digest: bytes, algorithm: SigningAlgorithm) -> bytes:
        if not algorithm.hash:
            raise KeyStoreError("keyId: Ed25519 keys in a key management service are not supported")
        return self._service.sign(digest, algorithm)


def _service(configuration: Configuration) -> KeyService:
    from importlib import import_module

    name = configuration.get("service") or "aws"
    place = SERVICES.get(name)
    if place is None:
        raise SignerRequestError(f"service must be one of {', '.join(SERVICES)}")
    module, _, cls = place.partition(":")
    service: KeyService = getattr(import_module(module), cls)(configuration)
    return service


def main() -> NoReturn:
    answer_help("kubeauthn-signer-kms", __doc__)
    signer.run(KmsSigner)
