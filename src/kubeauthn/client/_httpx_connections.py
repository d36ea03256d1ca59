"""The connections of one client certificate in httpx or httpx2, and when to let go of them."""

from __future__ import annotations

import contextlib
import threading
from typing import Any


class Connections:
    """One library transport. Once it is retired, idle connections are closed, and busy ones when their response ends.

    None is closed while a request is on its way out: it may just have been given one that still looks idle.
    """

    def __init__(self, transport: Any) -> None:
        self.transport = transport
        self.retired = False
        self._lock = threading.Lock()
        self._sending = 0

    def take(self) -> None:
        """A request is about to be sent."""
        with self._lock:
            self._sending += 1

    def taken(self) -> None:
        """It was sent and its response has begun, or none will come."""
        with self._lock:
            self._sending -= 1

    def retire(self) -> None:
        with self._lock:
            self.retired = True

    # To be called on a retired one whenever a request was sent or a response has ended. A connection that cannot
    # be closed properly is gone all the same, and must not fail the request that happened to find it.

    def close_idle(self) -> None:
        with self._lock:  # so that nobody is given a connection between the look and the closing
            for connection in self._idle_locked():
                with contextlib.suppress(Exception):
                    connection.close()

    async def close_idle_async(self) -> None:
        for connection in self._idle_locked():
            # Looked at once more: others run while a connection is being closed.
            if connection.is_idle():
                with contextlib.suppress(Exception):
                    await connection.aclose()

    def _idle_locked(self) -> list[Any]:
        if self._sending:
            return []
        return [connection for connection in self.transport._pool.connections if connection.is_idle()]
