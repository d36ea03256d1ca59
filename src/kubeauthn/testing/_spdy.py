"""SPDY/3.1 from the server's side, as far as Kubernetes uses it: streams that the client opens, data, pings.

Flow control is left out, as it is in the library on Kubernetes' side: TCP's own does.
"""

from __future__ import annotations

import struct
import zlib
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Callable

SYN_STREAM, SYN_REPLY, RST_STREAM, PING, GOAWAY = 1, 2, 3, 6, 7
FIN = 0x01
FRAME_BYTES = 1 << 24
_HEADER_BYTES = 1 << 20
_CHUNK = 32768

_WORDS = (
    "options head post put delete trace accept accept-charset accept-encoding accept-language accept-ranges age allow "
    "authorization cache-control connection content-base content-encoding content-language content-length "
    "content-location content-md5 content-range content-type date etag expect expires from host if-match "
    "if-modified-since if-none-match if-range if-unmodified-since last-modified location max-forwards pragma "
    "proxy-authenticate proxy-authorization range referer retry-after server te trailer transfer-encoding upgrade "
    "user-agent vary via warning www-authenticate method get status 200_OK version HTTP/1.1 url public set-cookie "
    "keep-alive origin"
)
_TAIL = (
    "100101201202205206300302303304305306307402405406407408409410411412413414415416417502504505"
    "203 Non-Authoritative Information204 No Content301 Moved Permanently400 Bad Request401 Unauthorized"
    "403 Forbidden404 Not Found500 Internal Server Error501 Not Implemented503 Service Unavailable"
    "Jan Feb Mar Apr May Jun Jul Aug Sept Oct Nov Dec 00:00:00 Mon, Tue, Wed, Thu, Fri, Sat, Sun, GMT"
    "chunked,text/html,image/png,image/jpg,image/gif,application/xml,application/xhtml+xml,text/plain,"
    "text/javascript,publicprivatemax-age=gzip,deflate,sdchcharset=utf-8charset=iso-8859-1,utf-,*,enq=0."
)


def dictionary() -> bytes:
    """What both ends prime zlib with: section 2.6.10.1 of the protocol, its names with their lengths before them."""
    words = [word.replace("_", " ").encode() for word in _WORDS.split(" ")]
    return b"".join(struct.pack(">I", len(word)) + word for word in words) + _TAIL.encode()


class SpdyError(Exception):
    """What came is not SPDY/3.1 as we speak it."""


class Bytes(Protocol):
    """A connection's bytes: a socket, or a tunnel inside something else."""

    def recv(self, size: int, /) -> bytes: ...
    def sendall(self, data: bytes, /) -> object: ...


class Stream:
    """One stream that the client opened. What comes on it goes to `on_data` and `on_end`."""

    def __init__(self, session: Session, number: int, headers: dict[str, str]) -> None:
        self.number = number
        self.headers = headers
        self.on_data: Callable[[bytes], object] = lambda data: None
        self.on_end: Callable[[], object] = lambda: None
        self._session = session
        self._open = True

    def write(self, data: bytes) -> None:
        for start in range(0, len(data), _CHUNK):
            self._session.send_data(self.number, data[start : start + _CHUNK])

    def close(self) -> None:
        """No more comes from us; the client may go on."""
        if self._open:
            self._open = False
            self._session.send_data(self.number, b"", FIN)


class Session:
    """Reads frames until the peer leaves, or until `finished` is set. `on_stream` hears of each new stream."""

    def __init__(self, connection: Bytes, on_stream: Callable[[Stream], object], early: bytes = b"") -> None:
        self._connection = connection
        self._on_stream = on_stream
        self._buffer = bytearray(early)
        self._streams: dict[int, Stream] = {}
        self._inflate = zlib.decompressobj(zdict=dictionary())
        self._deflate = zlib.compressobj(zdict=dictionary())
        self.finished = False

    def run(self) -> None:
        while not self.finished:
            head = self._take(8)
            if head is None:
                return
            first, second = struct.unpack(">II", head)
            flags, length = second >> 24, second & 0xFFFFFF
            body = self._take(length)
            if body is None:
                return
            if first & 0x80000000:
                self._control(first & 0xFFFF, flags, body)
            else:
                self._data(first, flags, body)

    def send_data(self, number: int, data: bytes, flags: int = 0) -> None:
        self._connection.sendall(struct.pack(">II", number, flags << 24 | len(data)) + data)

    def go_away(self) -> None:
        self._send_control(GOAWAY, struct.pack(">II", max(self._streams, default=0), 0))

    def _control(self, kind: int, flags: int, body: bytes) -> None:
        if kind == SYN_STREAM:
            number = struct.unpack_from(">I", body)[0] & 0x7FFFFFFF
            stream = Stream(self, number, self._headers(body[10:]))
            self._streams[number] = stream
            block = self._deflate.compress(struct.pack(">I", 0)) + self._deflate.flush(zlib.Z_SYNC_FLUSH)
            self._send_control(SYN_REPLY, struct.pack(">I", number) + block)
            self._on_stream(stream)
            if flags & FIN:
                stream.on_end()
        elif kind == RST_STREAM:
            stream_or_none = self._streams.pop(struct.unpack_from(">I", body)[0] & 0x7FFFFFFF, None)
            if stream_or_none is not None:
                stream_or_none.on_end()
        elif kind == PING:
            self._send_control(PING, body)
        elif kind == GOAWAY:
            self.finished = True

    def _data(self, number: int, flags: int, body: bytes) -> None:
        stream = self._streams.get(number)
        if stream is None:
            return
        if body:
            stream.on_data(body)
        if flags & FIN:
            stream.on_end()

    def _headers(self, block: bytes) -> dict[str, str]:
        text = self._inflate.decompress(block, _HEADER_BYTES)
        try:
            (count,) = struct.unpack_from(">I", text)
            at, words = 4, []
            for _ in range(count * 2):
                (length,) = struct.unpack_from(">I", text, at)
                words.append(text[at + 4 : at + 4 + length].decode("latin-1"))
                at += 4 + length
        except struct.error:
            raise SpdyError("a block of headers that is cut off") from None
        return {name.lower(): value for name, value in zip(words[::2], words[1::2], strict=True)}

    def _send_control(self, kind: int, body: bytes) -> None:
        self._connection.sendall(struct.pack(">HHI", 0x8003, kind, len(body)) + body)

    def _take(self, size: int) -> bytes | None:
        while len(self._buffer) < size:
            data = self._connection.recv(65536)
            if not data:
                return None
            self._buffer += data
        taken = bytes(self._buffer[:size])
        del self._buffer[:size]
        return taken
