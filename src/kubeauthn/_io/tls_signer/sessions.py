"""TLS sessions to resume: a resumed connection needs no signature, so nobody is asked for a touch again."""

from __future__ import annotations

import ssl
from typing import Any

_MOST_SERVERS = 32
_LOOKS = 4
"""So often a connection is asked for its session: with TLS 1.3 the ticket comes some time after the handshake."""


class Sessions:
    """The newest session per server name. Kept by the context: a session is good for that context only."""

    def __init__(self) -> None:
        self._newest: dict[str, ssl.SSLSession] = {}

    def find(self, server_name: str | None) -> ssl.SSLSession | None:
        return self._newest.get(server_name) if server_name else None

    def note(self, connection: Any, looks: int) -> int:
        """Take a look at what `connection` has; returns how many looks are left to it."""
        name = connection.server_hostname
        session = connection.session if name else None
        if session is None:
            return looks - 1
        # TLS 1.2 without a ticket may still be resumed by its id; in TLS 1.3 it takes a ticket.
        if not session.has_ticket and (connection.version() == "TLSv1.3" or not session.id):
            return looks - 1
        self._newest.pop(name, None)
        self._newest[name] = session
        while len(self._newest) > _MOST_SERVERS:
            self._newest.pop(next(iter(self._newest)), None)
        return 0

    @staticmethod
    def looks() -> int:
        return _LOOKS
