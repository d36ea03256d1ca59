"""TLS sessions to resume: a resumed connection needs no signature, so nobody is asked for a touch again.

Not by `SSLSocket.session`: each look at it leaves a copy of the session behind that nobody frees (seen in CPython 3.11
to 3.13, some 6 KB each). OpenSSL is asked for its own, and given it again. Each time as a copy: where a connection
ends without a farewell, OpenSSL takes the session that it used for spoilt.
"""

from __future__ import annotations

from typing import Any

from kubeauthn._io.tls_signer.context_pointer import ConnectionPointer
from kubeauthn._io.tls_signer.libcrypto import Library

_MOST_SERVERS = 32
_LOOKS = 4
"""So often a connection is asked for its session: with TLS 1.3 the ticket comes some time after the handshake."""


class HeldSession:
    """The one reference to a session of OpenSSL's."""

    __slots__ = ("_free", "pointer")

    def __init__(self, pointer: int, library: Library) -> None:
        self.pointer = pointer
        self._free = library.SSL_SESSION_free

    def __del__(self) -> None:
        self._free(self.pointer)  # of none, nothing happens


class Sessions:
    """The newest session per server name. Kept by the context: a session is good for that context only."""

    def __init__(self, library: Library, pointer: ConnectionPointer) -> None:
        self._library = library
        self._pointer = pointer
        self._newest: dict[str, HeldSession] = {}

    def offer(self, connection: Any) -> None:
        """Before the handshake: what the server gave to the last one, which may save the signature."""
        name = connection.server_hostname
        session = self._newest.get(name) if name else None
        if session is not None and (ssl := self._pointer.of(connection)):
            copy = HeldSession(self._library.SSL_SESSION_dup(session.pointer), self._library)
            self._library.SSL_set_session(ssl, copy.pointer)  # takes a reference of its own

    def note(self, connection: Any, looks: int) -> int:
        """Take a look at what `connection` has; returns how many looks are left to it."""
        name = connection.server_hostname
        ssl = self._pointer.of(connection) if name else 0
        found = self._library.SSL_get1_session(ssl) if ssl else None
        if not found:
            return looks - 1
        session = HeldSession(found, self._library)
        if not self._library.SSL_SESSION_is_resumable(found):  # with TLS 1.3, no ticket has come yet
            return looks - 1
        session = HeldSession(self._library.SSL_SESSION_dup(found), self._library)
        if not session.pointer:
            return looks - 1
        self._newest.pop(name, None)
        self._newest[name] = session
        while len(self._newest) > _MOST_SERVERS:
            self._newest.pop(next(iter(self._newest)), None)
        return 0

    @staticmethod
    def looks() -> int:
        return _LOOKS
