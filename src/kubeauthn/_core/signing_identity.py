"""A client certificate whose key is elsewhere, and the checks before it is shown to anybody."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from cryptography import x509
from cryptography.hazmat.primitives.serialization import Encoding
from cryptography.x509.oid import ExtendedKeyUsageOID

from kubeauthn._core import rfc3339
from kubeauthn._core.credential import ClientIdentity
from kubeauthn._core.not_a_certificate import NOT_A_CERTIFICATE
from kubeauthn._core.signerwire import SigningAlgorithm
from kubeauthn._secret import Secret
from kubeauthn.errors import PluginReplyError

_CLIENT_USES = (ExtendedKeyUsageOID.CLIENT_AUTH, ExtendedKeyUsageOID.ANY_EXTENDED_KEY_USAGE)


class SigningIdentity(ClientIdentity):
    """A chain with what signs for it. `key` is empty. Equal when the chain is and the same signer signs."""

    __slots__ = ("chain", "refused", "sign", "unfit")

    def __init__(
        self,
        chain: Sequence[bytes],
        sign: Callable[[bytes, SigningAlgorithm], bytes],
        *,
        not_before: float,
        not_after: float,
        refused: Callable[[], None] | None = None,
        unfit: Callable[[str], None] | None = None,
    ) -> None:
        pem = b"".join(x509.load_der_x509_certificate(der).public_bytes(Encoding.PEM) for der in chain)
        super().__init__(pem, Secret(""), not_before=not_before, not_after=not_after)
        self.chain = tuple(chain)
        self.sign = sign
        self.refused = refused
        """To be told when a server answers the certificate with a TLS alert."""
        self.unfit = unfit
        """To be told, with the reason, when what the signer returned is no signature by this certificate's key."""

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, SigningIdentity):
            return False
        return self.chain == other.chain and self.sign == other.sign

    def __hash__(self) -> int:
        return hash(self.chain)


def signing_identity(
    chain: Sequence[bytes],
    sign: Callable[[bytes, SigningAlgorithm], bytes],
    now: float,
    *,
    refused: Callable[[], None] | None = None,
    unfit: Callable[[str], None] | None = None,
) -> SigningIdentity:
    """What a signer returned as its certificate (DER, leaf first), if it can be used now."""
    try:
        leaf, *_ = [x509.load_der_x509_certificate(der) for der in chain]
        not_before, not_after = leaf.not_valid_before_utc.timestamp(), leaf.not_valid_after_utc.timestamp()
        usage = leaf.extensions.get_extension_for_class(x509.ExtendedKeyUsage).value
    except x509.ExtensionNotFound:
        usage = None
    except NOT_A_CERTIFICATE:
        raise PluginReplyError("the signer's certificate is not an X.509 certificate") from None
    if usage is not None and not any(use in usage for use in _CLIENT_USES):
        raise PluginReplyError(
            "the signer's certificate is not for client authentication: its extended key usage has no clientAuth",
            hint="ask for a certificate with the signer kubernetes.io/kube-apiserver-client",
        )
    if now > not_after:
        raise PluginReplyError(f"the signer's certificate expired at {rfc3339.format(not_after)}")
    if now < not_before:
        raise PluginReplyError(
            f"the signer's certificate is not valid before {rfc3339.format(not_before)}",
            hint="compare the clocks of this machine and of the one that signed the certificate",
        )
    return SigningIdentity(chain, sign, not_before=not_before, not_after=not_after, refused=refused, unfit=unfit)
