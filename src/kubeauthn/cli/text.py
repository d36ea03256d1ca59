"""Text for a terminal: other people's text made harmless, columns, and times in words."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

LONGEST_SHOWN = 400
"""Of one name, value or line that somebody else wrote."""

_UNITS = (("year", 365 * 86400), ("day", 86400), ("hour", 3600), ("minute", 60), ("second", 1))


def escaped(text: str, longest: int = LONGEST_SHOWN) -> str:
    """On one line, and with no character that a terminal would obey: `\\x1b` is shown as four characters."""
    if len(text) > longest:
        text = text[:longest] + "…"
    if text.isprintable():
        return text
    return "".join(
        character if character.isprintable() else character.encode("unicode_escape").decode() for character in text
    )


def escaped_lines(text: str) -> list[str]:
    """The same for a text that may have several lines, such as an install hint."""
    return [escaped(line.expandtabs(), 2000) for line in text.replace("\r\n", "\n").strip("\n").split("\n")]


def aligned(rows: Iterable[Sequence[str]], gap: int = 3) -> list[str]:
    """Columns as wide as their widest cell; the last one runs free."""
    table = [tuple(row) for row in rows]
    if not table:
        return []
    widths = [max(len(row[column]) for row in table) for column in range(len(table[0]) - 1)]
    return [
        (" " * gap).join([*(cell.ljust(width) for cell, width in zip(row, widths, strict=False)), row[-1]]).rstrip()
        for row in table
    ]


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


def time_left(moment: float, now: float) -> str:
    """ "expires in 14 minutes" or "expired 2 days ago"."""
    return f"expires in {duration(moment - now)}" if moment >= now else f"expired {duration(now - moment)} ago"


def plural(count: int, noun: str) -> str:
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"
