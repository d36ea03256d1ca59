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
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

_EVENTS = "anon_inode:[eventpoll]"


def stop_accepting() -> bool:
    """True if there are connections, so that it is worth to wait for them."""
    if sys.platform != "linux":
        return False
    listeners: dict[int, object] = {}
    watchers = [descriptor for descriptor in _descriptors() if _kind(descriptor) == _EVENTS]
    for descriptor, one in _sockets():
        if _listens(one):
            listeners[descriptor] = _place(one)
    for watcher in watchers:
        _forget(watcher, listeners)
    places = set(listeners.values())
    return any(not _listens(one) and _place(one) in places for _, one in _sockets())


def _sockets() -> Iterator[tuple[int, socket.socket]]:
    """With their descriptors: duplicates, one at a time, for where connections are many, descriptors are few."""
    for descriptor in _descriptors():
        if not _kind(descriptor).startswith("socket:"):
            continue
        with suppress(OSError):  # closed since
            with socket.socket(fileno=os.dup(descriptor)) as one:
                yield descriptor, one


def _kind(descriptor: int) -> str:
    with suppress(OSError):  # closed since
        return os.readlink(f"/proc/self/fd/{descriptor}")
    return ""


def _listens(one: socket.socket) -> bool:
    return bool(one.getsockopt(socket.SOL_SOCKET, socket.SO_ACCEPTCONN))


def _descriptors() -> list[int]:
    with suppress(OSError):  # not even one to be had for the look
        return [int(name) for name in os.listdir("/proc/self/fd")]
    return []


def _forget(watcher: int, listeners: Iterable[int]) -> None:
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
