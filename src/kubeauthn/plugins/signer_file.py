"""`kubeauthn-signer-file`: an encrypted key in a file, used in a process of its own.

Configuration: `pathKey` (PEM, encrypted), `pathCert`, `pinSource` or `pin` for the passphrase;
`allowPlainKey: "true"` for a key that is not encrypted.
"""

from __future__ import annotations

import os
import stat

from kubeauthn._core import limits
from kubeauthn.errors import KeyStoreAbsent, KeyStoreError, PinRefused
from kubeauthn.plugin import signer
from kubeauthn.plugins.agent.client import through_agent
from kubeauthn.plugins.signer_help import answer_help

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, NoReturn

    from kubeauthn.plugin.signer import Configuration, SigningAlgorithm
    from kubeauthn.plugins.pin import Pins

KIND = "file"


class FileSigner:
    """The key is read and decrypted at the first signature, and not before."""

    def __init__(self, configuration: Configuration, pins: Pins | None = None) -> None:
        from kubeauthn.plugins.pin import pins_of

        configuration.require("pathKey", "pathCert")
        self._configuration = configuration
        self._pins = pins or pins_of(configuration)
        self._key: Any = None

    def certificate(self) -> bytes:
        from kubeauthn.plugins.certificate_file import read_certificate

        return read_certificate(self._configuration)

    def public_key(self) -> bytes:
        from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

        content: bytes = self._opened().public_key().public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo)
        return content

    def sign(self, digest: bytes, algorithm: SigningAlgorithm) -> bytes:
        from kubeauthn.plugins.software_key import sign_digest

        return sign_digest(self._opened(), digest, algorithm)

    def identity(self) -> bytes:
        status = os.stat(self._configuration["pathKey"])
        return f"{status.st_dev}:{status.st_ino}:{status.st_mtime_ns}".encode()

    def reopen(self) -> None:
        self._key = None

    def close(self) -> None:
        self._key = None

    def _opened(self) -> Any:
        if self._key is None:
            self._key = self._load()
        return self._key

    def _load(self) -> Any:
        from cryptography.hazmat.primitives.serialization import load_pem_private_key

        path = self._configuration["pathKey"]
        content = read_private(path)
        if b"-----BEGIN" not in content:
            raise KeyStoreError(f"pathKey: {path} is not PEM")
        password: bytes | None = None
        if b"ENCRYPTED" in content:
            password = self._pins(f"passphrase of {path}").reveal().encode("utf-8", "surrogateescape")
        elif self._configuration.get("allowPlainKey") != "true":
            raise KeyStoreError(
                f"pathKey: {path} is not encrypted",
                hint=f'openssl pkcs8 -topk8 -in {path} encrypts it; or set allowPlainKey: "true"',
            )
        try:
            return load_pem_private_key(content, password)
        except (ValueError, TypeError):
            if password is not None:
                raise PinRefused(f"pathKey: {path} cannot be decrypted: the passphrase is wrong") from None
            raise KeyStoreError(f"pathKey: {path} cannot be read as a private key") from None


def read_private(path: str) -> bytes:
    """A file that is ours and nobody else's; looked at after it is opened, so that it cannot be swapped between."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except FileNotFoundError:
        raise KeyStoreAbsent(f"pathKey: {path}: no such file or directory") from None
    except OSError as error:
        raise KeyStoreError(f"pathKey: {path}: {(error.strerror or 'cannot be read').lower()}") from None
    with os.fdopen(descriptor, "rb") as file:
        status = os.fstat(descriptor)
        if not stat.S_ISREG(status.st_mode):
            raise KeyStoreError(f"pathKey: {path} is not a regular file")
        if status.st_uid != os.getuid():
            raise KeyStoreError(f"pathKey: {path} belongs to another user")
        if status.st_mode & 0o077:
            raise KeyStoreError(
                f"pathKey: {path} has mode {stat.S_IMODE(status.st_mode):04o}: others can read it",
                hint=f"chmod 600 {path}",
            )
        content = file.read(limits.CREDENTIAL_FILE_BYTES + 1)
    if len(content) > limits.CREDENTIAL_FILE_BYTES:
        raise KeyStoreError(f"pathKey: {path} is larger than {limits.CREDENTIAL_FILE_BYTES} bytes")
    return content


def _made(configuration: Configuration) -> Any:
    agent = through_agent(KIND, configuration)
    if agent is None:
        from kubeauthn.plugins.lockdown import lock_down

        lock_down(clear_environment=True)
    return agent or FileSigner(configuration)


def main() -> NoReturn:
    answer_help("kubeauthn-signer-file", __doc__)
    signer.run(_made)
