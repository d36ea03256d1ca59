"""What a request is authenticated with."""

from __future__ import annotations

from itertools import count

from kubeauthn._secret import Secret

TYPE_CHECKING = False
if TYPE_CHECKING:
    from kubeauthn._core.execproxy import ProxyRoute

_numbers = count()


class ClientIdentity:
    """A client certificate with its key, checked to fit each other. Equal when both are equal."""

    __slots__ = ("certificate", "key", "not_after", "not_before")

    def __init__(self, certificate: bytes, key: Secret, *, not_before: float, not_after: float) -> None:
        self.certificate = certificate
        self.key = key
        self.not_before = not_before
        self.not_after = not_after

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, ClientIdentity):
            return NotImplemented
        return self.certificate == other.certificate and self.key == other.key

    def __hash__(self) -> int:
        return hash(self.certificate)

    def __repr__(self) -> str:
        return f"ClientIdentity(<{len(self.certificate)} bytes of certificate>, not_after={self.not_after:.0f})"


class Credential:
    """An `Authorization` header, a client certificate, both, or (a user with nothing configured) neither.

    Compared by identity on purpose: "has it been replaced since that request was sent"
    asks which one it is, not what it says.
    """

    __slots__ = ("authorization", "expires_at", "identity", "number", "proven", "route", "signer", "token")

    def __init__(
        self,
        *,
        token: Secret | None = None,
        authorization: Secret | None = None,
        identity: ClientIdentity | None = None,
        expires_at: float | None = None,
        route: ProxyRoute | None = None,
        signer: tuple[tuple[str, str], ...] = (),
    ) -> None:
        self.token = token
        # Blanks at the end are no part of a header. Go takes them off; others refuse the header, and quote it.
        self.authorization = Secret(f"Bearer {token.reveal()}".rstrip(" ")) if token else authorization
        self.identity = identity
        self.expires_at = expires_at
        self.signer = signer
        """The external signer that an exec plugin named, with its settings: its certificate is still to be fetched."""
        self.route = route
        """The local proxy that requests go through; None: straight to the server."""
        self.number = next(_numbers)
        """Later ones have higher numbers."""
        self.proven = False
        """Whether a server has accepted it: a refused credential that never was is not simply run again."""

    def usable(self, now: float) -> bool:
        """Kubernetes' rule: until the moment it names, that moment included."""
        return self.expires_at is None or now <= self.expires_at

    def __repr__(self) -> str:
        parts = [name for name in ("token", "authorization", "identity") if getattr(self, name)]
        return f"Credential({', '.join(parts) or 'anonymous'}, expires_at={self.expires_at})"
