"""`kubeauthn-signer-pkcs11`: an external signer for smart cards, YubiKeys and HSMs.

Configuration: `pathLib` (the module), `slotId` or `tokenLabel`, `objectId` (one decimal byte, hexadecimal, or a
label), or all of it as an RFC 7512 `uri`; `pathCert` where the certificate is not on the token; `pinSource`, `pin`.
"""

from __future__ import annotations

from kubeauthn.plugin import signer
from kubeauthn.plugins.agent.client import through_agent
from kubeauthn.plugins.signer_help import answer_help

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import NoReturn

    from kubeauthn.plugin.signer import Configuration, SigningAlgorithm
    from kubeauthn.plugins.pin import Pins

KIND = "pkcs11"


class Pkcs11Signer:
    """One key on a token. Kept open, it asks for the PIN once."""

    def __init__(self, configuration: Configuration, pins: Pins | None = None) -> None:
        from kubeauthn.plugins.pin import pins_of
        from kubeauthn.plugins.pkcs11_token import TokenKey, place_of

        self._configuration = configuration
        self.key = TokenKey(place_of(configuration), pins or pins_of(configuration))

    def certificate(self) -> bytes:
        if self._configuration.get("pathCert"):
            from kubeauthn.plugins.certificate_file import read_certificate

            return read_certificate(self._configuration)
        return self.key.certificate()

    def public_key(self) -> bytes:
        return self.key.public_key()

    def sign(self, digest: bytes, algorithm: SigningAlgorithm) -> bytes:
        from kubeauthn.plugins.touch import tell_of_touch

        return self.key.sign(digest, algorithm, lambda: tell_of_touch(self._configuration))

    def identity(self) -> bytes:
        """The token's serial: a PIN that was typed for one token is not given to another."""
        return self.key.serial

    def reopen(self) -> None:
        """After the token was pulled out and put back."""
        self.key.forget_module()

    def close(self) -> None:
        self.key.close()


def main() -> NoReturn:
    answer_help("kubeauthn-signer-pkcs11", __doc__)
    signer.run(lambda configuration: through_agent(KIND, configuration) or Pkcs11Signer(configuration))
