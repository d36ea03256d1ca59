"""Whose the other end of a loopback connection is. The kernel is asked for that one connection (Linux, sock_diag).

Its table of all connections says the same, but to read it takes the longer, the more of them somebody opens.
"""

from __future__ import annotations

import os
import socket
import struct
from typing import Any

_SOCK_DIAG = 4
_BY_FAMILY = 20
_REQUEST = 1
_ANY = 0xFFFFFFFF
_HEADER = struct.Struct("=IHHII")
_QUESTION = struct.Struct("=BBBxI")
_ENDS = struct.Struct("!HH4s12x4s12x")
_NO_MORE = struct.Struct("=III")
_USER_AND_INODE = struct.Struct("=II")
_USER_AT = _HEADER.size + 4 + _ENDS.size + _NO_MORE.size + 12
_ANSWER_BYTES = 4096


def is_this_users(peer: Any, here: Any) -> bool | None:
    """Whether a process of this user holds the end at `peer` of the connection to `here`, as sockets name the two.

    None where the kernel does not say, and for what is not TCP over IPv4. An end that was closed is nobody's.
    """
    family = getattr(socket, "AF_NETLINK", None)
    if family is None:
        return None
    try:
        (address, port), (own_address, own_port) = peer, here
        ends = _ENDS.pack(port, own_port, socket.inet_aton(address), socket.inet_aton(own_address))
        question = _QUESTION.pack(socket.AF_INET, socket.IPPROTO_TCP, 0, _ANY) + ends + _NO_MORE.pack(0, _ANY, _ANY)
        header = _HEADER.pack(_HEADER.size + len(question), _BY_FAMILY, _REQUEST, 1, 0)
        with socket.socket(family, socket.SOCK_RAW | socket.SOCK_NONBLOCK, _SOCK_DIAG) as kernel:
            kernel.send(header + question)
            answer, (sender, _) = kernel.recvfrom(_ANSWER_BYTES)  # it is there as soon as the question is sent
        _, kind, _, _, _ = _HEADER.unpack_from(answer)
        if sender != 0 or kind != _BY_FAMILY:
            return None
        user, inode = _USER_AND_INODE.unpack_from(answer, _USER_AT)
    except (OSError, ValueError, TypeError, struct.error):
        return None
    return bool(inode) and user == os.geteuid()
