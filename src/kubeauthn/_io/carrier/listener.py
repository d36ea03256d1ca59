"""Where clients come in: a unix socket or a port on the loopback, always with TLS and a client certificate."""

from __future__ import annotations

import asyncio
import contextlib
import os
import ssl
from typing import TYPE_CHECKING

from kubeauthn._io.carrier.downstream import Downstream
from kubeauthn._io.carrier.wires import TlsWire
from kubeauthn.errors import EnvironmentFailure

if TYPE_CHECKING:
    from kubeauthn._io.carrier.plan import Route

CONNECTIONS = 4096
SHAKING_HANDS = 256
"""Connections that have not shown a certificate yet. Anybody on this machine can open those to a port."""
BACKLOG = 512
_DESCRIPTORS = 2 * CONNECTIONS + SHAKING_HANDS + 256
"""Each connection has one to the server, and a few files are open beside them."""


class Listener:
    """Accepts connections, counts them, and knows since when there are none."""

    def __init__(self, route: Route, context: ssl.SSLContext) -> None:
        if context.verify_mode != ssl.CERT_REQUIRED:
            raise EnvironmentFailure("the listener's TLS does not ask for a client certificate")
        self.route = route
        self._context = context
        self._connections: set[Downstream] = set()
        self._shaking: set[Downstream] = set()
        self._server: asyncio.Server | None = None
        self._idle_since = 0.0
        self.accepted = 0

    async def on_socket(self, path: str) -> None:
        self._start()
        before = os.umask(0o177)
        try:
            self._server = await asyncio.get_running_loop().create_unix_server(self._wire, path, backlog=BACKLOG)
        finally:
            os.umask(before)

    async def on_loopback(self, port: int = 0) -> int:
        self._start()
        try:
            self._server = await asyncio.get_running_loop().create_server(
                self._wire, "127.0.0.1", port, backlog=BACKLOG, reuse_address=True
            )
        except OSError as error:
            raise EnvironmentFailure(f"127.0.0.1:{port} cannot be listened on: {error.strerror}") from None
        bound: int = self._server.sockets[0].getsockname()[1]
        return bound

    @property
    def connections(self) -> int:
        return len(self._connections)

    @property
    def shaking_hands(self) -> int:
        return len(self._shaking)

    def idle_seconds(self) -> float:
        """How long nobody has been connected; 0 while somebody is."""
        return 0.0 if self._connections else asyncio.get_running_loop().time() - self._idle_since

    def touch(self) -> None:
        """Somebody is about to come."""
        self._idle_since = asyncio.get_running_loop().time()

    def stop(self) -> None:
        """At once: what is under way is broken off."""
        if self._server is not None:
            self._server.close()
        for connection in list(self._connections):
            connection.abort()

    # for the connections

    def opened(self, connection: Downstream) -> None:
        self._shaking.discard(connection)
        self._connections.add(connection)
        self.accepted += 1
        if len(self._connections) > CONNECTIONS:
            connection.abort()

    def closed(self, connection: Downstream) -> None:
        self._shaking.discard(connection)
        if connection in self._connections:  # who never got in does not keep us alive
            self._connections.discard(connection)
            self.touch()

    def _start(self) -> None:
        self.touch()
        _make_room()

    def _wire(self) -> asyncio.BaseProtocol:
        if len(self._shaking) >= SHAKING_HANDS:
            return _TurnedAway()
        connection = Downstream(self)
        self._shaking.add(connection)
        return TlsWire(connection, self._context, None)


class _TurnedAway(asyncio.Protocol):
    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)  # noqa: S101  a server's
        transport.abort()


def _make_room() -> None:
    """As many open files as the system lets us have: the usual 1,024 are not enough for a thousand watches."""
    try:
        import resource
    except ImportError:  # Windows, which has no such limit
        return
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = _DESCRIPTORS if hard == resource.RLIM_INFINITY else min(hard, _DESCRIPTORS)
    if soft != resource.RLIM_INFINITY and soft < wanted:
        with contextlib.suppress(OSError, ValueError):
            resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
