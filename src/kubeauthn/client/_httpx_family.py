"""Transports and auth for httpx and httpx2: two libraries of one shape that refuse each other's objects.

`family(httpx2)` makes the classes for the library it is given, so that the logic stands once.
"""

from __future__ import annotations

import contextlib
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Generator, Iterator
from functools import cache
from types import ModuleType, SimpleNamespace
from typing import Any

from kubeauthn._core.credential import ClientIdentity, Credential
from kubeauthn._core.execproxy import ProxyIdentity
from kubeauthn.client._httpx_connections import Connections
from kubeauthn.client._httpx_outgoing import Carried, Outgoing, RawHeaders, Request
from kubeauthn.client.access import Access
from kubeauthn.client.generations import Generations
from kubeauthn.client.routed import send_routed, send_routed_async
from kubeauthn.errors import MissingExtra, UsageError

Response = Any

SECONDS = 30.0
"""Default time limit of each step of a request. A watch wants `timeout=None`."""

REFUSAL_BYTES = 64 * 1024
"""So much of a 401's body is read, to keep its connection, before the request is repeated."""

# What decides whereto and as whom: the kubeconfig says it, and a second opinion would silently win or lose.
DECIDED = ("transport", "mounts", "verify", "cert", "proxy", "trust_env")
# What the client classes take and give on to a transport, if they make it themselves.
FOR_TRANSPORT = ("http1", "http2", "limits")


def client_and_transport_options(access: Access, options: dict[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """Split what a caller gave for `Client` or `AsyncClient` of the library."""
    refuse_decided(options)
    transport = {name: options[name] for name in FOR_TRANSPORT if name in options}
    rest = {name: value for name, value in options.items() if name not in transport}
    return {"base_url": access.server, "timeout": SECONDS, "trust_env": False, **rest}, transport


def refuse_decided(options: dict[str, Any], decided: tuple[str, ...] = DECIDED) -> None:
    for name in decided:
        if name in options:
            raise UsageError(f"{name} cannot be given: the kubeconfig decides it")


@cache
def family(library: ModuleType) -> SimpleNamespace:
    """The classes `Auth`, `Transport` and `AsyncTransport` for this library."""

    class ResponseStream(library.SyncByteStream):  # type: ignore[misc,name-defined]
        """A response body that tells when its connection is free again."""

        def __init__(self, inner: Any, connections: Connections) -> None:
            self._inner = inner
            self._connections = connections
            self._open = True

        def __iter__(self) -> Iterator[bytes]:
            return iter(self._inner)

        def close(self) -> None:
            if not self._open:
                return
            self._open = False
            try:
                self._inner.close()
            finally:
                if self._connections.retired:
                    self._connections.close_idle()

    class AsyncResponseStream(library.AsyncByteStream):  # type: ignore[misc,name-defined]
        def __init__(self, inner: Any, connections: Connections) -> None:
            self._inner = inner
            self._connections = connections
            self._open = True

        def __aiter__(self) -> AsyncIterator[bytes]:
            # The inner one's own: another generator around it would cost more than all the rest of the adapter.
            return aiter(self._inner)

        async def aclose(self) -> None:
            if not self._open:
                return
            self._open = False
            try:
                await self._inner.aclose()
            finally:
                if self._connections.retired:
                    await self._connections.close_idle_async()

    class Transport(library.BaseTransport):  # type: ignore[misc,name-defined]
        """Sends requests with the credential of an `Access`; token, certificate or both."""

        def __init__(self, access: Access, **options: Any) -> None:
            self._access = access
            self._outgoing = Outgoing(library, access)
            self._generations = Generations(_maker(library, library.HTTPTransport, access, options))

        def handle_request(self, request: Request) -> Response:
            access = self._access
            raw, brings_its_own = self._outgoing.prepare(request)
            if brings_its_own:
                return self._send_on(self._generations.bare_pool(), Carried(request, raw))
            credential = access.credential()
            if credential.route is None:
                response = self._send(request, raw, credential)
            else:
                credential, response = send_routed(
                    access,
                    credential,
                    lambda chosen: self._send(request, raw, chosen),
                    may_repeat=lambda: self._outgoing.is_repeatable(request),
                    broken=_broken(library),
                )
            if response.status_code != 401:
                access.accepted(credential)
                return response
            try:
                renewed = access.renew(credential)
                if renewed is None or not self._outgoing.may_repeat(request):
                    return response
                self._read_away(response)
            except BaseException:
                response.close()
                raise
            response = self._send(request, raw, renewed)
            access.answered(renewed, response.status_code)
            return response

        def close(self) -> None:
            for connections in self._generations.drain():
                connections.transport.close()

        def _send(self, request: Request, raw: RawHeaders, credential: Credential) -> Response:
            connections, retired = self._generations.pool_for(credential)
            for old in retired:
                old.retire()
                old.close_idle()
            return self._send_on(connections, self._outgoing.carried(request, raw, credential))

        def _send_on(self, connections: Connections, request: Carried) -> Response:
            connections.take()
            try:
                response = connections.transport.handle_request(request)
            finally:
                connections.taken()
                if connections.retired:
                    connections.close_idle()
            response.stream = ResponseStream(response.stream, connections)
            return response

        def _read_away(self, response: Response) -> None:
            with contextlib.suppress(library.HTTPError):
                left = REFUSAL_BYTES
                for chunk in response.stream:
                    left -= len(chunk)
                    if left < 0:
                        break
            response.close()

    class AsyncTransport(library.AsyncBaseTransport):  # type: ignore[misc,name-defined]
        """The same for an event loop."""

        def __init__(self, access: Access, **options: Any) -> None:
            self._access = access
            self._outgoing = Outgoing(library, access)
            self._generations = Generations(_maker(library, library.AsyncHTTPTransport, access, options))

        async def handle_async_request(self, request: Request) -> Response:
            access = self._access
            raw, brings_its_own = self._outgoing.prepare(request)
            if brings_its_own:
                return await self._send_on(self._generations.bare_pool(), Carried(request, raw))
            credential = access.credential_at_hand() or await access.credential_async()
            if credential.route is None:
                response = await self._send(request, raw, credential)
            else:
                credential, response = await send_routed_async(
                    access,
                    credential,
                    lambda chosen: self._send(request, raw, chosen),
                    may_repeat=lambda: self._outgoing.is_repeatable(request),
                    broken=_broken(library),
                )
            if response.status_code != 401:
                access.accepted(credential)
                return response
            try:
                renewed = await access.renew_async(credential)
                if renewed is None or not self._outgoing.may_repeat(request):
                    return response
                await self._read_away(response)
            except BaseException:
                await response.aclose()
                raise
            response = await self._send(request, raw, renewed)
            access.answered(renewed, response.status_code)
            return response

        async def aclose(self) -> None:
            for connections in self._generations.drain():
                await connections.transport.aclose()

        async def _send(self, request: Request, raw: RawHeaders, credential: Credential) -> Response:
            connections, retired = self._generations.pool_for(credential)
            for old in retired:
                old.retire()
            for old in retired:
                await old.close_idle_async()
            return await self._send_on(connections, self._outgoing.carried(request, raw, credential))

        async def _send_on(self, connections: Connections, request: Carried) -> Response:
            connections.take()
            try:
                response = await connections.transport.handle_async_request(request)
            except BaseException:
                connections.taken()
                if connections.retired:
                    await connections.close_idle_async()
                raise
            connections.taken()
            response.stream = AsyncResponseStream(response.stream, connections)
            if connections.retired:
                try:
                    await connections.close_idle_async()
                except BaseException:  # cancelled, with a response that nobody will get
                    await response.aclose()
                    raise
            return response

        async def _read_away(self, response: Response) -> None:
            with contextlib.suppress(library.HTTPError):
                left = REFUSAL_BYTES
                async for chunk in response.stream:
                    left -= len(chunk)
                    if left < 0:
                        break
            await response.aclose()

    class Auth(library.Auth):  # type: ignore[misc,name-defined]
        """The `Authorization` header for a client of one's own, whose transport stays as it is.

        A credential that brings a certificate is refused here: the header alone would be only half of it.
        """

        def __init__(self, access: Access) -> None:
            self._access = access
            self._outgoing = Outgoing(library, access)

        def sync_auth_flow(self, request: Request) -> Generator[Request, Response, None]:
            access = self._access
            if self._prepared(request):
                yield request
                return
            credential = access.credential()
            response = yield _with_header(request, credential)
            if response.status_code != 401:
                access.accepted(credential)
                return
            renewed = access.renew(credential)
            if renewed is not None and self._outgoing.may_repeat(request):
                response = yield _with_header(request, renewed)
                access.answered(renewed, response.status_code)

        async def async_auth_flow(self, request: Request) -> AsyncGenerator[Request, Response]:
            access = self._access
            if self._prepared(request):
                yield request
                return
            credential = access.credential_at_hand() or await access.credential_async()
            response = yield _with_header(request, credential)
            if response.status_code != 401:
                access.accepted(credential)
                return
            renewed = await access.renew_async(credential)
            if renewed is not None and self._outgoing.may_repeat(request):
                response = yield _with_header(request, renewed)
                access.answered(renewed, response.status_code)

        def _prepared(self, request: Request) -> bool:
            raw, brings_its_own = self._outgoing.prepare(request)
            request.headers = library.Headers(raw)
            return brings_its_own

    return SimpleNamespace(Auth=Auth, Transport=Transport, AsyncTransport=AsyncTransport)


def _maker(
    library: ModuleType, transport: Callable[..., Any], access: Access, options: dict[str, Any]
) -> Callable[[ClientIdentity | None], Connections]:
    """What makes the connections for a certificate."""
    refuse_decided(options)

    def make(identity: ClientIdentity | None) -> Connections:
        if isinstance(identity, ProxyIdentity):
            return _routed(transport, access, identity, options)
        context, proxy = access.tls_context(identity), _proxy(library, access)
        try:
            # trust_env off: the proxy in effect is already known and is the only one to use.
            made = transport(verify=context, proxy=proxy, trust_env=False, **options)
            if identity is not None and not identity.key and hasattr(made, "aclose"):
                from kubeauthn.client._httpx_signing import sign_on_threads

                sign_on_threads(made, context)
            return Connections(made)
        except ImportError:
            if not access.cluster.proxy_url.lower().startswith("socks"):
                raise
            raise MissingExtra("socksio", "socks") from None

    return make


def _routed(
    transport: Callable[..., Any], access: Access, identity: ProxyIdentity, options: dict[str, Any]
) -> Connections:
    """Connections to a plugin's local proxy, which itself knows what other proxy there is."""
    import sys

    from kubeauthn.client._httpx_route import lead_through

    made = transport(verify=access.tls_context(identity), trust_env=False, **options)
    core = sys.modules[type(made._pool).__module__.partition(".")[0]]
    lead_through(made, identity.route, core)
    return Connections(made)


def _broken(library: ModuleType) -> tuple[type[BaseException], ...]:
    """How a connection ends that broke before its answer began."""
    return (library.ReadError, library.WriteError, library.RemoteProtocolError)


def _proxy(library: ModuleType, access: Access) -> Any:
    url = access.cluster.proxy_url
    if not url:
        return None
    context = access.proxy_tls_context() if url.lower().startswith("https:") else None
    return library.Proxy(url, ssl_context=context)


def _with_header(request: Request, credential: Credential) -> Request:
    if credential.identity is not None:
        raise UsageError(
            "the credential brings a client certificate, which Auth alone cannot show",
            hint="use client(…) or Transport(…) of the same module",
        )
    if credential.authorization is not None:
        request.headers["Authorization"] = credential.authorization.reveal()
    return request
