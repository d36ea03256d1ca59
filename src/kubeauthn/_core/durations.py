"""Spans of time in words, the same wherever they are said."""

from __future__ import annotations

_UNITS = (("year", 365 * 86400), ("day", 86400), ("hour", 3600), ("minute", 60), ("second", 1))


def duration(seconds: float) -> str:
    """`90` is "1 minute 30 seconds", `90000` is "1 day 1 hour": the largest unit that fits, and the next one."""
    left = int(abs(seconds))
    first = next((index for index, (_, size) in enumerate(_UNITS) if left >= size), len(_UNITS) - 1)
    parts: list[str] = []
    for name, size in _UNITS[first : first + 2]:
        count, left = divmod(left, size)
        if count or not parts:
            parts.append(plural(count, name))
    return " ".join(parts)


def plural(count: int, noun: str) -> str:
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"
