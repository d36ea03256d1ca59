"""What an `ApiServer` writes down: requests and connections.

Tokens are shown, unlike everywhere else in this package: they are the test's own, and a
failed assertion that hides which token came would help nobody.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, replace
from itertools import count
from threading import Lock
from typing import TYPE_CHECKING

from kubeauthn.testing._http import TRUE_WORDS

if TYPE_CHECKING:
    from collections.abc import Mapping


@dataclass(frozen=True)
class RecordedRequest:
    """A request as it arrived. `user` is None when it carried no credential that holds."""

    method: str
    path: str
    query: Mapping[str, str]
    headers: tuple[tuple[str, str], ...]
    body: bytes
    user: str | None
    token: str | None
    certificate_serial: int | None
    connection_id: int
    tls_version: str
    server_name: str | None
    at: float

    def header(self, name: str) -> str | None:
        """The first header of this name, in any case."""
        return next((value for key, value in self.headers if key.lower() == name.lower()), None)

    @property
    def is_watch(self) -> bool:
        return self.query.get("watch") in TRUE_WORDS


@dataclass(frozen=True)
class RecordedConnection:
    """A connection. `closed_at` is None while it is open; `error` says why a handshake or request was not taken."""

    id: int
    opened_at: float
    closed_at: float | None = None
    certificate_serial: int | None = None
    sni: str | None = None
    error: str | None = None

    @property
    def is_open(self) -> bool:
        return self.closed_at is None


class ConnectionLog:
    """The connections so far. Each entry is replaced, never changed, so a copy of the list is a snapshot."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._ids = count(1)
        self._entries: dict[int, RecordedConnection] = {}

    def open(self) -> int:
        with self._lock:
            number = next(self._ids)
            self._entries[number] = RecordedConnection(number, opened_at=time.time())
            return number

    def handshaken(self, number: int, *, certificate_serial: int | None, sni: str | None) -> None:
        with self._lock:
            self._entries[number] = replace(self._entries[number], certificate_serial=certificate_serial, sni=sni)

    def closed(self, number: int, *, error: str | None = None) -> None:
        with self._lock:
            self._entries[number] = replace(self._entries[number], closed_at=time.time(), error=error)

    def snapshot(self) -> list[RecordedConnection]:
        with self._lock:
            return list(self._entries.values())
