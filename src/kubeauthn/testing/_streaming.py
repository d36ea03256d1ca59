"""A watch on its connection: events go out as chunks, and a peer that leaves is noticed at once."""

from __future__ import annotations

import contextlib
import selectors
import ssl
import time
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from kubeauthn.testing._http import HttpConnection
    from kubeauthn.testing._watch import Watch


def stream(connection: ssl.SSLSocket, http: HttpConnection, watch: Watch) -> bool:
    """Send a watch's events until it ends (True) or the peer is gone (False)."""
    http.begin_stream()
    deadline = None if watch.seconds is None else time.monotonic() + watch.seconds
    with selectors.DefaultSelector() as selector:
        selector.register(connection, selectors.EVENT_READ)
        selector.register(watch.wakeup, selectors.EVENT_READ)
        while True:
            lines, ended = watch.take()
            for line in lines:
                http.write_chunk(line)
            left = None if deadline is None else deadline - time.monotonic()
            if ended or (left is not None and left <= 0):
                http.end_stream()
                return True
            ready = {key.fileobj for key, _ in selector.select(left)}
            if connection in ready and _peer_is_gone(connection):
                return False


def _peer_is_gone(connection: ssl.SSLSocket) -> bool:
    """Readable during a watch means closed, or a TLS message that is none of ours."""
    connection.setblocking(False)
    try:
        connection.recv(1)
    except ssl.SSLWantReadError:
        return False
    except OSError:
        return True
    finally:
        with contextlib.suppress(OSError):
            connection.setblocking(True)
    return True
