"""WebSocket (RFC 6455) from the server's side, on a connected socket: binary messages, pings and the end."""

from __future__ import annotations

import base64
import hashlib
import struct
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from kubeauthn.testing._spdy import Bytes

MESSAGE_BYTES = 1 << 24
_GUID = b"258EAFA5-E914-47DA-95CA-C5AB0DC85B11"
_CONTINUATION, _TEXT, _BINARY, _CLOSE, _PING, _PONG = 0, 1, 2, 8, 9, 10


class WebSocketError(Exception):
    """What came is not a WebSocket as we speak it."""


def accept_key(key: str) -> str:
    """The answer to `Sec-WebSocket-Key`: a protocol's handshake, not a secret."""
    return base64.b64encode(hashlib.sha1(key.encode("latin-1") + _GUID, usedforsecurity=False).digest()).decode()


class WebSocket:
    def __init__(self, connection: Bytes, early: bytes = b"") -> None:
        self._connection = connection
        self._buffer = bytearray(early)
        self._closed = False

    def receive(self) -> bytes | None:
        """The next message, or None at the end."""
        message = bytearray()
        while True:
            head = self._take(2)
            if head is None:
                return None
            kind, last = head[0] & 0x0F, bool(head[0] & 0x80)
            payload = self._payload(head[1])
            if payload is None:
                return None
            if kind == _CLOSE:
                self.close()
                return None
            if kind == _PING:
                self._send(_PONG, payload)
            elif kind in (_CONTINUATION, _TEXT, _BINARY):
                message += payload
                if len(message) > MESSAGE_BYTES:
                    raise WebSocketError("a message that is too long")
                if last:
                    return bytes(message)

    def send(self, data: bytes) -> None:
        self._send(_BINARY, data)

    def close(self) -> None:
        if not self._closed:
            self._closed = True
            self._send(_CLOSE, struct.pack(">H", 1000))

    def _payload(self, second: int) -> bytes | None:
        length = second & 0x7F
        if length > 125:
            wide = self._take(2 if length == 126 else 8)
            if wide is None:
                return None
            length = int.from_bytes(wide, "big")
        if length > MESSAGE_BYTES:
            raise WebSocketError("a frame that is too long")
        if not second & 0x80:
            raise WebSocketError("a client's frame that is not masked")
        mask, data = self._take(4), self._take(length)
        if mask is None or data is None:
            return None
        repeated = (mask * (length // 4 + 1))[:length]
        return (int.from_bytes(data, "big") ^ int.from_bytes(repeated, "big")).to_bytes(length, "big")

    def _send(self, kind: int, data: bytes) -> None:
        if len(data) < 126:
            head = bytes([0x80 | kind, len(data)])
        elif len(data) < 1 << 16:
            head = struct.pack(">BBH", 0x80 | kind, 126, len(data))
        else:
            head = struct.pack(">BBQ", 0x80 | kind, 127, len(data))
        self._connection.sendall(head + data)

    def _take(self, size: int) -> bytes | None:
        while len(self._buffer) < size:
            data = self._connection.recv(65536)
            if not data:
                return None
            self._buffer += data
        taken = bytes(self._buffer[:size])
        del self._buffer[:size]
        return taken


class Tunnel:
    """The bytes inside the messages: newer clients speak SPDY through a WebSocket."""

    def __init__(self, websocket: WebSocket) -> None:
        self._websocket = websocket

    def recv(self, size: int, /) -> bytes:
        while True:
            message = self._websocket.receive()
            if message is None:
                return b""
            if message:
                return message

    def sendall(self, data: bytes, /) -> None:
        self._websocket.send(data)
