"""One loopback listener, one thread for each connection, and an end that leaves nothing behind."""

from __future__ import annotations

import contextlib
import selectors
import socket
import ssl
import time
from threading import Lock, Thread
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

BACKLOG = 4096
"""A thousand clients may connect at the same moment; a full queue would cost each a second."""

JOIN_SECONDS = 10.0
HANDSHAKE_SECONDS = 30.0


class Listener:
    """Accepts on 127.0.0.1 and runs `serve(connection)` in a thread; closes the connection afterwards.

    With a `context` the connection is an `SSLSocket` whose handshake `serve` has still to do.
    `serve` must end when its socket is shut down: that is how `stop` ends it.
    """

    def __init__(
        self, serve: Callable[[socket.socket], None], *, name: str, context: ssl.SSLContext | None = None
    ) -> None:
        self._serve = serve
        self._name = name
        self._context = context
        self._stopped = False
        self._lock = Lock()
        self._open: dict[socket.socket, Thread] = {}
        self._socket = socket.create_server(("127.0.0.1", 0), backlog=BACKLOG)
        self._socket.setblocking(False)
        self.port: int = self._socket.getsockname()[1]
        self._stop_read, self._stop_write = socket.socketpair()
        self._acceptor = Thread(target=self._accept, name=f"{name} acceptor", daemon=True)
        self._acceptor.start()

    def _accept(self) -> None:
        with selectors.DefaultSelector() as selector:
            selector.register(self._socket, selectors.EVENT_READ)
            selector.register(self._stop_read, selectors.EVENT_READ)
            while True:
                ready = {key.fileobj for key, _ in selector.select()}
                if self._stop_read in ready:
                    return
                try:
                    connection, _ = self._socket.accept()
                except (BlockingIOError, ConnectionError):
                    continue  # the peer is gone again
                with contextlib.suppress(OSError):
                    self._start(connection)

    def _start(self, connection: socket.socket) -> None:
        connection.setblocking(True)
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        if self._context is not None:
            # Wrapped here because wrapping moves the descriptor to a new object, and `stop` must know that one.
            connection = self._context.wrap_socket(connection, server_side=True, do_handshake_on_connect=False)
        thread = Thread(target=self._run, args=(connection,), name=f"{self._name} connection", daemon=True)
        with self._lock:
            self._open[connection] = thread
        thread.start()

    def _run(self, connection: socket.socket) -> None:
        try:
            self._serve(connection)
        finally:
            with self._lock:
                self._open.pop(connection, None)
                connection.close()

    def drop_connections(self) -> None:
        """Cut every open connection, as a network failure would."""
        with self._lock:
            for connection in self._open:
                shut_down(connection)

    def stop(self) -> None:
        """Close everything and wait for every thread. A second time it does nothing."""
        if self._stopped:
            return
        self._stopped = True
        self._stop_write.send(b"x")
        self._acceptor.join(JOIN_SECONDS)
        for part in (self._socket, self._stop_read, self._stop_write):
            part.close()
        self.drop_connections()
        with self._lock:
            threads = list(self._open.values())
        deadline = time.monotonic() + JOIN_SECONDS
        for thread in threads:
            thread.join(max(0.0, deadline - time.monotonic()))
        left = [thread.name for thread in (self._acceptor, *threads) if thread.is_alive()]
        if left:
            raise RuntimeError(f"{len(left)} threads of the {self._name} did not end in {JOIN_SECONDS:g} s")


def handshake(connection: socket.socket) -> ssl.SSLSocket:
    """The TLS handshake of a connection that came with a `context`, in the connection's own thread."""
    if not isinstance(connection, ssl.SSLSocket):
        raise TypeError("a handshake needs a connection with TLS")
    connection.settimeout(HANDSHAKE_SECONDS)
    connection.do_handshake()
    connection.settimeout(None)
    return connection


def shut_down(connection: socket.socket) -> None:
    """Wake whoever reads or writes this socket.

    Not `connection.shutdown`: on a TLS socket that drops the TLS layer first, and another thread's
    next write would go out in the clear.
    """
    with contextlib.suppress(OSError):
        socket.socket.shutdown(connection, socket.SHUT_RDWR)
