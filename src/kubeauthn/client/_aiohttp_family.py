"""What every adapter that stands on aiohttp shares: a middleware, and a request class that obeys it.

The middleware decides (destination, credential, one repetition after a 401). The request class carries
the decision to aiohttp: which TLS context, hence which connections. Both are given to a session as
options, so that it does not matter who makes the session; nothing here belongs to an event loop.
"""

from __future__ import annotations

import asyncio
import threading
import weakref
from collections.abc import Callable
from ssl import SSLContext
from typing import Any, Final, NoReturn

from kubeauthn._core.credential import ClientIdentity, Credential
from kubeauthn._core.execproxy import ProxyIdentity, ProxyRoute
from kubeauthn.client._aiohttp_route import dial_routes
from kubeauthn.client.access import Access, is_idempotent
from kubeauthn.client.generations import Generations
from kubeauthn.client.routed import send_routed_async
from kubeauthn.errors import CredentialError, MissingExtra, UsageError

try:
    import aiohttp
    from aiohttp import ClientHandlerType, ClientRequest, ClientResponse, hdrs
    from aiohttp.client_reqrep import ConnectionKey
    from aiohttp.connector import BaseConnector
    from multidict import CIMultiDict, CIMultiDictProxy
except ImportError:  # not there, or older than client middlewares
    raise MissingExtra("aiohttp 3.12 or newer", "aiohttp") from None

_PROXY_SCHEMES: Final = ("http", "https")
_TELLING: Final = (aiohttp.ClientConnectorError, aiohttp.ClientHttpProxyError)
"""Errors of aiohttp that hide one of ours, or print what is secret."""
_NO_HEADERS: Final = CIMultiDictProxy[str](CIMultiDict())
_PLAIN_SCHEMES: Final = {"wss": "https", "ws": "http"}
_connection_key: Final[Callable[[ClientRequest], ConnectionKey]] = ClientRequest.connection_key.fget  # type: ignore[attr-defined]

Destination = tuple[str, str | None, int | None]


class Connections:
    """What was dialled with one certificate: the TLS context for it, and the connectors that dialled with that.

    Several event loops may use it; a connection is touched in its own loop only.
    """

    def __init__(self, context: SSLContext, route: ProxyRoute | None = None) -> None:
        self.context = context
        self.route = route
        """The local proxy that they lead to; None: they lead where the URL says."""
        self.retired = False
        self.keys: dict[Destination, ConnectionKey] = {}
        """What aiohttp files the connections under, for requests that go straight to their destination."""
        self._lock = threading.Lock()
        self._loops: weakref.WeakKeyDictionary[BaseConnector, asyncio.AbstractEventLoop] = weakref.WeakKeyDictionary()
        self._last: Callable[[], BaseConnector | None] = _nothing

    def dialled_by(self, connector: BaseConnector, loop: asyncio.AbstractEventLoop) -> None:
        """A request goes out by this connector, which dials if it has no connection of ours."""
        if connector is self._last():
            return
        with self._lock:
            self._loops[connector] = loop
            self._last = weakref.ref(connector)

    def retire(self) -> None:
        """Close what is idle now, and the rest as soon as its response ends: no request starts on them again."""
        with self._lock:
            self.retired = True
            connectors = list(self._loops.items())
        for connector, loop in connectors:
            if loop is asyncio.get_running_loop():
                self.let_go(connector)
                continue
            try:
                loop.call_soon_threadsafe(self.let_go, connector)
            except RuntimeError:
                continue  # that loop is closed, and its connections with it

    def let_go(self, connector: BaseConnector) -> None:
        for key, idle in connector._conns.items():
            if key.ssl is self.context:
                for protocol, _ in idle:
                    protocol.close()
        for protocol in connector._acquired:
            transport = protocol.transport
            if transport is not None and transport.get_extra_info("sslcontext") is self.context:
                protocol.force_close()


def _nothing() -> None:
    """A weak reference to none."""


class _ChosenByTheMiddleware:
    """An attribute of a request that only the middleware sets: an instance's own value hides this one."""

    def __get__(self, request: object, owner: object) -> NoReturn:
        # `middlewares=` of one request replaces those of the session.
        raise UsageError(
            "this request did not pass the middleware that authenticates it, and is not sent",
            hint="give middlewares to the session, not to the request",
        )


class PreparedRequest(ClientRequest):
    """A request that goes nowhere before the middleware has chosen its connections.

    aiohttp asks for `connection_key` first of all, and keeps connections apart by the TLS context in it; it asks for
    `ssl` when it dials.
    """

    connections: Connections
    connection_key: ConnectionKey = _ChosenByTheMiddleware()  # type: ignore[assignment]
    ssl: SSLContext = _ChosenByTheMiddleware()  # type: ignore[assignment]

    def lead_to(self, connections: Connections, destination: Destination) -> None:
        """Connections are chosen once more when a refused request is repeated with a new certificate."""
        self.connections = connections
        self.ssl = connections.context
        straight = self.proxy is None and self.server_hostname is None
        key = connections.keys.get(destination) if straight else None
        if key is None:
            key = _connection_key(self)._replace(ssl=connections.context)
            if straight:
                connections.keys[destination] = key
        self.connection_key = key
        connector = self.session.connector
        if connector is not None:
            connections.dialled_by(connector, self.loop)


class Authentication:
    """The middleware. One for all sessions of an `Access`.

    `base_path` is the path of the server's address, where the session is used with paths below it.
    `repeat_any` is for callers who would themselves repeat whatever was refused with a 401.
    """

    def __init__(self, access: Access, *, base_path: str = "", repeat_any: bool = False) -> None:
        self.access = access
        self._base_path = base_path.rstrip("/")
        self._repeat_any = repeat_any
        self._fixed_headers = {name for name, _ in access.headers}
        self._known_destinations: set[tuple[str, str | None, int | None]] = set()
        self._generations = Generations(self._connections_for)

    def __deepcopy__(self, memo: dict[int, Any]) -> Authentication:
        return self  # copies of a library's configuration are configurations for the same access

    async def __call__(self, request: ClientRequest, handler: ClientHandlerType) -> ClientResponse:
        if not isinstance(request, PreparedRequest):
            raise UsageError("the session was made without request_class=PreparedRequest")
        access = self.access
        url = request.url
        destination = (url.scheme, url.raw_host, url.port)
        if destination not in self._known_destinations:
            access.check_destination(str(url.with_scheme(_PLAIN_SCHEMES.get(url.scheme, url.scheme))))
            self._known_destinations.add(destination)
        if self._base_path or self._fixed_headers:
            self._complete(request)
        if hdrs.AUTHORIZATION in request.headers:
            request.lead_to(self._generations.bare_pool(), destination)
            return await _handle(request, handler)
        credential = access.credential_at_hand() or await access.credential_async()
        if credential.route is None:
            response = await self._send(request, handler, credential, destination)
        else:
            credential, response = await send_routed_async(
                access,
                credential,
                lambda chosen: self._send(request, handler, chosen, destination),
                may_repeat=lambda: is_idempotent(request.method) and _at_hand(request),
                broken=(aiohttp.ServerDisconnectedError, aiohttp.ClientOSError),
            )
        if response.status != 401:
            access.accepted(credential)
            return response
        try:
            renewed = await access.renew_async(credential)
        except BaseException:
            response.close()
            raise
        if renewed is None or not self._may_repeat(request):
            return response
        response.release()
        response = await self._send(request, handler, renewed, destination)
        access.answered(renewed, response.status)
        return response

    def _connections_for(self, identity: ClientIdentity | None) -> Connections:
        route = identity.route if isinstance(identity, ProxyIdentity) else None
        return Connections(self.access.tls_context(identity), route)

    def _complete(self, request: ClientRequest) -> None:
        """The server's own path before the request's, and the fixed headers."""
        url = request.url
        if self._base_path and not f"{url.raw_path}/".startswith(f"{self._base_path}/"):
            request.url = url.with_path(self._base_path + url.raw_path, encoded=True, keep_query=True)
        for name in self._fixed_headers:
            request.headers.popall(name, None)
        for name, value in self.access.headers:
            request.headers.add(name, value)

    async def _send(
        self, request: PreparedRequest, handler: ClientHandlerType, credential: Credential, destination: Destination
    ) -> ClientResponse:
        if credential.route is not None:
            dial_routes(request.session.connector)
        connections, retired = self._generations.pool_for(credential)
        for old in retired:
            old.retire()
        request.lead_to(connections, destination)
        headers = request.headers
        if credential.authorization is not None:
            headers[hdrs.AUTHORIZATION] = credential.authorization.reveal()
        try:
            response = await handler(request)
        except _TELLING as error:
            _mind_what_it_tells(error)
            raise
        finally:
            # Taken off again, so that the token is not found in response.request_info, which errors print.
            headers.popall(hdrs.AUTHORIZATION, None)
        if connections.retired and request.session.connector is not None:
            connections.let_go(request.session.connector)  # dialled, perhaps, after all others were let go
        return response

    def _may_repeat(self, request: ClientRequest) -> bool:
        """Idempotent, and its body is at hand rather than streamed away."""
        allowed = self.access.retry_unauthorized if self._repeat_any else self.access.may_repeat(request.method)
        return allowed and _at_hand(request)


def _at_hand(request: ClientRequest) -> bool:
    """Whether its body can be sent again."""
    return not request.body or isinstance(request.body, aiohttp.BytesPayload)


async def _handle(request: ClientRequest, handler: ClientHandlerType) -> ClientResponse:
    try:
        return await handler(request)
    except _TELLING as error:
        _mind_what_it_tells(error)
        raise


def _mind_what_it_tells(error: aiohttp.ClientError) -> None:
    if isinstance(error, aiohttp.ClientConnectorError) and isinstance(error.os_error, CredentialError):
        # The signer's own error, not the connection's around it.
        raise error.os_error from error.os_error.__cause__
    if isinstance(error, aiohttp.ClientHttpProxyError):
        # It prints the request that the proxy refused: the proxy's address and headers, and in both the password.
        asked = error.request_info
        error.request_info = asked._replace(
            url=asked.url.with_user(None), real_url=asked.real_url.with_user(None), headers=_NO_HEADERS
        )
        error.args = (error.request_info, error.history)


def session_options(access: Access, authentication: Authentication | None = None) -> dict[str, Any]:
    """The options with which any `aiohttp.ClientSession` is one for this access."""
    return {
        "middlewares": (authentication or Authentication(access),),
        "request_class": PreparedRequest,
        "proxy": _proxy(access),
        # The proxy in effect is already known and is the only one to use; so is the credential (.netrc).
        "trust_env": False,
    }


def _proxy(access: Access) -> str | None:
    proxy = access.cluster.proxy_url
    if not proxy:
        return None
    scheme = proxy.partition("://")[0].lower()
    if scheme not in _PROXY_SCHEMES:
        raise UsageError(
            f"aiohttp goes through http and https proxies, not {scheme}",
            hint="kubeauthn.client.connect_async, and the adapters for httpx and httpx2, speak socks5",
        )
    return proxy
