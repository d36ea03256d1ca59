"""A client certificate and its key: do they parse, fit each other, and hold now."""

from __future__ import annotations

from cryptography import x509
from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat, load_pem_private_key

from kubeauthn._core import rfc3339
from kubeauthn._core.credential import ClientIdentity
from kubeauthn._core.not_a_certificate import NOT_A_CERTIFICATE
from kubeauthn._secret import Secret
from kubeauthn.errors import PluginReplyError, StaticCredentialError

_CURVES = ("secp256r1", "secp384r1", "secp521r1")


def client_identity(certificate: bytes, key: Secret, now: float) -> ClientIdentity:
    """What a plugin returned. One that is expired or not yet valid on arrival is an error."""
    try:
        identity = matching_pair(certificate, key)
    except StaticCredentialError as error:
        raise PluginReplyError(f"failed parsing client key/certificate: {error}") from None
    if now > identity.not_after:
        raise PluginReplyError(
            f"exec plugin returned a client certificate that expired at {rfc3339.format(identity.not_after)}"
        )
    if now < identity.not_before:
        raise PluginReplyError(
            f"exec plugin returned a client certificate that is not valid before {rfc3339.format(identity.not_before)}",
            hint="compare the clocks of this machine and of the one that signed the certificate",
        )
    return identity


def matching_pair(certificate: bytes, key: Secret) -> ClientIdentity:
    """Parse both and compare their public keys. The messages of the parsers are not passed on: they saw the key."""
    try:
        leaf = x509.load_pem_x509_certificates(certificate)[0]
    except NOT_A_CERTIFICATE:
        raise StaticCredentialError("the certificate is not PEM") from None
    try:
        private_key = load_pem_private_key(key.reveal().encode(), password=None)
    except TypeError:
        raise StaticCredentialError("the private key is encrypted") from None
    except (ValueError, UnsupportedAlgorithm):
        raise StaticCredentialError("the private key is not PEM of a known kind") from None
    form = Encoding.DER, PublicFormat.SubjectPublicKeyInfo
    try:
        fits = leaf.public_key().public_bytes(*form) == private_key.public_key().public_bytes(*form)
    except (ValueError, UnsupportedAlgorithm):
        raise StaticCredentialError("the certificate's public key is of an unknown kind") from None
    if not fits:
        raise StaticCredentialError("private key does not match public key")
    _check_kind(private_key)
    return ClientIdentity(
        certificate,
        key,
        not_before=leaf.not_valid_before_utc.timestamp(),
        not_after=leaf.not_valid_after_utc.timestamp(),
    )


def _check_kind(key: object) -> None:
    """With a key of another kind OpenSSL would silently show no certificate, and the request go out anonymously."""
    if isinstance(key, ec.EllipticCurvePrivateKey):
        if key.curve.name not in _CURVES:
            raise StaticCredentialError(f"the key is on {key.curve.name}, and TLS takes P-256, P-384 and P-521")
    elif not isinstance(key, rsa.RSAPrivateKey | ed25519.Ed25519PrivateKey):
        raise StaticCredentialError("the key is none of RSA, EC and Ed25519")
