"""A port on the loopback. In a crowd, the connections of other users end there, before anything is made for them.

Else whoever opens thousands a second would have the event loop make as many transports and TLS objects, and those who
may come in would wait for that. They are not turned away while there is room: a client may have started its proxy as
another user than it is by now.
"""

from __future__ import annotations

import socket
import struct
from collections.abc import Callable
from typing import Any

from kubeauthn._io.tcp_peer import is_this_users

CROWD = 64
"""So many connections that come at once, or have not shown a certificate, are a crowd."""
_AT_ONCE = 256
"""So many are turned away before everybody else has a turn."""
_RESET = struct.pack("ii", 1, 0)


class Door(socket.socket):
    """`is_crowded` says whether those who came in before are a crowd already."""

    def __init__(self, port: int, backlog: int, is_crowded: Callable[[], bool]) -> None:
        super().__init__(socket.AF_INET, socket.SOCK_STREAM)
        self._is_crowded = is_crowded
        self._came = 0
        try:
            self.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            self.bind(("127.0.0.1", port))
            self.listen(backlog)
        except BaseException:
            self.close()
            raise

    def accept(self) -> tuple[socket.socket, Any]:
        """As asyncio calls it, again and again, until there are no more or it says so."""
        try:
            while True:
                connection, peer = super().accept()
                self._came += 1
                if self._came <= CROWD and not self._is_crowded():
                    return connection, peer
                if is_this_users(peer, connection.getsockname()) is not False:
                    return connection, peer
                connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET)  # nothing of it stays behind
                connection.close()
                if self._came > _AT_ONCE:
                    raise BlockingIOError
        except BlockingIOError:
            self._came = 0
            raise
