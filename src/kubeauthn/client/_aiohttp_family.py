"""What every adapter that stands on aiohttp shares: a middleware, and a request class that obeys it.

The middleware decides (destination, credential, one repetition after a 401). The request class carries
the decision to aiohttp: which TLS context, hence which connections. Both are given to a session as
options, so that it does not matter who makes the session; nothing here belongs to an event loop.
"""

from __future__ import annotations

import asyncio
import threading
import weakref
from ssl import SSLContext
from typing import Any, Final

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
    from aiohttp.client_proto import ResponseHandler
    from aiohttp.client_reqrep import ConnectionKey
    from aiohttp.connector import Connection
    from multidict import CIMultiDict, CIMultiDictProxy
except ImportError:  # not there, or older than client middlewares
    raise MissingExtra("aiohttp 3.12 or newer", "aiohttp") from None

_PROXY_SCHEMES: Final = ("http", "https")
_NO_HEADERS: Final = CIMultiDictProxy[str](CIMultiDict())
_TLS_FIELD: Final = ConnectionKey._fields.index("ssl")
_PLAIN_SCHEMES: Final = {"wss": "https", "ws": "http"}


class Connections:
    """What was dialled with one certificate: the TLS context for it, and the connections made with that.

    Several event loops may use it; each connection is touched in its own loop only.
    """

    def __init__(self, context: SSLContext, route: ProxyRoute | None = None) -> None:
        self.context = context
        self.route = route
        """The local proxy that they lead to; None: they lead where the URL says."""
        self._lock = threading.Lock()
        self._loops: weakref.WeakKeyDictionary[ResponseHandler, asyncio.AbstractEventLoop] = weakref.WeakKeyDictionary()
        self._busy: set[ResponseHandler] = set()
        self._retired = False

    def take(self, connection: Connection, loop: asyncio.AbstractEventLoop) -> None:
        """A request goes out on this connection."""
        protocol = connection.protocol
        if protocol is None:
            return
        if protocol not in self._loops:
            with self._lock:
                self._loops[protocol] = loop
        self._busy.add(protocol)
        connection.add_callback(lambda: self._busy.discard(protocol))
        if self._retired:
            protocol.force_close()

    def retire(self) -> None:
        """Close what is idle now, and the rest as soon as its response ends: no request starts on them again."""
        with self._lock:
            self._retired = True
            connections = list(self._loops.items())
        for protocol, loop in connections:
            if loop is asyncio.get_running_loop():
                self._let_go(protocol)
                continue
            try:
                loop.call_soon_threadsafe(self._let_go, protocol)
            except RuntimeError:
                continue  # that loop is closed, and its connections with it

    def _let_go(self, protocol: ResponseHandler) -> None:
        if protocol in self._busy:
            protocol.force_close()
        else:
            protocol.close()


class PreparedRequest(ClientRequest):
    """A request that goes nowhere before the middleware has chosen its connections.

    aiohttp keeps connections apart by the TLS context that the request names.
    """

    connections: Connections | None = None

    @property
    def ssl(self) -> SSLContext:
        if self.connections is None:
            # `middlewares=` of one request replaces those of the session.
            raise UsageError(
                "this request did not pass the middleware that authenticates it, and is not sent",
                hint="give middlewares to the session, not to the request",
            )
        return self.connections.context

    @property
    def connection_key(self) -> ConnectionKey:
        key = super().connection_key
        # What `_replace(ssl=…)` does, in less than half its time: each request asks.
        return tuple.__new__(ConnectionKey, (*key[:_TLS_FIELD], self.ssl, *key[_TLS_FIELD + 1 :]))

    async def send(self, conn: Connection) -> ClientResponse:
        if self.connections is not None:
            self.connections.take(conn, self.loop)
        return await super().send(conn)


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
        self._prepare(request)
        if hdrs.AUTHORIZATION in request.headers:
            request.connections = self._generations.bare_pool()
            return await _handle(request, handler)
        credential = await access.credential_async()
        if credential.route is None:
            response = await self._send(request, handler, credential)
        else:
            credential, response = await send_routed_async(
                access,
                credential,
                lambda chosen: self._send(request, handler, chosen),
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
        response = await self._send(request, handler, renewed)
        access.answered(renewed, response.status)
        return response

    def _connections_for(self, identity: ClientIdentity | None) -> Connections:
        route = identity.route if isinstance(identity, ProxyIdentity) else None
        return Connections(self.access.tls_context(identity), route)

    def _prepare(self, request: ClientRequest) -> None:
        """Check where it goes, and add the fixed headers."""
        url = request.url
        destination = (url.scheme, url.raw_host, url.port)
        if destination not in self._known_destinations:
            self.access.check_destination(str(url.with_scheme(_PLAIN_SCHEMES.get(url.scheme, url.scheme))))
            self._known_destinations.add(destination)
        if self._base_path and not f"{url.raw_path}/".startswith(f"{self._base_path}/"):
            request.url = url.with_path(self._base_path + url.raw_path, encoded=True, keep_query=True)
        if self._fixed_headers:
            for name in self._fixed_headers:
                request.headers.popall(name, None)
            for name, value in self.access.headers:
                request.headers.add(name, value)

    async def _send(
        self, request: PreparedRequest, handler: ClientHandlerType, credential: Credential
    ) -> ClientResponse:
        if credential.route is not None:
            dial_routes(request.session.connector)
        request.connections, retired = self._generations.pool_for(credential)
        for old in retired:
            old.retire()
        if credential.authorization is None:
            return await _handle(request, handler)
        # Taken off again, so that the token is not found in response.request_info, which errors print.
        request.headers[hdrs.AUTHORIZATION] = credential.authorization.reveal()
        try:
            return await _handle(request, handler)
        finally:
            request.headers.popall(hdrs.AUTHORIZATION, None)

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
    except aiohttp.ClientConnectorError as error:
        # The signer's own error, not the connection's around it.
        if isinstance(error.os_error, CredentialError):
            raise error.os_error from error.os_error.__cause__
        raise
    except aiohttp.ClientHttpProxyError as error:
        # It prints the request that the proxy refused: the proxy's address and headers, and in both the password.
        asked = error.request_info
        error.request_info = asked._replace(
            url=asked.url.with_user(None), real_url=asked.real_url.with_user(None), headers=_NO_HEADERS
        )
        error.args = (error.request_info, error.history)
        raise


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
