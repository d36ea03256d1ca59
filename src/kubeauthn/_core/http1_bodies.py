"""Where a body ends, found without changing a byte of it."""

from __future__ import annotations

from kubeauthn._core import http1
from kubeauthn.errors import HttpMessageError

CHUNK_LINE_BYTES = 256
TRAILER_BYTES = 16 * 1024

_HEX = b"0123456789abcdefABCDEF"
_SIZE_DIGITS = 15
_EXTENSION = bytes([9, *range(0x20, 0x7F)])

_SIZE, _DATA, _DATA_END, _TRAILER = range(4)


class LengthBody:
    """So many bytes."""

    __slots__ = ("done", "left")

    def __init__(self, length: int) -> None:
        self.left = length
        self.done = not length

    def feed(self, data: bytes | memoryview) -> int:
        """How many bytes of `data` belong to the body."""
        if len(data) >= self.left:
            taken, self.left, self.done = self.left, 0, True
            return taken
        self.left -= len(data)
        return len(data)


class OpenBody:
    """All that comes until the connection ends."""

    __slots__ = ("done",)

    def __init__(self) -> None:
        self.done = False

    def feed(self, data: bytes | memoryview) -> int:
        return len(data)


class ChunkedBody:
    """Chunks (RFC 9112, 7.1). Checks each size line and the trailers, and passes over the data."""

    __slots__ = ("_left", "_line", "_state", "_trailers", "done", "payload")

    def __init__(self, *, keep: bool = False) -> None:
        self.done = False
        self._state = _SIZE
        self._left = 0
        self._line = b""
        self._trailers = b""
        self.payload: list[bytes] | None = [] if keep else None
        """The data without the chunks around it, for those who asked."""

    def feed(self, data: bytes | memoryview) -> int:
        """How many bytes of `data` belong to the body. `HttpMessageError` as soon as something is not a chunk."""
        at, end = 0, len(data)
        while at < end and not self.done:
            if self._state == _DATA:
                taken = min(self._left, end - at)
                if self.payload is not None:
                    self.payload.append(bytes(data[at : at + taken]))
                at += taken
                self._left -= taken
                if not self._left:
                    self._state = _DATA_END
                continue
            at = self._read_line(data, at)
        return at

    def _read_line(self, data: bytes | memoryview, at: int) -> int:
        """Take one line, or the part of it that is there."""
        limit = 2 if self._state == _DATA_END else CHUNK_LINE_BYTES if self._state == _SIZE else TRAILER_BYTES
        part = bytes(data[at : at + limit + 1])
        newline = part.find(b"\n", 0, limit + 1 - len(self._line))
        if newline < 0:
            self._line += part
            if len(self._line) > limit or b"\r" in self._line[:-1]:
                raise HttpMessageError("a chunk is not as it must be")
            if self._state == _DATA_END and self._line != b"\r":
                raise HttpMessageError("a chunk is longer than it said")
            return len(data)
        line, self._line = self._line + part[: newline + 1], b""
        if not line.endswith(b"\r\n"):
            raise HttpMessageError("a chunk's line does not end as it must")
        self._take_line(line[:-2])
        return at + newline + 1

    def _take_line(self, line: bytes) -> None:
        if self._state == _SIZE:
            digits, _, extension = line.partition(b";")
            if not digits or len(digits) > _SIZE_DIGITS or digits.translate(None, _HEX):
                raise HttpMessageError("a chunk's size is not a number")
            if extension.translate(None, _EXTENSION):
                raise HttpMessageError("a chunk's extension has control characters")
            self._left = int(digits, 16)
            self._state = _DATA if self._left else _TRAILER
        elif self._state == _DATA_END:
            if line:
                raise HttpMessageError("a chunk is longer than it said")
            self._state = _SIZE
        elif line:
            self._trailers += line if not self._trailers else b"\r\n" + line
            if len(self._trailers) > TRAILER_BYTES:
                raise HttpMessageError("the trailers are too large")
        else:
            http1.check_trailers(self._trailers)
            self.done = True


Body = LengthBody | ChunkedBody | OpenBody


def body_of(head: http1.RequestHead | http1.ResponseHead) -> Body | None:
    """What finds the end of this message's body; None where there is none."""
    if head.body == http1.NO_BODY:
        return None
    if head.body == http1.LENGTH:
        return LengthBody(head.length)
    return ChunkedBody() if head.body == http1.CHUNKED else OpenBody()
