"""Messages between the supervisor and its workers: one JSON object a line, over a socket pair nobody else can reach."""

from __future__ import annotations

import asyncio
import json
import socket
from typing import TYPE_CHECKING, Any

from kubeauthn.server import limits

if TYPE_CHECKING:
    from collections.abc import AsyncIterator


class Channel:
    """Raises ConnectionError when the other end is gone."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._writer = writer

    @classmethod
    async def over(cls, connection: socket.socket) -> Channel:
        connection.setblocking(False)
        return cls(*await asyncio.open_unix_connection(sock=connection, limit=limits.MESSAGE_BYTES))

    def send(self, **message: Any) -> None:
        if not self._writer.is_closing():
            self._writer.write(json.dumps(message).encode() + b"\n")

    async def flush(self) -> None:
        await self._writer.drain()

    async def receive(self) -> dict[str, Any]:
        line = await self._reader.readline()
        if not line.endswith(b"\n"):
            raise ConnectionError("the other end is gone")
        message: dict[str, Any] = json.loads(line)
        return message

    async def messages(self) -> AsyncIterator[dict[str, Any]]:
        """Until the other end is gone."""
        while True:
            try:
                yield await self.receive()
            except (ConnectionError, ValueError):
                return

    def close(self) -> None:
        self._writer.close()


def announce(doorbell: socket.socket) -> socket.socket:
    """A worker's own channel: the other end goes through the doorbell, which all workers share."""
    mine, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_STREAM)
    with theirs:
        socket.send_fds(doorbell, [b"worker"], [theirs.fileno()])
    return mine


def admitted(doorbell: socket.socket) -> socket.socket | None:
    """The supervisor's end of a worker's channel, if somebody rang."""
    try:
        _, descriptors, _, _ = socket.recv_fds(doorbell, 16, 1)
    except BlockingIOError:
        return None
    return socket.socket(fileno=descriptors[0]) if descriptors else None
