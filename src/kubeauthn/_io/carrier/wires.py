"""One connection, encrypted or not, as its user sees it.

`asyncio`'s own TLS keeps a buffer of 256 KiB for every connection and takes several callbacks for every read. A
thousand idle watches on both sides would be half a gigabyte. Here all connections share one buffer, and what was
read is handed on in the same callback.
"""

from __future__ import annotations

import asyncio
import socket
import ssl
from typing import Any, Protocol

from kubeauthn._io.carrier.last_words import last_words
from kubeauthn._io.carrier.outbox import Outbox, outbox_of

HANDSHAKE_SECONDS = 20.0
_RECORD = 16384
_HIGH_WATER, _LOW_WATER = 256 * 1024, 64 * 1024
_READ = 224 * 1024
"""Of one read. More takes fewer turns for a large body, and more memory for a client that does not read its answer."""
_SEND = 208 * 1024
"""What a unix socket holds for the other side; the kernel doubles it. TCP finds a measure of its own."""
_UNIX = getattr(socket, "AF_UNIX", None)
_shared = memoryview(bytearray(_READ))
"""What a socket is read into. Emptied before the event loop goes on, so that one does for all."""
_plain = memoryview(bytearray(_READ + _RECORD))
"""What is decrypted into, likewise. Whoever receives a view of it copies what is to be kept."""


class End(Protocol):
    """Who uses a wire."""

    def connected(self, wire: Wire) -> None: ...
    def received(self, data: bytes | memoryview) -> None:
        """A view holds these bytes only until this returns: the buffer below it is shared."""

    def ended(self, clean: bool) -> None:
        """The other side sends no more. `clean`: it said so itself, nobody cut it off."""

    def lost(self, error: Exception | None) -> None: ...
    def hold(self) -> None:
        """Too much is waiting to be sent."""

    def go_on(self) -> None: ...


class Lower(Protocol):
    """What a wire stands on: a transport of asyncio, or another wire."""

    def write(self, data: bytes) -> None: ...
    def write_eof(self) -> None: ...
    def close(self) -> None: ...
    def abort(self) -> None: ...
    def pause_reading(self) -> None: ...
    def resume_reading(self) -> None: ...


class Wire(Protocol):
    closed: bool

    def write(self, data: bytes | memoryview) -> None:
        """Nothing of a view is kept."""

    def write_eof(self) -> None: ...
    def close(self) -> None: ...
    def abort(self) -> None: ...
    def pause_reading(self) -> None: ...
    def resume_reading(self) -> None: ...


class _Socket(asyncio.BufferedProtocol):
    """The lowest part: a socket that is read into the shared buffer."""

    _transport: Any = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = transport
        self._transport.set_write_buffer_limits(_HIGH_WATER, _LOW_WATER)
        connection = transport.get_extra_info("socket")
        if connection is not None and connection.family == _UNIX:
            # Of itself it takes not even two writes, and then each side waits for the other.
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, _SEND)
        self.opened(self._transport)

    def get_buffer(self, sizehint: int) -> memoryview:
        return _shared

    def buffer_updated(self, count: int) -> None:
        self.came(_shared[:count])

    def eof_received(self) -> bool:
        self.cut_off()
        return True  # the other direction may go on

    def hear_out(self, error: Exception | None) -> None:
        for data in last_words(self._transport, error):
            self.came(data)

    def opened(self, lower: Lower) -> None: ...
    def came(self, data: memoryview | bytes) -> None: ...
    def cut_off(self) -> None: ...


class PlainWire(_Socket):
    """A wire without TLS."""

    def __init__(self, end: End) -> None:
        self._end = end
        self.closed = False

    def opened(self, lower: Lower) -> None:
        self._lower = lower
        self._end.connected(self)

    def came(self, data: memoryview | bytes) -> None:
        self._end.received(data)

    def cut_off(self) -> None:
        self._end.ended(True)

    def connection_lost(self, exc: Exception | None) -> None:
        if not self.closed:
            self.hear_out(exc)
        self.closed = True
        self._end.lost(exc)

    def pause_writing(self) -> None:
        self._end.hold()

    def resume_writing(self) -> None:
        self._end.go_on()

    def write(self, data: bytes | memoryview) -> None:
        # A transport may keep what the socket does not take at once.
        self._lower.write(data if isinstance(data, bytes) else bytes(data))

    def write_eof(self) -> None:
        self._lower.write_eof()

    def close(self) -> None:
        self.closed = True
        self._lower.close()

    def abort(self) -> None:
        self.closed = True
        self._lower.abort()

    def pause_reading(self) -> None:
        self._lower.pause_reading()

    def resume_reading(self) -> None:
        self._lower.resume_reading()


class TlsWire(_Socket):
    """A wire with TLS. `server_name` is None on the server's side.

    `signs_slowly`: a key outside this process signs, perhaps after somebody touched it, so the handshake is made in a
    thread and everything else goes on.
    """

    def __init__(
        self, end: End, context: ssl.SSLContext, server_name: str | None, *, signs_slowly: bool = False
    ) -> None:
        self._end = end
        self._slow = signs_slowly
        self._incoming, self._outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
        self._tls = context.wrap_bio(self._incoming, self._outgoing, server_name is None, server_name)
        self._is_client = server_name is not None
        self._tells_pending = type(self._tls) is ssl.SSLObject
        """Whether what it has not given out yet can be seen. A class of somebody else, a signer's for one, may take
        all that came into buffers of its own: then only reading until it wants more shows the end."""
        self._ready = self._paused = self._said_last = self._heard_last = self._said_ended = self._told = False
        self._waits = self._is_gone = False
        self._outbox: Outbox
        self._kept: list[bytes] = []
        self._timer: asyncio.TimerHandle | None = None
        self.closed = False

    # from below

    def opened(self, lower: Lower) -> None:
        self._lower = lower
        loop = asyncio.get_running_loop()
        self._outbox = outbox_of(loop)
        self._timer = loop.call_later(HANDSHAKE_SECONDS, self._too_slow)
        if self._is_client:
            self._shake_hands()

    connected = opened  # where another wire is below

    def came(self, data: memoryview | bytes) -> None:
        self._incoming.write(data)
        if self._ready or self._shake_hands():
            self._read()

    received = came

    def cut_off(self) -> None:
        if not self._ready:
            self._fail(ConnectionResetError("the other side ended the TLS handshake"))
        elif not self._heard_last:
            self._heard_last = True
            self._say_ended(False)

    def ended(self, clean: bool) -> None:
        self.cut_off()

    def connection_lost(self, exc: Exception | None) -> None:
        if self._is_client and self._ready and not self.closed:
            self.hear_out(exc)
        self.closed = True
        if self._timer is not None:
            self._timer.cancel()
        if self._ready and not self._is_gone:
            self._outbox.wires -= 1
        self._is_gone = True
        if not self._told:
            self._told = True
            self._end.lost(exc)

    lost = connection_lost

    def pause_writing(self) -> None:
        self._end.hold()

    hold = pause_writing

    def resume_writing(self) -> None:
        self._end.go_on()

    go_on = resume_writing

    # for the end above

    def write(self, data: bytes | memoryview) -> None:
        if self.closed or self._said_last:
            return
        try:
            written = self._tls.write(data)
            while written < len(data):
                data = data[written:]
                written = self._tls.write(data)
        except ssl.SSLError as error:
            self._fail(error)
            return
        if not self._outbox.is_worthwhile or self._outgoing.pending > _RECORD:
            self._lower.write(self._outgoing.read())
        elif not self._waits:
            self._waits = True
            self._outbox.send_later(self)

    def send_waiting(self) -> None:
        self._waits = False
        if not self.closed:
            self._flush()

    def write_eof(self) -> None:
        """Say that no more comes, and go on reading."""
        if self.closed or self._said_last:
            return
        self._said_last = True
        # Data that waits here would make OpenSSL refuse to say goodbye.
        # Not into the shared buffer: whoever closes may be in the middle of what came in it.
        if not self._is_empty():
            own = memoryview(bytearray(len(_plain)))
            while size := self._decrypt(own):
                self._kept.append(bytes(own[:size]))
        try:
            self._tls.unwrap()
        except (ssl.SSLError, ValueError):
            pass  # the other side has not said its last word yet
        self._flush()

    def close(self) -> None:
        if self.closed:
            return
        if self._ready:
            self.write_eof()
        self.closed = True
        self._lower.close()

    def abort(self) -> None:
        self.closed = True
        self._lower.abort()

    def pause_reading(self) -> None:
        self._paused = True
        self._lower.pause_reading()

    def resume_reading(self) -> None:
        if self._paused:
            self._paused = False
            if self._kept or self._heard_last or not self._is_empty():
                asyncio.get_running_loop().call_soon(self._read)
            self._lower.resume_reading()

    # inside

    def _shake_hands(self) -> bool:
        """One step of the handshake; whether it was the last."""
        if self._slow:
            # Whatever comes meanwhile waits with the sender: it could be more than there is room for.
            self._lower.pause_reading()
            step = asyncio.get_running_loop().run_in_executor(None, self._step)
            step.add_done_callback(self._stepped)
            return False
        return self._after_step(self._step())

    def _step(self) -> Exception | None:
        try:
            self._tls.do_handshake()
        except Exception as error:
            return error
        return None

    def _stepped(self, step: asyncio.Future[Exception | None]) -> None:
        if self.closed or step.cancelled():
            return
        self._lower.resume_reading()
        if self._after_step(step.result()):
            self._read()

    def _after_step(self, error: Exception | None) -> bool:
        self._flush()  # an alert too
        if error is not None:
            if not isinstance(error, ssl.SSLWantReadError):
                self._fail(error)
            return False
        self._ready = True
        self._outbox.wires += 1
        if self._timer is not None:
            self._timer.cancel()
        self._end.connected(self)
        return not self.closed

    def _read(self) -> None:
        if self._paused or self.closed:
            return
        if self._kept:
            data, self._kept = b"".join(self._kept), []
            self._end.received(data)
        while not self._paused and not self.closed:
            size = self._decrypt(_plain)
            if self._outgoing.pending:
                self._flush()  # an answer of TLS itself
            if not size:
                break
            self._end.received(_plain[:size])
            if self._is_empty():
                break
        if self._heard_last and not self.closed and not self._paused:
            self._say_ended(True)

    def _is_empty(self) -> bool:
        """Whether nothing is left to decrypt. To ask costs less than the exception that a read would end with."""
        return self._tells_pending and not self._incoming.pending and not self._tls.pending()

    def _decrypt(self, into: memoryview) -> int:
        """As many records as are there and find room; how many bytes that were. 0 when there are none, or no more."""
        size, most = 0, len(into) - _RECORD
        try:
            while size <= most:
                count = self._tls.read(_RECORD, into[size:])
                if not count:
                    self._heard_last = True
                    break
                size += int(count)
                if self._is_empty():
                    break
        except ssl.SSLWantReadError:
            pass
        except ssl.SSLZeroReturnError:
            self._heard_last = True
        except ssl.SSLError as error:
            self._fail(error)
            return 0
        return size

    def _say_ended(self, clean: bool) -> None:
        if not self._said_ended:
            self._said_ended = True
            self._end.ended(clean)

    def _flush(self) -> None:
        if self._outgoing.pending:
            self._lower.write(self._outgoing.read())

    def _too_slow(self) -> None:
        self._fail(TimeoutError(f"the TLS handshake took longer than {HANDSHAKE_SECONDS:g} s"))

    def _fail(self, error: Exception) -> None:
        if self._told:
            return
        self._told = self.closed = True
        if self._timer is not None:
            self._timer.cancel()
        self._lower.close()
        self._end.lost(error)
