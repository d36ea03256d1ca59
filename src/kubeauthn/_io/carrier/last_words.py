"""What a server said before it broke off.

One that refuses an upload answers and closes while more is on its way to it. The next write then fails, and asyncio
reads no more from a connection that a write has failed on, though the answer is there: a 502 in place of a reason.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Iterator

_PIECE = 64 * 1024
_PIECES = 16
"""More is not a reason but a body, and that is lost either way."""


def last_words(transport: asyncio.BaseTransport | None, error: Exception | None) -> Iterator[bytes]:
    """To be asked for when a connection is lost, before its socket is closed. Nothing is waited for."""
    connection = None if transport is None else transport.get_extra_info("socket")
    if connection is None or not isinstance(error, OSError):
        return
    try:
        for _ in range(_PIECES):
            piece = os.read(connection.fileno(), _PIECE)
            if not piece:
                return
            yield piece
    except OSError:  # no more is there, or all of it is gone
        return
