"""ASGI middleware for Starlette, FastAPI and the like: the user of the bearer token in `scope["user"]`.

    app.add_middleware(AuthenticationMiddleware, config=Path("authn.yaml"))

`scope["auth"]` has the scopes that Starlette's `requires` asks for: `authenticated`, and `group:NAME` for each group.
WebSockets are refused before they are accepted, and closed when their token ends.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Mapping, MutableMapping
from os import PathLike, fspath
from typing import TYPE_CHECKING, Any

from kubeauthn._core.anonymous import ANONYMOUS_USER, is_anonymous_path
from kubeauthn._core.authentication.decode import TEXT_BYTES
from kubeauthn._core.authentication.load import load_configuration
from kubeauthn._core.authentication.model import AuthenticationConfiguration
from kubeauthn._core.authentication.verdict import UserInfo
from kubeauthn._core.bearer import Bearer, bearer_of, bearer_of_subprotocols, challenge
from kubeauthn._io.files import read_bounded
from kubeauthn.errors import UsageError
from kubeauthn.server.authenticator import Authenticator
from kubeauthn.server.cache import CachedAuthenticator
from kubeauthn.server.decisions import AuthenticatorDecider
from kubeauthn.server.websocket_expiry import closing_at

if TYPE_CHECKING:
    from kubeauthn.server.decisions import Decision

Scope = MutableMapping[str, Any]
Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
App = Callable[[Scope, Receive, Send], Awaitable[None]]

_REFUSED = 1008
"""The close code for a policy that was not met. Before the handshake the client sees 403, or the response itself."""


class User:
    """`scope["user"]`: the user in Kubernetes' words, with what Starlette expects of one."""

    __slots__ = ("info", "is_authenticated")

    def __init__(self, info: UserInfo, *, is_authenticated: bool) -> None:
        self.info = info
        self.is_authenticated = is_authenticated

    @property
    def username(self) -> str:
        return self.info.username

    @property
    def uid(self) -> str:
        return self.info.uid

    @property
    def groups(self) -> tuple[str, ...]:
        return self.info.groups

    @property
    def extra(self) -> Mapping[str, tuple[str, ...]]:
        return self.info.extra

    @property
    def display_name(self) -> str:
        return self.info.username

    @property
    def identity(self) -> str:
        return self.info.username

    def __repr__(self) -> str:
        return f"User({self.info.username!r})"


class Credentials:
    """`scope["auth"]`: what Starlette's `requires` looks into."""

    __slots__ = ("scopes",)

    def __init__(self, scopes: list[str]) -> None:
        self.scopes = scopes


class AuthenticationMiddleware:
    """Asks about the token of every request and WebSocket, and lets through who has a good one.

    `config` is the text of a configuration, the path of its file, or one that is loaded; or give an `authenticator`.
    `keys` are for `config`, as for `Authenticator`: without them the issuers are asked.

    Who has no token is let through as `system:anonymous` where the `anonymous` section says so, else answered 401. With
    `required=False` the latter is let through as well, as nobody (`is_authenticated` is false, no name, no scopes),
    and `requires` decides. A token that does not hold is answered 401 everywhere.
    """

    def __init__(
        self,
        app: App,
        config: str | bytes | PathLike[str] | AuthenticationConfiguration | None = None,
        *,
        authenticator: Authenticator | CachedAuthenticator | None = None,
        keys: Mapping[str, Mapping[str, Any]] | None = None,
        required: bool = True,
        close_at_expiry: bool = True,
        realm: str = "kubeauthn",
        clock: Callable[[], float] = time.time,
    ) -> None:
        if (config is None) == (authenticator is None):
            raise UsageError("expected a configuration or an authenticator, one of the two")
        if authenticator is None:
            authenticator = Authenticator(_loaded(config), keys, clock=clock)
        elif keys is not None:
            raise UsageError("an authenticator has its keys already")
        if isinstance(authenticator, Authenticator):
            authenticator = CachedAuthenticator(authenticator, clock=clock)
        self.app = app
        self._decider = AuthenticatorDecider(authenticator, clock=clock)
        self._sources = authenticator.uncached.key_sources
        self._anonymous = authenticator.uncached.configuration.anonymous
        self._required = required
        self._close_at_expiry = close_at_expiry
        self._realm = realm
        self._clock = clock

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        kind = scope["type"]
        if kind == "http":
            await self._http(scope, receive, send)
        elif kind == "websocket":
            await self._websocket(scope, receive, send)
        elif kind == "lifespan":
            await self._lifespan(scope, receive, send)
        else:
            # What is not known here cannot be checked here, and so is not passed on.
            raise UsageError(f"expected a scope of http, websocket or lifespan, got {kind!r}")

    async def _http(self, scope: Scope, receive: Receive, send: Send) -> None:
        verdict = await self._verdict(scope, bearer_of(_values(scope, b"authorization")))
        if isinstance(verdict, _Refusal):
            await send({"type": "http.response.start", "status": verdict.status, "headers": verdict.headers()})
            await send({"type": "http.response.body", "body": verdict.body()})
            return
        await self.app(verdict.put_into(scope), receive, send)

    async def _websocket(self, scope: Scope, receive: Receive, send: Send) -> None:
        in_protocol, others = bearer_of_subprotocols(scope.get("subprotocols") or [])
        bearer = bearer_of(_values(scope, b"authorization"))
        if bearer.token and (in_protocol.token or in_protocol.fault):
            bearer = Bearer(in_protocol.token, "expected a token in a header or in a subprotocol, got both")
        elif not bearer.token and not bearer.fault:
            bearer = in_protocol
        verdict = await self._verdict(scope, bearer)
        if isinstance(verdict, _Refusal):
            await _refuse_websocket(scope, receive, send, verdict)
            return
        passed = verdict.put_into(scope)
        passed["subprotocols"] = others
        passed["headers"] = _without_token(scope["headers"], others)
        if self._close_at_expiry and verdict.ends is not None:
            receive, send = closing_at(verdict.ends - self._clock(), receive, send)
        await self.app(passed, receive, send)

    async def _verdict(self, scope: Scope, bearer: Bearer) -> _Admitted | _Refusal:
        if bearer.fault:
            return _Refusal(401, bearer.fault, challenge(self._realm, "invalid_request", bearer.fault))
        if bearer.token:
            return self._of(await self._decider.decide(bearer.token.reveal()))
        if is_anonymous_path(self._anonymous, scope["path"]):
            return _Admitted(User(ANONYMOUS_USER, is_authenticated=False), _group_scopes(ANONYMOUS_USER), None)
        if not self._required:
            return _Admitted(User(UserInfo(""), is_authenticated=False), [], None)
        return _Refusal(401, "a bearer token is required", challenge(self._realm))

    def _of(self, decision: Decision) -> _Admitted | _Refusal:
        if decision.outcome == "authenticated" and decision.user is not None:
            user = User(decision.user, is_authenticated=True)
            return _Admitted(user, ["authenticated", *_group_scopes(decision.user)], decision.expires_at)
        text = decision.public_message
        if decision.outcome == "failed":
            return _Refusal(503, text, "")
        return _Refusal(401, text, challenge(self._realm, "invalid_token", text))

    async def _lifespan(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Keys are kept fresh while the application lives. Without a lifespan the first token fetches them."""
        runs = [run for source in self._sources.values() if (run := getattr(source, "run", None)) is not None]
        tasks = [asyncio.create_task(run()) for run in runs]
        try:
            await self.app(scope, receive, send)
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)


class _Admitted:
    def __init__(self, user: User, scopes: list[str], ends: float | None) -> None:
        self.user = user
        self.scopes = scopes
        self.ends = ends

    def put_into(self, scope: Scope) -> dict[str, Any]:
        return {**scope, "user": self.user, "auth": Credentials(self.scopes)}


class _Refusal:
    def __init__(self, status: int, text: str, www_authenticate: str) -> None:
        self.status = status
        self._text = text
        self._www_authenticate = www_authenticate

    def body(self) -> bytes:
        return self._text.encode()

    def headers(self) -> list[tuple[bytes, bytes]]:
        own = (b"www-authenticate", self._www_authenticate.encode("ascii")) if self._www_authenticate else None
        return [
            (b"content-type", b"text/plain; charset=utf-8"),
            (b"content-length", str(len(self.body())).encode()),
            (b"cache-control", b"no-store"),
            own or (b"retry-after", b"5"),
        ]


async def _refuse_websocket(scope: Scope, receive: Receive, send: Send, refusal: _Refusal) -> None:
    await receive()  # websocket.connect: nothing may be sent before it
    if "websocket.http.response" in (scope.get("extensions") or {}):
        start = {"type": "websocket.http.response.start", "status": refusal.status, "headers": refusal.headers()}
        await send(start)
        await send({"type": "websocket.http.response.body", "body": refusal.body()})
    else:
        await send({"type": "websocket.close", "code": _REFUSED, "reason": "unauthorized"})


def _values(scope: Scope, wanted: bytes) -> list[str]:
    return [value.decode("latin-1") for name, value in scope["headers"] if name.lower() == wanted]


def _without_token(headers: Any, subprotocols: list[str]) -> list[tuple[bytes, bytes]]:
    """The application, and what it logs, does not see a token in a header where nobody expects one."""
    name = b"sec-websocket-protocol"
    kept = [pair for pair in headers if pair[0].lower() != name]
    return [*kept, (name, ", ".join(subprotocols).encode("latin-1"))] if subprotocols else kept


def _group_scopes(user: UserInfo) -> list[str]:
    return [f"group:{group}" for group in user.groups]


def _loaded(config: str | bytes | PathLike[str] | AuthenticationConfiguration | None) -> AuthenticationConfiguration:
    if isinstance(config, AuthenticationConfiguration):
        return config
    if isinstance(config, str | bytes):
        return load_configuration(config)
    if config is None:
        raise UsageError("expected a configuration")
    return load_configuration(read_bounded(fspath(config), TEXT_BYTES))
