"""HTTP/1.1 from the server's side, on a connected socket: just enough, and every read is bounded."""

from __future__ import annotations

import json
import socket
from dataclasses import dataclass, field
from http import HTTPStatus
from typing import Any
from urllib.parse import parse_qsl, unquote

HEAD_BYTES = 1 << 20
BODY_BYTES = 64 << 20
_RECEIVE_BYTES = 1 << 16

TRUE_WORDS = frozenset(("1", "t", "T", "true", "TRUE", "True"))
"""What Kubernetes takes for yes in a query: clients send more than one of them."""


class BadRequest(Exception):
    """What came is not HTTP/1.1 as we speak it; the connection is closed."""


@dataclass(frozen=True, slots=True)
class Request:
    method: str
    path: str
    query: dict[str, str]
    headers: tuple[tuple[str, str], ...]
    body: bytes
    keep_alive: bool
    pairs: tuple[tuple[str, str], ...] = ()
    """The query with every value of every name; `query` has the first of each."""

    def header(self, name: str) -> str | None:
        return next((value for key, value in self.headers if key.lower() == name), None)

    def header_values(self, name: str) -> list[str]:
        return [value for key, value in self.headers if key.lower() == name]


@dataclass(frozen=True, slots=True)
class Response:
    status: int
    body: bytes = b""
    content_type: str = "application/json"
    headers: tuple[tuple[str, str], ...] = field(default=())

    @classmethod
    def of_json(cls, document: Any, status: int = 200) -> Response:
        return cls(status, json.dumps(document).encode())


class HttpConnection:
    """Reads requests from a socket and writes responses to it."""

    def __init__(self, connection: socket.socket) -> None:
        self._socket = connection
        self._buffer = bytearray()

    def read_request(self) -> Request | None:
        """The next request, or None when the peer has closed."""
        head = self._read_head()
        if head is None:
            return None
        first, *lines = head.decode("latin-1").split("\r\n")
        parts = first.split(" ")
        if len(parts) != 3 or not parts[2].startswith("HTTP/1."):
            raise BadRequest(f"expected an HTTP/1.1 request line, got {first[:80]!r}")
        method, target, version = parts
        headers = tuple(_header(line) for line in lines)
        named = {name.lower(): value for name, value in headers}
        if named.get("expect", "").lower() == "100-continue":
            self._socket.sendall(b"HTTP/1.1 100 Continue\r\n\r\n")
        if named.get("transfer-encoding", "").lower() == "chunked":
            body = self._read_chunks()
        else:
            body = self._read_exactly(_length(named.get("content-length", "0"), 10))
        path, _, query = target.partition("?")
        keep_alive = version == "HTTP/1.1" and named.get("connection", "").lower() != "close"
        pairs = parse_qsl(query, keep_blank_values=True)
        return Request(method, unquote(path), dict(reversed(pairs)), headers, body, keep_alive, tuple(pairs))

    def write_response(self, response: Response, *, keep_alive: bool) -> None:
        self._socket.sendall(
            _head(
                response.status,
                ("Content-Type", response.content_type),
                ("Content-Length", str(len(response.body))),
                ("Connection", "keep-alive" if keep_alive else "close"),
                *response.headers,
            )
            + response.body
        )

    def switch_protocols(self, *headers: tuple[str, str]) -> bytes:
        """Say yes to an upgrade. What has already come of the new protocol is returned."""
        self._socket.sendall(_head(101, ("Connection", "Upgrade"), *headers))
        early, self._buffer = bytes(self._buffer), bytearray()
        return early

    def begin_stream(self) -> None:
        self._socket.sendall(
            _head(
                200,
                ("Content-Type", "application/json"),
                ("Transfer-Encoding", "chunked"),
                ("Cache-Control", "no-cache"),
            )
        )

    def write_chunk(self, data: bytes) -> None:
        self._socket.sendall(b"%x\r\n%b\r\n" % (len(data), data))

    def end_stream(self) -> None:
        self._socket.sendall(b"0\r\n\r\n")

    def _receive(self) -> bool:
        data = self._socket.recv(_RECEIVE_BYTES)
        self._buffer += data
        return bool(data)

    def _read_head(self) -> bytes | None:
        while (end := self._buffer.find(b"\r\n\r\n")) < 0:
            if len(self._buffer) > HEAD_BYTES:
                raise BadRequest(f"the request head is over {HEAD_BYTES} bytes")
            if not self._receive():
                if self._buffer:
                    raise BadRequest("the connection was closed inside a request")
                return None
        head = bytes(self._buffer[:end])
        del self._buffer[: end + 4]
        return head

    def _read_exactly(self, length: int) -> bytes:
        while len(self._buffer) < length:
            if not self._receive():
                raise BadRequest("the connection was closed inside a body")
        data = bytes(self._buffer[:length])
        del self._buffer[:length]
        return data

    def _read_line(self) -> bytes:
        while (end := self._buffer.find(b"\r\n")) < 0:
            if len(self._buffer) > HEAD_BYTES or not self._receive():
                raise BadRequest("the connection was closed inside a chunk")
        line = bytes(self._buffer[:end])
        del self._buffer[: end + 2]
        return line

    def _read_chunks(self) -> bytes:
        body = bytearray()
        while True:
            size = _length(self._read_line().partition(b";")[0].decode("latin-1").strip(), 16)
            if len(body) + size > BODY_BYTES:
                raise BadRequest(f"the body is over {BODY_BYTES} bytes")
            body += self._read_exactly(size)
            line = self._read_line()
            if size == 0:
                while line:  # trailers, which nobody here needs
                    line = self._read_line()
                return bytes(body)


def _head(status: int, *headers: tuple[str, str]) -> bytes:
    lines = [f"HTTP/1.1 {status} {HTTPStatus(status).phrase}", *(f"{name}: {value}" for name, value in headers)]
    return ("\r\n".join(lines) + "\r\n\r\n").encode("latin-1")


def _header(line: str) -> tuple[str, str]:
    name, colon, value = line.partition(":")
    if not colon or not name or name != name.strip():
        raise BadRequest("expected a header line")
    return name, value.strip()


def _length(text: str, base: int) -> int:
    try:
        length = int(text, base)
    except ValueError:
        raise BadRequest("expected a length") from None
    if not 0 <= length <= BODY_BYTES:
        raise BadRequest(f"a length of {length} is not between 0 and {BODY_BYTES}")
    return length
