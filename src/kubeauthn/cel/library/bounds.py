"""How long a text a function may build. Costs are reckoned after a call: too late for one that fills the memory."""

from __future__ import annotations

from collections.abc import Iterable

from ..errors import LimitError
from ..limits import MAX_TEXT

__all__ = ["check_length", "join"]


def check_length(length: int) -> None:
    if length > MAX_TEXT:
        raise LimitError(f"text of more than {MAX_TEXT} characters")


def join(separator: str, pieces: Iterable[str]) -> str:
    """separator.join(pieces), given up before it is too long."""
    parts: list[str] = []
    length = 0
    for piece in pieces:
        length += len(piece) + len(separator)
        check_length(length)
        parts.append(piece)
    return separator.join(parts)
