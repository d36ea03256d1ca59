"""For httpx and httpx2 on an event loop: TLS handshakes whose signature may take its time, made on threads.

anyio, on which these libraries stand, carries out each step of a handshake on the loop. So here the network backend of
a pool, a documented part of httpcore, is wrapped in one whose `start_tls` asks a thread.
"""

from __future__ import annotations

import ssl
import sys
from collections.abc import Callable
from typing import Any

import anyio
import anyio.to_thread

_CHUNK = 65536


def sign_on_threads(transport: Any, context: ssl.SSLContext) -> None:
    """Have the asynchronous library `transport` make its handshakes with `context` off the loop."""
    pool = transport._pool
    library = sys.modules[type(pool).__module__.partition(".")[0]]
    pool._network_backend = SigningBackend(pool._network_backend, context, library)


class SigningBackend:
    def __init__(self, inner: Any, context: ssl.SSLContext, library: Any) -> None:
        self._inner = inner
        self._context = context
        self._library = library

    async def connect_tcp(self, *arguments: Any, **options: Any) -> PlainStream:
        return PlainStream(await self._inner.connect_tcp(*arguments, **options), self._context, self._library)

    async def connect_unix_socket(self, *arguments: Any, **options: Any) -> PlainStream:
        return PlainStream(await self._inner.connect_unix_socket(*arguments, **options), self._context, self._library)

    async def sleep(self, seconds: float) -> None:
        await self._inner.sleep(seconds)


class PlainStream:
    """A stream of the library, with another way to begin TLS on it."""

    def __init__(self, inner: Any, context: ssl.SSLContext, library: Any) -> None:
        self._inner = inner
        self._context = context
        self._library = library

    async def read(self, max_bytes: int, timeout: float | None = None) -> bytes:
        content: bytes = await self._inner.read(max_bytes, timeout)
        return content

    async def write(self, buffer: bytes, timeout: float | None = None) -> None:
        await self._inner.write(buffer, timeout)

    async def aclose(self) -> None:
        await self._inner.aclose()

    def get_extra_info(self, info: str) -> Any:
        return self._inner.get_extra_info(info)

    async def start_tls(
        self, ssl_context: ssl.SSLContext, server_hostname: str | None = None, timeout: float | None = None
    ) -> PlainStream | SignedStream:
        if ssl_context is not self._context:  # an https proxy: another stream, on which TLS may begin once more
            begun = await self._inner.start_tls(ssl_context, server_hostname, timeout)
            return PlainStream(begun, self._context, self._library)
        stream = SignedStream(self._inner, ssl_context, server_hostname, self._library)
        try:
            await stream.shake_hands(timeout)
        except BaseException:
            with anyio.CancelScope(shield=True):
                await self._inner.aclose()
            raise
        return stream


class SignedStream:
    """TLS over a stream of the library."""

    def __init__(self, inner: Any, context: ssl.SSLContext, server_name: str | None, library: Any) -> None:
        self._inner = inner
        self._library = library
        self._incoming, self._outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
        self._tls = context.wrap_bio(self._incoming, self._outgoing, server_hostname=server_name)
        self._one_writer = anyio.Lock()

    async def shake_hands(self, timeout: float | None) -> None:
        """The time limit is for what the network does. The signer has its own."""
        while True:
            try:
                await anyio.to_thread.run_sync(self._tls.do_handshake, abandon_on_cancel=True)
            except ssl.SSLWantReadError:
                await self._flush(timeout)
                await self._more(timeout)
            except ssl.SSLError as error:
                await self._flush(timeout)  # the alert
                raise self._library.ConnectError(str(error)) from error
            else:
                await self._flush(timeout)
                return

    async def read(self, max_bytes: int, timeout: float | None = None) -> bytes:
        content: bytes = await self._through(lambda: self._tls.read(max_bytes), timeout, self._library.ReadError)
        return content

    async def write(self, buffer: bytes, timeout: float | None = None) -> None:
        left = memoryview(buffer)
        while left:
            written: int = await self._through(lambda: self._tls.write(left), timeout, self._library.WriteError)  # noqa: B023  awaited here
            left = left[written:]
            await self._flush(timeout)

    async def aclose(self) -> None:
        await self._inner.aclose()

    def get_extra_info(self, info: str) -> Any:
        return self._tls if info == "ssl_object" else self._inner.get_extra_info(info)

    async def start_tls(self, *_: Any, **__: Any) -> Any:
        raise RuntimeError("TLS inside the server's own TLS")

    async def _through(self, step: Callable[[], Any], timeout: float | None, failure: type[Exception]) -> Any:
        while True:
            try:
                return step()
            except ssl.SSLWantReadError:
                await self._flush(timeout)
                await self._more(timeout)
            except (ssl.SSLZeroReturnError, ssl.SSLEOFError):
                return b""
            except ssl.SSLError as error:
                raise failure(str(error)) from error

    async def _more(self, timeout: float | None) -> None:
        content = await self._inner.read(_CHUNK, timeout)
        if content:
            self._incoming.write(content)
        else:
            self._incoming.write_eof()

    async def _flush(self, timeout: float | None) -> None:
        async with self._one_writer:
            if self._outgoing.pending:
                await self._inner.write(self._outgoing.read(), timeout)
