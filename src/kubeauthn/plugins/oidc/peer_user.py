"""Whose process is at the other end of a loopback connection, by the kernel's own table."""

from __future__ import annotations

import os
import socket
from ipaddress import ip_address

_TABLES = ("/proc/net/tcp", "/proc/net/tcp6")
_TABLE_BYTES = 64 << 20
_ESTABLISHED = "01"
_LOCAL, _REMOTE, _STATE, _USER, _INODE = 1, 2, 3, 7, 9


def is_ours(peer: tuple[str, int], here: tuple[str, int]) -> bool:
    """Whether this user, or root, holds the peer's end. Where the system has no such table: yes.

    The connection must still be open at the other end. One that was closed belongs to nobody in the table, so a
    stranger who writes and closes at once would pass for root.
    """
    wanted = {(theirs, ours) for theirs in _spellings(*peer) for ours in _spellings(*here)}
    known = False
    for table in _TABLES:
        try:
            with open(table, encoding="ascii") as file:
                lines = file.read(_TABLE_BYTES).splitlines()[1:]
        except (OSError, ValueError):
            continue
        known = True
        for line in lines:
            fields = line.split()
            if len(fields) > _INODE and (fields[_LOCAL], fields[_REMOTE]) in wanted:
                held = fields[_STATE] == _ESTABLISHED and fields[_INODE] != "0"
                return held and int(fields[_USER]) in (os.geteuid(), 0)
    return not known


def _spellings(host: str, port: int) -> list[str]:
    """As the tables write it: in words of the machine's byte order; IPv4 also as a socket of IPv6 has it."""
    packed = ip_address(host.partition("%")[0]).packed
    forms = [packed, b"\0" * 10 + b"\xff\xff" + packed] if len(packed) == 4 else [packed]
    return [f"{''.join(_words(form))}:{port:04X}" for form in forms]


def _words(packed: bytes) -> list[str]:
    return [f"{socket.ntohl(int.from_bytes(packed[at : at + 4], 'big')):08X}" for at in range(0, len(packed), 4)]
