"""JSON numbers that no double can hold. Go reads the rest of the document and refuses the member that has one."""

from __future__ import annotations

__all__ = ["TooLarge", "first_too_large"]


class TooLarge(str):
    """A number that no double can hold, as it was written."""

    __slots__ = ()


def first_too_large(value: object) -> str | None:
    """The first such number in a value."""
    waiting = [value]
    while waiting:
        current = waiting.pop()
        if type(current) is TooLarge:
            return current
        if isinstance(current, dict):
            waiting.extend(reversed(current.values()))
        elif isinstance(current, list):
            waiting.extend(reversed(current))
    return None
