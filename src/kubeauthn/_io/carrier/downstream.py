"""A client's connection: reads requests one after the other, and carries each out in an exchange."""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING

from kubeauthn._core import http1
from kubeauthn._io.carrier.exchange import Exchange
from kubeauthn._io.carrier.place import place_of
from kubeauthn._io.carrier.replies import refusal
from kubeauthn.errors import HttpMessageError, KubeauthnError, UpstreamError, UsageError

if TYPE_CHECKING:
    from kubeauthn._io.carrier.listener import Listener
    from kubeauthn._io.carrier.wires import Wire

HEAD_SECONDS = 30.0
"""From a head's first byte to its last."""
LINGER_SECONDS = 2.0
"""A client that is still sending when it has its answer may be silent for so long."""
LINGER_LONGEST_SECONDS = 30.0
"""And may send on for so long."""
_EARLY_BYTES = 256 * 1024
"""Of what a client sends before it has its answer."""

log = logging.getLogger("kubeauthn.proxy")


class Downstream:
    __slots__ = (
        "_buffer",
        "_exchange",
        "_heard",
        "_lingering",
        "_listener",
        "_timer",
        "_tunnel",
        "_wire",
        "closing",
        "held",
    )

    _wire: Wire

    def __init__(self, listener: Listener) -> None:
        self._listener = listener
        self._buffer = b""
        self._exchange: Exchange | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._tunnel = False
        self._lingering = self._heard = False
        self.closing = False
        self.held = False
        """The client does not take what it is sent."""

    # for the wire

    def connected(self, wire: Wire) -> None:
        self._wire = wire
        self._listener.opened(self)

    def received(self, data: bytes | memoryview) -> None:
        exchange = self._exchange
        if exchange is None:
            if self._lingering:
                self._heard = True
            else:
                self._read_head(self._buffer + data if self._buffer else bytes(data))
        elif self._tunnel:
            exchange.tunnelled_up(data)
        else:
            self._feed(exchange, data)

    def ended(self, clean: bool) -> None:
        if self._tunnel and self._exchange is not None:
            self._exchange.tunnel_ended_up()
        else:
            self._leave()
            self._wire.close()

    def lost(self, error: Exception | None) -> None:
        self._leave()
        self._listener.closed(self)

    def hold(self) -> None:
        self.held = True
        if self._exchange is not None:
            self._exchange.hold_server()

    def go_on(self) -> None:
        self.held = False
        if self._exchange is not None:
            self._exchange.release_server()
        elif not self._lingering:
            self._next()

    # for the exchange

    def write(self, data: bytes | memoryview) -> None:
        self._wire.write(data)

    def write_eof(self) -> None:
        self._wire.write_eof()

    def tunnel(self) -> None:
        self._tunnel = True
        early, self._buffer = self._buffer, b""
        if self._exchange is not None:
            self._exchange.release_client()
            if early:
                self._exchange.tunnelled_up(early)

    def pause_reading(self) -> None:
        self._wire.pause_reading()

    def resume_reading(self) -> None:
        self._wire.resume_reading()

    def close(self) -> None:
        self._exchange = None
        self._wire.close()

    def abort(self) -> None:
        self._exchange = None
        self._wire.abort()

    def exchange_ended(self) -> None:
        complete = self._exchange is None or self._exchange.request_complete
        self._exchange = None
        if self.closing:
            self._part(complete)
            return
        if self.held:
            self._wire.pause_reading()  # who does not take the last answer cannot ask for another
        else:
            self._next()

    def refuse(self, error: Exception, *, started: bool, complete: bool) -> None:
        """Answer in the server's place; or, where its answer has begun already, break off."""
        head_only = self._exchange is not None and self._exchange.method == b"HEAD"
        self._exchange = None
        status, message = _told(error)
        if started:
            self._wire.abort()
            return
        close = not complete or self.closing
        self._wire.write(refusal(status, message, close=close, head_only=head_only))
        if close:
            self._part(complete)
        else:
            self.exchange_ended()

    # inside

    def _next(self) -> None:
        self._wire.resume_reading()
        if self._buffer:
            asyncio.get_running_loop().call_soon(self._read_next)

    def _read_next(self) -> None:
        # More may have come in between: then it was read behind what waited, and may have begun a request already.
        if self._exchange is None and self._buffer and not self._wire.closed:
            self._read_head(self._buffer)

    def _read_head(self, data: bytes) -> None:
        end = data.find(b"\r\n\r\n")
        if end < 0:
            self._buffer = data
            if len(data) > http1.HEAD_BYTES:
                self._reject(HttpMessageError("the head is too large", status=431))
            elif self._timer is None and data:
                self._timer = asyncio.get_running_loop().call_later(HEAD_SECONDS, self._too_slow)
            return
        self._buffer = b""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        try:
            head = http1.parse_request(data[:end])
        except HttpMessageError as error:
            self._reject(error)
            return
        exchange = self._exchange = Exchange(self, head, self._listener.route)
        # What a client sent behind an upgrade that was refused is of the other protocol, and no request.
        self.closing = not head.keep_alive or bool(head.upgrade)
        # What came with the head is looked at before anything is sent: of a bad message nothing goes on.
        if len(data) > end + 4 and not self._feed(exchange, data[end + 4 :]):
            return
        exchange.start()

    def _feed(self, exchange: Exchange, data: bytes | memoryview) -> bool:
        try:
            taken = exchange.feed(data)
        except HttpMessageError as error:
            self.closing = True
            exchange.malformed(error)
            return False
        if taken < len(data):
            self._buffer += data[taken:]
            if len(self._buffer) > _EARLY_BYTES:
                self._wire.pause_reading()
        return True

    def _reject(self, error: HttpMessageError) -> None:
        log.warning("a request was refused: %s", error)
        self._wire.write(refusal(error.status, str(error), close=True))
        self._part(False)

    def _part(self, complete: bool) -> None:
        """Close. A client that is still sending hears the answer first: closing at once would take it away."""
        if complete:
            self._wire.close()
            return
        self._lingering = True
        self._buffer = b""
        if self._timer is not None:
            self._timer.cancel()
        self._wire.write_eof()
        self._wire.resume_reading()
        self._linger(asyncio.get_running_loop().time() + LINGER_LONGEST_SECONDS)

    def _linger(self, until: float) -> None:
        loop = asyncio.get_running_loop()
        if loop.time() >= until:
            self._wire.close()
            return
        self._heard = False
        self._timer = loop.call_later(LINGER_SECONDS, self._heard_again, until)

    def _heard_again(self, until: float) -> None:
        self._timer = None
        if self._heard:
            self._linger(until)
        else:
            self._wire.close()

    def _too_slow(self) -> None:
        self._timer = None
        self._wire.close()

    def _leave(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        exchange, self._exchange = self._exchange, None
        if exchange is not None:
            exchange.client_gone()


def _told(error: Exception) -> tuple[int, str]:
    """What the client is told. An author's own error may hold anything, so only its kind is said."""
    if isinstance(error, HttpMessageError | UpstreamError):
        log.warning("%s", error)
        return error.status, str(error)
    if isinstance(error, KubeauthnError):
        log.error("%s%s", error, place_of(error) if isinstance(error, UsageError) else "")
        return getattr(error, "status", 0) or 500, str(error)
    log.error("the proxy's function failed: %s%s", type(error).__name__, place_of(error))
    return 500, f"the proxy's function failed: {type(error).__name__}"
