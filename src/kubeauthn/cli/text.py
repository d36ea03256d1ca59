"""Text for a terminal: other people's text made harmless, columns, and times in words."""

from __future__ import annotations

from kubeauthn._core.durations import duration as duration
from kubeauthn._core.durations import plural as plural

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

LONGEST_SHOWN = 400
"""Of one name, value or line that somebody else wrote."""
_BLANK = frozenset(
    chr(code)
    for begin, end in (
        (0x34F, 0x34F), (0x115F, 0x1160), (0x17B4, 0x17B5), (0x180B, 0x180F), (0x2800, 0x2800), (0x3164, 0x3164),
        (0xFE00, 0xFE0F), (0xFFA0, 0xFFA0), (0xE0100, 0xE01EF),
    )
    for code in range(begin, end + 1)
)  # fmt: skip
"""Printable by their category, and nothing of them is seen: two names that differ in these alone look the same."""


def escaped(text: str, longest: int = LONGEST_SHOWN) -> str:
    """On one line, with no character that a terminal would obey and none that is not seen: `\\x1b` is shown as four."""
    if len(text) > longest:
        text = text[:longest] + "…"
    if text.isprintable() and (text.isascii() or _BLANK.isdisjoint(text)):
        return text
    return "".join(
        character
        if character.isprintable() and character not in _BLANK
        else character.encode("unicode_escape").decode()
        for character in text
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


def time_left(moment: float, now: float) -> str:
    """ "expires in 14 minutes" or "expired 2 days ago"."""
    return f"expires in {duration(moment - now)}" if moment >= now else f"expired {duration(now - moment)} ago"
