"""Connections on which nobody says anything are ended.

Granian limits the time for a TLS handshake, for the head of a request and between two requests of HTTP/1.1, and asks
HTTP/2 clients whether they are still there. Between the handshake and the first byte it waits for ever: whoever opened
enough of such connections would keep everybody else out. The kernel knows when a connection last received something.
"""

from __future__ import annotations

import os
import socket
import struct
import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

_STATE_ESTABLISHED = 1
_LAST_RECEIVED_AT = 52
"""In Linux' `struct tcp_info`: `tcpi_last_data_recv`, in milliseconds."""
_INFO_BYTES = 104


def end_silent(seconds: float) -> int:
    """Ends those connections of this process' listening sockets that received nothing for so long. How many."""
    if sys.platform != "linux":
        return 0
    ports = {one.getsockname()[1] for one in _tcp_sockets() if _listens(one)}
    ended = 0
    for one in _tcp_sockets():
        if not _listens(one) and one.getsockname()[1] in ports and _silent_for(one) >= seconds:
            _end(one)
            ended += 1
    return ended


def _tcp_sockets() -> Iterator[socket.socket]:
    """Duplicates: whatever their owners do meanwhile, these stay what they are. One at a time: where connections are
    many, descriptors are few."""
    for name in os.listdir("/proc/self/fd"):
        try:
            if not os.readlink(f"/proc/self/fd/{name}").startswith("socket:"):
                continue
            one = socket.socket(fileno=os.dup(int(name)))
        except OSError:
            continue  # closed since
        with one:
            if one.family in (socket.AF_INET, socket.AF_INET6) and one.type == socket.SOCK_STREAM:
                yield one


def _listens(one: socket.socket) -> bool:
    return bool(one.getsockopt(socket.SOL_SOCKET, socket.SO_ACCEPTCONN))


def _silent_for(one: socket.socket) -> float:
    """Seconds since it last received something; 0 where that cannot be told."""
    try:
        info = one.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, _INFO_BYTES)
    except OSError:
        return 0.0
    if len(info) < _LAST_RECEIVED_AT + 4 or info[0] != _STATE_ESTABLISHED:
        return 0.0
    milliseconds: int = struct.unpack_from("=I", info, _LAST_RECEIVED_AT)[0]
    return milliseconds / 1000


def _end(one: socket.socket) -> None:
    try:
        one.shutdown(socket.SHUT_RDWR)
    except OSError:
        pass  # it ended by itself
