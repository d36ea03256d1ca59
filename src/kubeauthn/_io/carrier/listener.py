"""Where clients come in: a unix socket or a port on the loopback, always with TLS and a client certificate."""

from __future__ import annotations

import asyncio
import os
import ssl
from typing import TYPE_CHECKING

from kubeauthn._io.carrier.door import CROWD, Door
from kubeauthn._io.carrier.downstream import Downstream
from kubeauthn._io.carrier.wires import Lower, TlsWire
from kubeauthn._io.descriptors import make_room
from kubeauthn._io.tcp_peer import is_this_users
from kubeauthn.errors import EnvironmentFailure

if TYPE_CHECKING:
    from kubeauthn._io.carrier.plan import Route

CONNECTIONS = 4096
SHAKING_HANDS = 256
"""Connections that have not shown a certificate yet. Anybody on this machine can open those to a port, so the oldest
makes room: whoever holds them all for long keeps nobody out who shows one at once. This user's own stay the longest."""
BACKLOG = 512
_DESCRIPTORS = 2 * CONNECTIONS + SHAKING_HANDS + BACKLOG + 256
"""Each connection has one to the server, and a few files are open beside them."""


class Listener:
    """Accepts connections, counts them, and knows since when there are none."""

    def __init__(self, route: Route, context: ssl.SSLContext) -> None:
        if context.verify_mode != ssl.CERT_REQUIRED:
            raise EnvironmentFailure("the listener's TLS does not ask for a client certificate")
        self.route = route
        self._context = context
        self._connections: set[Downstream] = set()
        self._shaking: dict[Downstream, _Incoming] = {}
        """The oldest first."""
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
            door = Door(port, BACKLOG, lambda: len(self._shaking) >= CROWD)
        except OSError as error:
            raise EnvironmentFailure(f"127.0.0.1:{port} cannot be listened on: {error.strerror}") from None
        self._server = await asyncio.get_running_loop().create_server(self._wire, sock=door, backlog=BACKLOG)
        bound: int = door.getsockname()[1]
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

    def shakes_hands(self, connection: Downstream, wire: _Incoming) -> None:
        if len(self._shaking) >= SHAKING_HANDS:
            oldest = next((each for each, other in self._shaking.items() if not other.is_this_users()), None)
            self._shaking.pop(oldest or next(iter(self._shaking))).abort()
        self._shaking[connection] = wire

    def opened(self, connection: Downstream) -> None:
        self._shaking.pop(connection, None)
        self._connections.add(connection)
        self.accepted += 1
        if len(self._connections) > CONNECTIONS:
            connection.abort()

    def closed(self, connection: Downstream) -> None:
        self._shaking.pop(connection, None)
        if connection in self._connections:  # who never got in does not keep us alive
            self._connections.discard(connection)
            self.touch()

    def _start(self) -> None:
        self.touch()
        make_room(_DESCRIPTORS)

    def _wire(self) -> asyncio.BaseProtocol:
        return _Incoming(self, self._context)


class _Incoming(TlsWire):
    """A wire that takes its place among those who shake hands when it stands, not before: it can be ended then."""

    def __init__(self, listener: Listener, context: ssl.SSLContext) -> None:
        self._listener = listener
        self._connection = Downstream(listener)
        self._asked = False
        self._is_this_users: bool | None = None
        super().__init__(self._connection, context, None)

    def is_this_users(self) -> bool | None:
        """None where the kernel does not say. It is asked once, and only when places run out."""
        if not self._asked:
            self._asked = True
            ends = (self._transport.get_extra_info(name) for name in ("peername", "sockname"))
            self._is_this_users = is_this_users(*ends)
        return self._is_this_users

    def opened(self, lower: Lower) -> None:
        super().opened(lower)
        self._listener.shakes_hands(self._connection, self)
