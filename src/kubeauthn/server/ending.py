"""How a worker ends: it takes no more connections, and those it just took have a moment to say what they want.

Granian, told to end, drops handshakes that are under way and connections that have not sent anything yet. So it is told
a moment later. Until then nobody may come anew: the listening socket belongs to all workers and stays open, but this
one no longer hears of it.
"""

from __future__ import annotations

import os
import select
import socket
import sys
from contextlib import suppress

_EVENTS = "anon_inode:[eventpoll]"


def stop_accepting() -> bool:
    """True if there are connections, so that it is worth to wait for them."""
    if sys.platform != "linux":
        return False
    listeners: dict[int, socket.socket] = {}
    connections: list[socket.socket] = []
    watchers: list[int] = []
    try:
        for descriptor in _descriptors():
            with suppress(OSError):  # closed since
                kind = os.readlink(f"/proc/self/fd/{descriptor}")
                if kind == _EVENTS:
                    watchers.append(descriptor)
                elif kind.startswith("socket:"):
                    one = socket.socket(fileno=os.dup(descriptor))
                    if one.getsockopt(socket.SOL_SOCKET, socket.SO_ACCEPTCONN):
                        listeners[descriptor] = one
                    else:
                        connections.append(one)
        for watcher in watchers:
            _forget(watcher, listeners)
        places = {_place(one) for one in listeners.values()}
        return any(_place(one) in places for one in connections)
    finally:
        for one in (*listeners.values(), *connections):
            one.close()


def _descriptors() -> list[int]:
    return [int(name) for name in os.listdir("/proc/self/fd")]


def _forget(watcher: int, listeners: dict[int, socket.socket]) -> None:
    with suppress(OSError), select.epoll.fromfd(os.dup(watcher)) as events:
        for descriptor in listeners:
            with suppress(OSError):  # it watched something else
                events.unregister(descriptor)


def _place(one: socket.socket) -> object:
    """Where it is at home: a connection that was taken has the port or the path of its listener."""
    try:
        name = one.getsockname()
    except OSError:
        return None
    return name[1] if isinstance(name, tuple) and len(name) > 1 else name
