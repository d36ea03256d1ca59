"""A connection to the server: sends one request at a time and reads the answer."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kubeauthn._core import http1
from kubeauthn._core.http1_bodies import Body, OpenBody, body_of
from kubeauthn.errors import HttpMessageError, UpstreamError

if TYPE_CHECKING:
    from kubeauthn._io.carrier.exchange import Exchange
    from kubeauthn._io.carrier.pool import Pool
    from kubeauthn._io.carrier.wires import Wire


class Upstream:
    __slots__ = (
        "_body",
        "_buffer",
        "_exchange",
        "_head",
        "_pool",
        "_tunnel",
        "_wire",
        "answered",
        "closed",
        "held",
        "reused",
    )

    _wire: Wire

    def __init__(self, pool: Pool) -> None:
        self._pool = pool
        self._exchange: Exchange | None = None
        self._buffer = b""
        self._head: http1.ResponseHead | None = None
        self._body: Body | None = None
        self._tunnel = False
        self.closed = False
        self.held = False
        """The server does not take what it is sent."""
        self.reused = False
        self.answered = False
        """Something came back since the request was sent, be it only a part of a head."""

    # for the exchange

    def begin(self, exchange: Exchange, data: bytes) -> None:
        self._exchange = exchange
        self._head = None
        self.answered = False
        self._wire.write(data)

    def write(self, data: bytes | memoryview) -> None:
        self._wire.write(data)

    def write_eof(self) -> None:
        self._wire.write_eof()

    def pause_reading(self) -> None:
        self._wire.pause_reading()

    def resume_reading(self) -> None:
        self._wire.resume_reading()

    def close(self) -> None:
        self.closed = True
        self._exchange = None
        self._wire.close()

    def abort(self) -> None:
        self.closed = True
        self._exchange = None
        self._wire.abort()

    # for the wire

    def connected(self, wire: Wire) -> None:
        self._wire = wire

    def received(self, data: bytes | memoryview) -> None:
        exchange = self._exchange
        if self._tunnel and exchange is not None:
            exchange.tunnelled_down(data)
            return
        if exchange is None:
            self.close()  # an answer that nobody asked for
            return
        if self._head is not None:
            self._pass_on(exchange, b"", data)
            return
        self.answered = True
        heads, self._buffer = self._buffer + data, b""
        try:
            self._read_heads(exchange, heads)
        except HttpMessageError as error:
            self.abort()
            exchange.upstream_failed(UpstreamError(f"the server's answer cannot be carried: {error}"))

    def ended(self, clean: bool) -> None:
        exchange = self._exchange
        if exchange is None:
            self.close()
        elif self._tunnel:
            exchange.tunnel_ended_down()
        elif clean and isinstance(self._body, OpenBody):
            self._exchange = None
            self.close()
            exchange.response_ended(None)
        else:
            self.lost(None)

    def lost(self, error: Exception | None) -> None:
        self.closed = True
        exchange, self._exchange = self._exchange, None
        if exchange is not None:
            self._wire.abort()
            reason = f": {getattr(error, 'reason', None) or getattr(error, 'strerror', None) or error}" if error else ""
            exchange.upstream_failed(UpstreamError(f"the server closed the connection{reason}"))

    def hold(self) -> None:
        self.held = True
        if self._exchange is not None:
            self._exchange.hold_client()

    def go_on(self) -> None:
        self.held = False
        if self._exchange is not None:
            self._exchange.release_client()

    # inside

    def _read_heads(self, exchange: Exchange, data: bytes) -> None:
        while True:
            end = data.find(b"\r\n\r\n")
            if end < 0:
                if len(data) > http1.HEAD_BYTES:
                    raise HttpMessageError("the head is too large", status=502)
                self._buffer = data
                return
            head = http1.parse_response(data[:end], exchange.method)
            data = data[end + 4 :]
            if head.status == 101:
                exchange.switched(head, data)
                self._tunnel = True
                return
            if head.status >= 200:
                break
            exchange.informed(head)
            if not data:
                return
        self._head, self._body = head, body_of(head)
        if exchange.withhold(head, data):
            return
        self._pass_on(exchange, exchange.response_head(head), data)

    def go_on_with(self, exchange: Exchange, data: bytes) -> None:
        """The answer was withheld and is passed on after all."""
        assert self._head is not None  # noqa: S101
        self._pass_on(exchange, exchange.response_head(self._head), data)

    def _pass_on(self, exchange: Exchange, head: bytes, data: bytes | memoryview) -> None:
        body = self._body
        if body is None:
            complete, extra = True, bool(data)
            exchange.pass_down(head)
        else:
            try:
                taken = body.feed(data)
            except HttpMessageError as error:
                self.abort()
                exchange.upstream_failed(UpstreamError(f"the server's answer cannot be carried: {error}"))
                return
            complete, extra = body.done, taken < len(data)
            if taken or head:
                piece = data[:taken] if extra else data
                exchange.pass_down(head + piece if head else piece)
        if complete:
            assert self._head is not None  # noqa: S101
            self._exchange = None
            self._body = None
            reusable = (
                self._head.keep_alive and not extra and exchange.request_complete and not (self.closed or self.held)
            )
            self._head = None
            if not exchange.request_complete:
                self.abort()  # an orderly end would wait until the server took what it has no use for
            elif not reusable:
                self.close()
            exchange.response_ended(self if reusable else None)

    def release(self) -> None:
        # A slow client may have had it paused. Idle, it is read: else nobody sees that the server closes it, and the
        # next answer would never be seen either.
        self._wire.resume_reading()
        self._pool.give_back(self)
