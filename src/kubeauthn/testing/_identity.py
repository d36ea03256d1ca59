"""Who a request comes from: bearer tokens, client certificates, impersonation."""

from __future__ import annotations

import base64
import binascii
from dataclasses import dataclass, field
from threading import Lock
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote

from kubeauthn.errors import UsageError
from kubeauthn.testing._status import ApiError, unauthorized

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from kubeauthn.testing._http import Request

AUTHENTICATED = "system:authenticated"
_EXTRA_PREFIX = "impersonate-extra-"


@dataclass(frozen=True)
class User:
    """A user as the API server sees one."""

    name: str
    groups: tuple[str, ...] = ()
    uid: str = ""
    extra: Mapping[str, tuple[str, ...]] = field(default_factory=dict)

    def user_info(self) -> dict[str, Any]:
        """As `userInfo` in a review."""
        info: dict[str, Any] = {"username": self.name}
        if self.uid:
            info["uid"] = self.uid
        if self.groups:
            info["groups"] = list(self.groups)
        if self.extra:
            info["extra"] = {key: list(values) for key, values in self.extra.items()}
        return info


ANONYMOUS = User("system:anonymous", ("system:unauthenticated",))


@dataclass(frozen=True)
class PeerCertificate:
    """What a verified client certificate says."""

    serial: int
    user: User

    @classmethod
    def from_ssl(cls, certificate: Mapping[str, Any]) -> PeerCertificate:
        """From what `SSLSocket.getpeercert()` returns."""
        subject = [pair for part in certificate["subject"] for pair in part]
        names = [value for key, value in subject if key == "commonName"]
        groups = tuple(value for key, value in subject if key == "organizationName")
        return cls(int(certificate["serialNumber"], 16), User(names[-1] if names else "", groups))


class Credentials:
    """What the server accepts at the moment."""

    def __init__(self, *, allow_anonymous: bool, ask: Callable[[str], User | None] | None = None) -> None:
        self._lock = Lock()
        self._ask = ask
        self._tokens: dict[str, User] = {}
        self._passwords: dict[tuple[str, str], User] = {}
        self._revoked_serials: set[int] = set()
        self.certificates_accepted = True
        self.allow_anonymous = allow_anonymous

    def accept_token(self, token: str, user: User) -> None:
        if not token:
            raise UsageError("an empty token cannot be accepted")
        with self._lock:
            self._tokens[token] = user

    def accept_only(self, token: str, user: User | None) -> None:
        with self._lock:
            known = user or self._tokens.get(token) or User(name="test-user")
            self._tokens = {token: known}

    def revoke_token(self, token: str) -> None:
        with self._lock:
            if self._tokens.pop(token, None) is None:
                raise UsageError("only a token that is accepted can be revoked")

    def accept_password(self, user: User, password: str) -> None:
        with self._lock:
            self._passwords[user.name, password] = user

    def revoke_serial(self, serial: int) -> None:
        with self._lock:
            self._revoked_serials.add(serial)

    def authenticate(self, request: Request, peer: PeerCertificate | None) -> User | None:
        """The user, or None if there is none that holds. A certificate counts before a token, as in Kubernetes."""
        authorization = request.header("authorization")
        with self._lock:
            if peer is not None and self.certificates_accepted and peer.serial not in self._revoked_serials:
                return peer.user
            if authorization is None:
                return None
            token = bearer_token(authorization)
            if token is None:
                password = _basic(authorization)
                return self._passwords.get(password) if password is not None else None
        return self.user_of_token(token)

    def user_of_token(self, token: str) -> User | None:
        """Of a token that is known here, else of one that somebody else knows, who is asked without the lock."""
        with self._lock:
            known = self._tokens.get(token)
        return self._ask(token) if known is None and token and self._ask is not None else known

    def anonymous_is_fine(self, request: Request) -> bool:
        """A credential that does not hold is refused even where none at all would do."""
        return self.allow_anonymous and request.header("authorization") is None


def bearer_token(authorization: str | None) -> str | None:
    scheme, _, value = (authorization or "").partition(" ")
    return value.strip() if scheme.lower() == "bearer" else None


def _basic(authorization: str) -> tuple[str, str] | None:
    scheme, _, value = authorization.partition(" ")
    if scheme.lower() != "basic":
        return None
    try:
        name, colon, password = base64.b64decode(value.strip(), validate=True).decode().partition(":")
    except (binascii.Error, UnicodeDecodeError):
        return None
    return (name, password) if colon else None


def effective_user(request: Request, user: User | None) -> User:
    """Whom the request acts for: the authenticated user, or the one it impersonates."""
    caller = ANONYMOUS if user is None else authenticated(user, user.groups)
    name = request.header("impersonate-user")
    uid = request.header("impersonate-uid") or ""
    groups = request.header_values("impersonate-group")
    extra: dict[str, tuple[str, ...]] = {}
    for key, value in request.headers:
        if key.lower().startswith(_EXTRA_PREFIX):
            extra_key = unquote(key.lower()[len(_EXTRA_PREFIX) :])
            extra[extra_key] = (*extra.get(extra_key, ()), value)
    if not name:
        if uid or groups or extra:
            raise ApiError(500, "Internal error occurred: requested impersonation without impersonating a user")
        return caller
    if user is None:
        raise unauthorized()
    return authenticated(User(name, (), uid, extra), groups)


def authenticated(user: User, groups: Iterable[str]) -> User:
    return User(user.name, tuple(dict.fromkeys((*groups, AUTHENTICATED))), user.uid, user.extra)
