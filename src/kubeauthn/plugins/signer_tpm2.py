"""`kubeauthn-signer-tpm2`: an external signer for a key that lives in the machine's TPM 2.0.

Configuration: `handle` (a persistent handle, `0x81000001`), the certificate as `pathCert` or `nvIndex`,
`device` (`/dev/tpmrm0`), and for a key with an authorisation value `pinSource` or `pin`.
"""

from __future__ import annotations

from kubeauthn._core import tpm2
from kubeauthn._core.signature_forms import bit_string, ecdsa_der_of, integer, pss_salt_bytes, sequence
from kubeauthn._secret import Secret
from kubeauthn.errors import KeyStoreError, PinRefused, SignerRequestError
from kubeauthn.plugin import signer
from kubeauthn.plugins.agent.client import through_agent
from kubeauthn.plugins.signer_help import answer_help
from kubeauthn.plugins.tpm2_device import DEFAULT_DEVICE, TpmDevice

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import NoReturn

    from kubeauthn.plugin.signer import Configuration, SigningAlgorithm
    from kubeauthn.plugins.pin import Pins

KIND = "tpm2"
_RSA_ENCRYPTION = bytes.fromhex("300d06092a864886f70d0101010500")
_EC_PUBLIC_KEY = bytes.fromhex("06072a8648ce3d0201")
_CURVES = {
    "P-256": (bytes.fromhex("06082a8648ce3d030107"), 32),
    "P-384": (bytes.fromhex("06052b81040022"), 48),
    "P-521": (bytes.fromhex("06052b81040023"), 66),
}
_LARGEST_INDEX = 16 * 1024
_NO_AUTH = Secret("")


class Tpm2Signer:
    """A key at a persistent handle. A device is opened for each question: the resource manager shares the TPM."""

    def __init__(self, configuration: Configuration, pins: Pins | None = None) -> None:
        from kubeauthn.plugins.pin import pins_of

        configuration.require("handle")
        self._configuration = configuration
        self._device = configuration.get("device") or DEFAULT_DEVICE
        self._handle = _number(configuration, "handle", tpm2.FIRST_PERSISTENT, tpm2.LAST_PERSISTENT)
        self._asks = bool(pins) or bool(configuration.get("pin") or configuration.get("pinSource"))
        self._pins = pins or pins_of(configuration)
        self._auth: Secret | None = None

    def certificate(self) -> bytes:
        if self._configuration.get("pathCert"):
            from kubeauthn.plugins.certificate_file import read_certificate

            return read_certificate(self._configuration)
        if self._configuration.get("nvIndex"):
            return self._from_memory(_number(self._configuration, "nvIndex", tpm2.FIRST_NV_INDEX, tpm2.LAST_NV_INDEX))
        raise SignerRequestError("the signer's configuration lacks pathCert or nvIndex: where the certificate is")

    def public_key(self) -> bytes:
        with TpmDevice(self._device) as device:
            public = self._public(device)
        if public.type == tpm2.RSA:
            key = sequence(integer(public.modulus), integer(public.exponent))
            return sequence(_RSA_ENCRYPTION, bit_string(key))
        curve, size = _CURVES[public.curve]
        point = b"\x04" + public.x.to_bytes(size, "big") + public.y.to_bytes(size, "big")
        return sequence(sequence(_EC_PUBLIC_KEY, curve), bit_string(point))

    def sign(self, digest: bytes, algorithm: SigningAlgorithm) -> bytes:
        if not algorithm.hash:
            raise KeyStoreError("handle: a TPM has no Ed25519 keys")
        # Keys without an authorisation value need none, so it is asked for only where the entry says so.
        if self._auth is None and self._asks:
            self._auth = self._pins(f"authorisation of the TPM key {self._handle:#x}")
        with TpmDevice(self._device) as device:
            public = self._public(device)
            scheme = _scheme(public, algorithm)
            made = self._signed(device, digest, scheme, algorithm.hash)
        if not isinstance(made, bytes):
            return ecdsa_der_of(*made)
        if scheme == tpm2.RSAPSS:
            salt = pss_salt_bytes(made, public.modulus, public.exponent, algorithm.hash)
            if salt not in (None, algorithm.salt):  # none: no signature at all, as the client will say
                raise KeyStoreError(
                    f"handle: this TPM salts RSA-PSS with {salt} bytes, and {algorithm.salt} were asked for",
                    hint="TLS takes no other: make the key on an elliptic curve (-G ecc256:null:null)",
                )
        return made

    def identity(self) -> bytes:
        return self.public_key()

    def reopen(self) -> None:
        """Nothing is kept open."""

    def close(self) -> None:
        self._auth = None

    def _signed(self, device: TpmDevice, digest: bytes, scheme: int, hash_name: str) -> bytes | tuple[int, int]:
        try:
            command = tpm2.sign(self._handle, self._auth or _NO_AUTH, digest, scheme, hash_name)
            return tpm2.signature(device.ask(command, f"to sign with {self._handle:#x}"))
        except PinRefused as error:
            self._auth = None
            hint = "it is not tried again: the TPM counts failures and locks"
            if not self._asks:
                hint = "the key has an authorisation value: set pinSource: prompt (or keyring:kubeauthn/NAME)"
            raise PinRefused(f"handle: {error}", hint=hint) from None

    def _public(self, device: TpmDevice) -> tpm2.PublicArea:
        public = tpm2.public_area(device.ask(tpm2.read_public(self._handle), f"to read handle {self._handle:#x}"))
        if not public.attributes & tpm2.SIGNS:
            raise KeyStoreError(f"handle: the key at {self._handle:#x} may not sign (its attributes lack sign)")
        if public.attributes & tpm2.RESTRICTED:
            raise KeyStoreError(f"handle: the key at {self._handle:#x} is restricted to what the TPM itself has hashed")
        return public

    def _from_memory(self, index: int) -> bytes:
        what = f"to read index {index:#x}"
        with TpmDevice(self._device) as device:
            public = tpm2.nv_public(device.ask(tpm2.nv_read_public(index), what))
            if not public.attributes & tpm2.NV_WRITTEN or public.size > _LARGEST_INDEX:
                raise KeyStoreError(f"nvIndex: {index:#x} was never written, or is too large for a certificate")
            content = b""
            while len(content) < public.size:
                size = min(tpm2.NV_CHUNK, public.size - len(content))
                command = tpm2.nv_read(index, public, _NO_AUTH, len(content), size)
                piece = tpm2.nv_data(device.ask(command, what))
                if not piece:
                    raise KeyStoreError(f"nvIndex: the TPM gave {len(content)} bytes of {index:#x} and no more")
                content += piece
        return content.rstrip(b"\xff") if content.startswith(b"-----") else _without_padding(content)


def _scheme(public: tpm2.PublicArea, algorithm: SigningAlgorithm) -> int:
    if public.type == tpm2.RSA:
        scheme = tpm2.RSAPSS if algorithm.padding == "pss" else tpm2.RSASSA
    elif algorithm.padding == "pss":
        raise KeyStoreError("handle: the key is on an elliptic curve, and cannot sign as asked: rsa pss")
    else:
        scheme = tpm2.ECDSA
    bound = public.scheme not in (tpm2.NULL, scheme)
    if bound or (public.hash is not None and public.hash != tpm2.HASHES[algorithm.hash]):
        raise KeyStoreError(
            f"handle: the key is bound to another scheme than the one asked for: {algorithm}",
            hint="make the key without a scheme: tpm2_create -G rsa2048:null:null, or -G ecc256:null:null",
        )
    return scheme


def _without_padding(content: bytes) -> bytes:
    """An index may be larger than the certificate in it, which says itself how long it is."""
    if len(content) > 4 and content[0] == 0x30 and content[1] == 0x82:
        return content[: 4 + int.from_bytes(content[2:4], "big")]
    return content


def _number(configuration: Configuration, name: str, first: int, last: int) -> int:
    text = configuration[name]
    digits = text[2:] if text[:2] in ("0x", "0X") else ""
    if 1 <= len(digits) <= 8 and all(digit in "0123456789abcdefABCDEF" for digit in digits):
        number = int(digits, 16)
        if first <= number <= last:
            return number
    raise SignerRequestError(f"{name} must be hexadecimal, from {first:#x} to {last:#x}")


def main() -> NoReturn:
    answer_help("kubeauthn-signer-tpm2", __doc__)
    signer.run(lambda configuration: through_agent(KIND, configuration) or Tpm2Signer(configuration))
