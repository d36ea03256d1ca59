"""Messages between the supervisor and its workers: one JSON object a line, over a socket pair nobody else can reach."""

from __future__ import annotations

import asyncio
import errno
import json
import socket
from typing import TYPE_CHECKING, Any

from kubeauthn.errors import EnvironmentFailure
from kubeauthn.server import limits

if TYPE_CHECKING:
    from collections.abc import AsyncIterator


# How kernels say it: macOS with the first, Linux (of a kind that it has not) with the second.
_NO_SUCH_SOCKETS = (errno.EPROTONOSUPPORT, errno.ESOCKTNOSUPPORT, errno.EPROTOTYPE, errno.EOPNOTSUPP)


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


def doorbells(kind: int = socket.SOCK_SEQPACKET) -> tuple[socket.socket, socket.socket]:
    """A message each, whole or not at all: all workers ring at one. And nobody but them holds the other end."""
    try:
        return socket.socketpair(socket.AF_UNIX, kind)
    except OSError as error:
        if error.errno not in _NO_SUCH_SOCKETS:
            raise
        raise EnvironmentFailure(
            "serve cannot run on this system: its workers need unix sockets that keep messages whole (SOCK_SEQPACKET)",
            hint="it runs on Linux; the ASGI middleware and Authenticator run here too: see docs/platforms.md",
        ) from None


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
