"""`signer.try_out`: an author's signer, run in the test's own process and judged as a client would."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING

from cryptography import x509
from cryptography.exceptions import InvalidSignature, UnsupportedAlgorithm
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, padding, rsa, utils
from cryptography.hazmat.primitives.hashes import SHA256, SHA384, SHA512, HashAlgorithm

from kubeauthn._core import signerwire
from kubeauthn._core.not_a_certificate import NOT_A_CERTIFICATE
from kubeauthn._core.signerwire import HASH_BYTES, SigningAlgorithm
from kubeauthn.errors import PluginReplyError
from kubeauthn.plugin import signer as sdk

if TYPE_CHECKING:
    from collections.abc import Mapping

    from kubeauthn.plugin.signer import Makes, Signer

_HASHES: dict[str, HashAlgorithm] = {"sha256": SHA256(), "sha384": SHA384(), "sha512": SHA512()}
_CURVE_HASH = {256: "sha256", 384: "sha384", 521: "sha512"}


class Rehearsal:
    """A signer on trial. Each question goes through the wire and back, and makes the signer anew, as `run` does."""

    def __init__(self, signer: Signer | Makes, configuration: Mapping[str, str]) -> None:
        self._signer = signer
        self._configuration = dict(configuration)

    @property
    def certificate(self) -> tuple[bytes, ...]:
        """The chain as DER, the leaf first."""
        request = signerwire.encode_certificate_request(self._configuration)
        return signerwire.decode_certificate_reply(sdk.answer(self._signer, request).encode())

    @property
    def algorithms(self) -> tuple[SigningAlgorithm, ...]:
        """Every way in which TLS may ask this certificate's key to sign."""
        return tls_algorithms(public_key_of(self.certificate[0]))

    def sign(self, message: bytes, algorithm: SigningAlgorithm | None = None) -> bytes:
        """The signature over a message, verified with the certificate; over its digest, or Ed25519's message itself."""
        algorithm = algorithm or self.algorithms[0]
        digest = hashlib.new(algorithm.hash, message).digest() if algorithm.hash else message
        request = signerwire.encode_sign_request(self._configuration, digest, algorithm)
        signature = signerwire.decode_sign_reply(sdk.answer(self._signer, request).encode())
        verify(self.certificate[0], signature, digest, algorithm)
        return signature


def tls_algorithms(key: object) -> tuple[SigningAlgorithm, ...]:
    if isinstance(key, rsa.RSAPublicKey):
        pss = [SigningAlgorithm("rsa", padding="pss", hash=name, salt=size) for name, size in HASH_BYTES.items()]
        return (*pss, *(SigningAlgorithm("rsa", padding="pkcs1", hash=name) for name in HASH_BYTES))
    if isinstance(key, ec.EllipticCurvePublicKey) and key.curve.key_size in _CURVE_HASH:
        return (SigningAlgorithm("ec", hash=_CURVE_HASH[key.curve.key_size]),)
    if isinstance(key, ed25519.Ed25519PublicKey):
        return (SigningAlgorithm("ed25519"),)
    raise PluginReplyError("the certificate's key is neither RSA, nor on P-256, P-384 or P-521, nor Ed25519")


def verify(certificate: bytes, signature: bytes, digest: bytes, algorithm: SigningAlgorithm) -> None:
    """`PluginReplyError` unless the certificate's key made this signature in this way."""
    verify_with(public_key_of(certificate), signature, digest, algorithm)


def public_key_of(certificate: bytes) -> object:
    try:
        return x509.load_der_x509_certificate(certificate).public_key()
    except (*NOT_A_CERTIFICATE, UnsupportedAlgorithm):
        raise PluginReplyError("what the signer gave as a certificate is none") from None


def verify_with(key: object, signature: bytes, digest: bytes, algorithm: SigningAlgorithm) -> None:
    try:
        if isinstance(key, rsa.RSAPublicKey):
            chosen = _HASHES[algorithm.hash]
            pad = (
                padding.PSS(padding.MGF1(chosen), algorithm.salt) if algorithm.padding == "pss" else padding.PKCS1v15()
            )
            key.verify(signature, digest, pad, utils.Prehashed(chosen))
        elif isinstance(key, ec.EllipticCurvePublicKey):
            key.verify(signature, digest, ec.ECDSA(utils.Prehashed(_HASHES[algorithm.hash])))
        elif isinstance(key, ed25519.Ed25519PublicKey):
            key.verify(signature, digest)
        else:
            raise PluginReplyError("the certificate's key is of a kind that TLS clients do not use")
    except InvalidSignature:
        raise PluginReplyError(f"the signature ({algorithm}) was not made by the certificate's key") from None
