"""urllib3 with the credential of an `Access`: what the adapters for requests and kubernetes stand on.

`CredentialPool` looks like a `urllib3.PoolManager` from outside. Inside it keeps one per client
certificate, because a TLS connection keeps the identity it was made with.
"""

from __future__ import annotations

import socket
import ssl
from collections.abc import Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, NoReturn
from urllib.parse import unquote

from urllib3 import BaseHTTPResponse, HTTPConnectionPool, HTTPHeaderDict, PoolManager, ProxyManager, make_headers
from urllib3.connection import HTTPSConnection
from urllib3.exceptions import ClosedPoolError, HTTPError, ProtocolError, SSLError
from urllib3.util import parse_url

from kubeauthn._core.credential import ClientIdentity, Credential
from kubeauthn._core.execproxy import TLS_NAME, ProxyIdentity, ProxyRoute
from kubeauthn._io.dialing import connect as dial
from kubeauthn._io.dialing import not_the_proxy
from kubeauthn.client.access import Access, is_idempotent
from kubeauthn.client.generations import Generations
from kubeauthn.client.routed import send_routed
from kubeauthn.errors import MissingExtra, UsageError

Headers = dict[str, str] | HTTPHeaderDict

# The rest of a refused answer is read so that its connection can serve again; more than this is not worth it.
_REFUSAL_BYTES = 64 * 1024


class CredentialPool(PoolManager):
    """Sends requests with the credential of `access`; token, certificate or both.

    `options` are those of a urllib3 connection pool, less what concerns TLS and the proxy: the
    kubeconfig decides about these. `placeholder` is an `Authorization` that stands for "none given".
    """

    def __init__(self, access: Access, *, placeholder: str | None = None, **options: Any) -> None:
        super().__init__()
        self.access = access
        self._placeholder = placeholder
        # http.client writes Latin-1, and names are UTF-8 on the wire: "jürgen" would be somebody else.
        self._fixed_for_http_client = [(name, value.encode().decode("latin-1")) for name, value in access.headers]
        self._generations = Generations(lambda identity: _pool(access, identity, options))

    def urlopen(  # type: ignore[override]  # as PoolManager itself overrides its base class
        self, method: str, url: str, redirect: bool = True, **kw: Any
    ) -> BaseHTTPResponse:
        access = self.access
        access.check_destination(url)  # before a plugin runs for it
        headers, brings_its_own = self.outgoing(kw.pop("headers", None), self._fixed_for_http_client)
        kw["redirect"] = redirect
        if brings_its_own:
            return _send(self.pool_for(None), method, url, headers, kw)
        credential = access.credential()
        if credential.route is None:
            response = _send(self.pool_for(credential), method, url, with_credential(headers, credential), kw)
        else:
            credential, response = send_routed(
                access,
                credential,
                lambda chosen: _send(self.pool_for(chosen), method, url, with_credential(headers, chosen), kw),
                may_repeat=lambda: is_idempotent(method) and _can_be_sent_again(kw.get("body")),
                broken=(ProtocolError,),
            )
        if response.status != 401:
            access.accepted(credential)
            return response
        renewed = access.renew(credential)
        if renewed is None or not access.may_repeat(method) or not _can_be_sent_again(kw.get("body")):
            return response
        _let_go(response)
        response = _send(self.pool_for(renewed), method, url, with_credential(headers, renewed), kw)
        access.answered(renewed, response.status)
        return response

    def clear(self) -> None:
        """Close what is idle now, and what is busy when it is done. The pool can still be used."""
        for pool in self._generations.drain():
            pool.clear()

    def outgoing(self, given: Mapping[str, str] | None, fixed: Sequence[tuple[str, str]]) -> tuple[Headers, bool]:
        """The headers of a request with the fixed ones, and whether it brings its own `Authorization`."""
        headers: dict[str, str] = {}
        brings_its_own = False
        for name, value in (given or {}).items():
            if name.lower() == "authorization":
                if value == self._placeholder:
                    continue
                brings_its_own = True
            headers[name] = value
        if not fixed:
            return headers, brings_its_own
        # Impersonated groups are headers of one name, which only urllib3's own mapping can hold.
        complete = HTTPHeaderDict(headers)
        for name, _ in fixed:
            complete.discard(name)
        for name, value in fixed:
            complete.add(name, value)
        return complete, brings_its_own

    def pool_for(self, credential: Credential | None) -> PoolManager:
        """The connections that show this credential's certificate; None: those that show none."""
        if credential is None:
            return self._generations.bare_pool()
        pool, retired = self._generations.pool_for(credential)
        for old in retired:
            old.clear()
        return pool

    def _new_pool(self, *args: Any, **kwargs: Any) -> NoReturn:
        # connection_from_url and its like end here: what they return would send requests without the credential.
        raise UsageError("a CredentialPool has no bare connections: use its request or urlopen")


def with_credential(headers: Headers, credential: Credential) -> Headers:
    # Always a copy: the caller's own headers, which others may log, never hold the token.
    complete = headers.copy()
    if credential.authorization is not None:
        complete["Authorization"] = credential.authorization.reveal()
    return complete


if TYPE_CHECKING:
    _Base = PoolManager
else:
    _Base = object


class _OwnServerOnly(_Base):
    """Connections to one server. Redirects pass here too: each hop is checked before anything goes out."""

    access: Access
    _connections: HTTPConnectionPool | None = None

    def urlopen(self, method: str, url: str, redirect: bool = True, **kw: Any) -> BaseHTTPResponse:  # type: ignore[override]
        self.access.check_destination(url)
        return super().urlopen(method, url, redirect=redirect, **kw)

    def connection_from_host(self, *args: Any, **kwargs: Any) -> HTTPConnectionPool:
        # There is one server, so there is one pool; urllib3's search for it takes longer than all that we add.
        connections = self._connections
        if connections is None or connections.pool is None:
            connections = self._connections = super().connection_from_host(*args, **kwargs)
        return connections


class _DirectPool(_OwnServerOnly, PoolManager):
    pass


class _RoutedPool(_DirectPool):
    """Connections to a plugin's local proxy, whatever the address in the URL."""

    def __init__(self, access: Access, route: ProxyRoute, arguments: dict[str, Any]) -> None:
        super().__init__(**arguments, server_hostname=TLS_NAME)
        self.access = access
        self._route = route
        self.pools.dispose_func = HTTPConnectionPool.close

    def connection_from_host(self, *args: Any, **kwargs: Any) -> HTTPConnectionPool:
        connections = super().connection_from_host(*args, **kwargs)
        if connections.ConnectionCls is HTTPSConnection:
            connections.ConnectionCls = partial(_RoutedConnection, self._route)  # type: ignore[assignment]
        return connections


class _RoutedConnection(HTTPSConnection):
    def __init__(self, route: ProxyRoute, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._route = route

    def _new_conn(self) -> socket.socket:
        limit = self.timeout if isinstance(self.timeout, int | float) else None
        return dial(self._route, limit)

    def connect(self) -> None:
        try:
            super().connect()
        except (SSLError, ssl.SSLError, ConnectionError) as error:
            self.close()
            raise not_the_proxy(self._route, error) from None
        if self.sock is not None:
            # Whoever takes the socket over, as a websocket does, holds on to the proxy with it.
            vars(self.sock)["kubeauthn_route"] = self._route


class _ProxiedPool(_OwnServerOnly, ProxyManager):
    pass


def _pool(access: Access, identity: ClientIdentity | None, options: dict[str, Any]) -> PoolManager:
    arguments = {**options, "ssl_context": access.tls_context(identity)}
    if isinstance(identity, ProxyIdentity):
        return _RoutedPool(access, identity.route, arguments)
    if access.cluster.tls_server_name:
        arguments["server_hostname"] = access.cluster.tls_server_name
    pool = _routed_pool(access, arguments)
    pool.access = access
    # Without this, clear() leaves idle connections open as long as a watch on the same pool goes on.
    pool.pools.dispose_func = HTTPConnectionPool.close
    return pool


def _routed_pool(access: Access, arguments: dict[str, Any]) -> _OwnServerOnly:
    proxy_url = access.cluster.proxy_url
    if not proxy_url:
        return _DirectPool(**arguments)
    if proxy_url.lower().startswith("socks5"):
        return _socks_pool(proxy_url, arguments)
    proxy = parse_url(proxy_url)
    return _ProxiedPool(
        proxy_url,
        proxy_headers=make_headers(proxy_basic_auth=unquote(proxy.auth)) if proxy.auth else None,
        proxy_ssl_context=access.proxy_tls_context() if proxy.scheme == "https" else None,
        **arguments,
    )


def _socks_pool(proxy_url: str, arguments: dict[str, Any]) -> _OwnServerOnly:
    try:
        import socks  # type: ignore[import-untyped]  # noqa: F401  urllib3 only warns where it is missing
    except ImportError:
        raise MissingExtra("PySocks", "socks") from None
    from urllib3.contrib.socks import SOCKSProxyManager

    class SocksPool(_OwnServerOnly, SOCKSProxyManager):
        pass

    # Names are looked up by the proxy, as kubectl has it: that is what urllib3 calls socks5h.
    return SocksPool("socks5h:" + proxy_url.partition(":")[2], **arguments)


def _send(pool: PoolManager, method: str, url: str, headers: Headers, kw: dict[str, Any]) -> BaseHTTPResponse:
    try:
        return pool.urlopen(method, url, headers=headers, **kw)
    except ClosedPoolError:
        # Another thread saw a new certificate between our look into the pool and our taking a connection from it.
        # Nothing was sent; the same pool opens a new connection.
        return pool.urlopen(method, url, headers=headers, **kw)


def _can_be_sent_again(body: object) -> bool:
    return body is None or isinstance(body, str | bytes | bytearray)


def _let_go(response: BaseHTTPResponse) -> None:
    """Give the connection of an answer that nobody wants back to its pool, or close it if the rest is long."""
    try:
        response.read(_REFUSAL_BYTES, decode_content=False)
    except (HTTPError, OSError):
        pass
    if response.connection is not None:
        response.close()
        response.release_conn()
