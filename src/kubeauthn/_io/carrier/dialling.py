"""The way to an API server: straight, through an HTTP proxy, or over a unix socket; with TLS or without."""

from __future__ import annotations

import asyncio
import ssl
from base64 import b64encode
from typing import TYPE_CHECKING
from urllib.parse import unquote

from kubeauthn._core.kubeconfig.proxy import in_ascii, split_url
from kubeauthn._io.carrier.wires import End, Lower, PlainWire, TlsWire, Wire
from kubeauthn._io.dialing import socket_address
from kubeauthn.errors import CredentialError, ProxyRefused, ProxyUnreachable, UpstreamError

if TYPE_CHECKING:
    from kubeauthn._io.carrier.socks import Socks5

CONNECT_SECONDS = 30.0
_REPLY_BYTES = 64 * 1024


class Address:
    """Where to, and how. `proxy_url` is empty for none; `proxy_context` verifies a proxy that is https itself."""

    __slots__ = ("context", "host", "name", "port", "proxy_context", "proxy_url", "signs_slowly", "socket_path")

    def __init__(
        self,
        host: str,
        port: int,
        context: ssl.SSLContext | None,
        *,
        proxy_url: str = "",
        proxy_context: ssl.SSLContext | None = None,
        socket_path: str = "",
        tls_name: str = "",
        signs_slowly: bool = False,
    ) -> None:
        self.host = host
        self.port = port
        self.context = context
        self.proxy_url = proxy_url
        self.proxy_context = proxy_context
        self.socket_path = socket_path
        self.name = tls_name or host
        self.signs_slowly = signs_slowly
        """The client certificate's key is outside this process."""


async def dial(address: Address, end: End) -> Wire:
    """A wire that is ready. `UpstreamError` says what did not work, and never holds a password.

    `ProxyRefused` for a unix socket that is another user's, or could be made so: there is no use in trying again.
    """
    where = f"unix://{address.socket_path}" if address.socket_path else f"{address.host}:{address.port}"
    try:
        async with asyncio.timeout(CONNECT_SECONDS):
            return await _reach(address, end, where)
    except TimeoutError as error:
        raise UpstreamError(
            f"{where}: {error}" if str(error) else f"{where} did not answer within {CONNECT_SECONDS:g} s", status=504
        ) from None
    except ssl.SSLCertVerificationError as error:
        raise UpstreamError(f"{where}: its certificate is not accepted: {error.verify_message}") from None
    except ssl.SSLError as error:
        raise UpstreamError(f"{where}: TLS failed: {error.reason or 'refused'}") from None
    except OSError as error:
        raise UpstreamError(f"{where} cannot be reached: {error.strerror or error}") from None
    except ValueError:  # with an empty label, or one too long
        raise UpstreamError(f"{where} cannot be reached: that is not the name of a host") from None
    except ProxyRefused:
        raise
    except ProxyUnreachable as error:
        raise UpstreamError(str(error), hint=error.hint) from None
    except CredentialError as error:
        raise UpstreamError(f"{where}: {error}", hint=error.hint) from None


async def _reach(address: Address, end: End, where: str) -> Wire:
    waiter: asyncio.Future[Wire] = asyncio.get_running_loop().create_future()
    ready = _Ready(end, waiter)
    top: PlainWire | TlsWire = (
        PlainWire(ready)
        if address.context is None
        else TlsWire(ready, address.context, address.name, signs_slowly=address.signs_slowly)
    )
    try:
        if address.proxy_url:
            await _through_proxy(address, top, where)
        else:
            await _open(address, top)
        wire = await waiter
    except BaseException:  # time is up, or nobody waits any more: nothing may stay open
        waiter.cancel()
        if hasattr(top, "_lower"):
            top.abort()
        raise
    if wire.closed:  # by what came with the last of the handshake: what is written there would wait for ever
        raise ConnectionResetError("it ended the connection at once")
    return wire


async def _open(address: Address, top: PlainWire | TlsWire) -> None:
    loop = asyncio.get_running_loop()
    if address.socket_path:
        with socket_address(address.socket_path) as path:
            await loop.create_unix_connection(lambda: top, path)
    else:
        await loop.create_connection(lambda: top, address.host, address.port, happy_eyeballs_delay=0.25)


async def _through_proxy(address: Address, top: PlainWire | TlsWire, where: str) -> None:
    parts = split_url(address.proxy_url)
    host, port = parts.hostname or "", parts.port or {"http": 80, "https": 443}.get(parts.scheme, 1080)
    if parts.scheme not in ("http", "https", "socks5", "socks5h"):
        raise UpstreamError(f"a {parts.scheme} proxy is not supported here", hint="use an http, https or socks5 proxy")
    password = ""
    if parts.username is not None:
        pair = f"{unquote(parts.username)}:{unquote(parts.password or '')}".encode()
        password = f"Proxy-Authorization: Basic {b64encode(pair).decode()}\r\n"
    target = f"[{address.host}]:{address.port}" if ":" in address.host else f"{in_ascii(address.host)}:{address.port}"
    asking = _Connecting(top, f"CONNECT {target} HTTP/1.1\r\nHost: {target}\r\n{password}\r\n".encode())
    if parts.scheme.startswith("socks"):
        from kubeauthn._io.carrier.socks import Socks5

        user = None if parts.username is None else unquote(parts.username)
        asking = _SocksConnecting(top, Socks5(address.host, address.port, user, unquote(parts.password or "")))
    below: PlainWire | TlsWire = PlainWire(asking)
    if parts.scheme == "https":
        below = TlsWire(asking, address.proxy_context or ssl.create_default_context(), host)
    try:
        await asyncio.get_running_loop().create_connection(lambda: below, host, port)
    except OSError as error:
        raise UpstreamError(f"the proxy {host}:{port} cannot be reached: {error.strerror or error}") from None
    try:
        await asking.done
    except BaseException:
        below.abort()
        raise


class _Ready:
    """Resolves the waiter when the wire is ready, and from then on stands aside."""

    def __init__(self, end: End, waiter: asyncio.Future[Wire]) -> None:
        self._end = end
        self._waiter = waiter

    def connected(self, wire: Wire) -> None:
        if self._waiter.done():
            wire.abort()  # nobody waits any more
            return
        wire._end = self._end  # type: ignore[attr-defined]
        self._end.connected(wire)
        self._waiter.set_result(wire)

    def lost(self, error: Exception | None) -> None:
        if not self._waiter.done():
            self._waiter.set_exception(error or ConnectionResetError("the connection was closed"))

    def ended(self, clean: bool) -> None:
        self.lost(None)

    def received(self, data: bytes | memoryview) -> None: ...
    def hold(self) -> None: ...
    def go_on(self) -> None: ...


class _Connecting:
    """Asks a proxy for a tunnel, then puts the wire above in its own place."""

    def __init__(self, top: PlainWire | TlsWire, question: bytes) -> None:
        self._top = top
        self._question = question
        self._reply = b""
        self._through = False
        self._wire: Lower | None = None
        self.done: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    def connected(self, wire: Wire) -> None:
        self._wire = wire
        wire.write(self._question)

    def received(self, data: bytes | memoryview) -> None:
        if self._through:
            self._top.came(data)
            return
        self._reply += data
        head, blank, rest = self._reply.partition(b"\r\n\r\n")
        if not blank:
            if len(self._reply) > _REPLY_BYTES:
                self._fail("the proxy's answer is too large")
            return
        code = head.split(b" ")[1][:3] if head.startswith(b"HTTP/1.") and b" " in head else b""
        if code == b"407":
            self._fail("the proxy demands authentication (407)", "put user and password into proxy-url or HTTPS_PROXY")
        elif not (len(code) == 3 and code.startswith(b"2")):
            self._fail(f"the proxy refused the way to the server (status {code.decode('latin-1') or 'unreadable'})")
        elif rest:
            self._fail("the proxy sent more than its answer")
        else:
            self._go_through()

    def _go_through(self) -> None:
        self._through = True
        if not self.done.done():
            self.done.set_result(None)
        assert self._wire is not None  # noqa: S101  set before anything comes
        self._top.opened(self._wire)

    def lost(self, error: Exception | None) -> None:
        if self._through:
            self._top.connection_lost(error)
        elif not self.done.done():
            self.done.set_exception(UpstreamError(f"the proxy broke off: {error or 'it closed the connection'}"))

    def ended(self, clean: bool) -> None:
        if self._through:
            self._top.cut_off()
        else:
            self.lost(None)

    def hold(self) -> None:
        self._top.pause_writing()

    def go_on(self) -> None:
        self._top.resume_writing()

    def _fail(self, message: str, hint: str | None = None) -> None:
        if not self.done.done():
            self.done.set_exception(UpstreamError(message, hint=hint))
        if self._wire is not None:
            self._wire.close()


class _SocksConnecting(_Connecting):
    def __init__(self, top: PlainWire | TlsWire, talk: Socks5) -> None:
        super().__init__(top, talk.greeting())
        self._talk = talk

    def received(self, data: bytes | memoryview) -> None:
        if self._through:
            self._top.came(data)
            return
        try:
            answer = self._talk.feed(bytes(data))
        except UpstreamError as error:
            self._fail(str(error), error.hint)
            return
        assert self._wire is not None  # noqa: S101  set before anything comes
        if answer:
            self._wire.write(answer)
        if self._talk.done:
            self._go_through()
