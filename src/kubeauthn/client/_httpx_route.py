"""The way to a local proxy for httpx and httpx2: a network backend that dials it, whatever host is asked for."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from kubeauthn._core.execproxy import LOOPBACK, ProxyRoute
from kubeauthn._io.dialing import connect as dial
from kubeauthn._io.dialing import nobody_listens, not_the_proxy, socket_address


def lead_through(transport: Any, route: ProxyRoute, core: Any) -> None:
    """From now on every connection of this library transport goes to the proxy. `core` is its httpcore."""
    pool = transport._pool
    if isinstance(pool, core.AsyncConnectionPool):
        pool._network_backend = AsyncRouteBackend(pool._network_backend, route, core.ConnectError)
    else:
        pool._network_backend = RouteBackend(pool._network_backend, route, core)


class RouteBackend:
    def __init__(self, inner: Any, route: ProxyRoute, core: Any) -> None:
        self._inner = inner
        self._route = route
        self._core = core
        # The library's own dialling leaves the socket open where nobody listens; its stream takes one of ours.
        self._stream = import_module(f"{core.__name__}._backends.sync").SyncStream

    def connect_tcp(self, host: str, port: int, timeout: float | None = None, **options: Any) -> Stream:
        try:
            connection = dial(self._route, timeout)
        except TimeoutError as error:
            raise self._core.ConnectTimeout(str(error)) from None
        return Stream(self._stream(connection), self._route, self._core.ConnectError)

    def sleep(self, seconds: float) -> None:
        self._inner.sleep(seconds)


class Stream:
    """A connection on which nothing happens but the TLS handshake, which gives the real one."""

    def __init__(self, inner: Any, route: ProxyRoute, connect_error: type[Exception]) -> None:
        self._inner = inner
        self._route = route
        self._connect_error = connect_error

    def start_tls(self, ssl_context: Any, server_hostname: str | None = None, timeout: float | None = None) -> Any:
        try:
            return self._inner.start_tls(ssl_context, server_hostname, timeout)
        except self._connect_error as error:
            raise not_the_proxy(self._route, error.__cause__ or error) from None

    def close(self) -> None:
        self._inner.close()


class AsyncRouteBackend:
    def __init__(self, inner: Any, route: ProxyRoute, connect_error: type[Exception]) -> None:
        self._inner = inner
        self._route = route
        self._connect_error = connect_error

    async def connect_tcp(self, host: str, port: int, timeout: float | None = None, **options: Any) -> AsyncStream:
        route = self._route
        options.pop("local_address", None)
        try:
            if route.socket_path:
                with socket_address(route.socket_path) as path:
                    stream = await self._inner.connect_unix_socket(path, timeout=timeout, **options)
            else:
                stream = await self._inner.connect_tcp(LOOPBACK, route.port, timeout=timeout, **options)
        except self._connect_error as error:
            raise nobody_listens(route, error) from None
        return AsyncStream(stream, route, self._connect_error)

    async def sleep(self, seconds: float) -> None:
        await self._inner.sleep(seconds)


class AsyncStream:
    def __init__(self, inner: Any, route: ProxyRoute, connect_error: type[Exception]) -> None:
        self._inner = inner
        self._route = route
        self._connect_error = connect_error

    async def start_tls(
        self, ssl_context: Any, server_hostname: str | None = None, timeout: float | None = None
    ) -> Any:
        try:
            return await self._inner.start_tls(ssl_context, server_hostname, timeout)
        except self._connect_error as error:
            raise not_the_proxy(self._route, error.__cause__ or error) from None

    async def aclose(self) -> None:
        await self._inner.aclose()
