"""The body of an answer as it came over the wire, and no longer than agreed: what is compressed could be any size."""

from __future__ import annotations

import asyncio

from kubeauthn.errors import EnvironmentFailure

TYPE_CHECKING = False
if TYPE_CHECKING:
    import httpx2

_PIECES_AT_ONCE = 100
_LONGEST_LENGTH = 18
"""Digits of a Content-Length; a longer one is too large, whatever it says."""


async def read_bounded(response: httpx2.Response, place: str, most_bytes: int) -> bytes:
    """Raises EnvironmentFailure, which names the place and nothing that came from there."""
    if response.headers.get("content-encoding", "identity").strip().lower() not in ("", "identity"):
        raise EnvironmentFailure(f"{place} answered compressed, which was not asked for")
    too_large = f"{place} answered more than {most_bytes} bytes"
    told = response.headers.get("content-length", "")
    if told.isascii() and told.isdigit() and (len(told) > _LONGEST_LENGTH or int(told) > most_bytes):
        raise EnvironmentFailure(too_large)
    body = bytearray()
    pieces = 0
    async for piece in response.aiter_raw():
        body += piece
        if len(body) > most_bytes:
            raise EnvironmentFailure(too_large)
        pieces += 1
        if pieces % _PIECES_AT_ONCE == 0:
            # Ten thousand pieces of one byte may be there already, and nobody else would have a turn before their end.
            await asyncio.sleep(0)
    return bytes(body)
