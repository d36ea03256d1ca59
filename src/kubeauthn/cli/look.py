"""How an answer looks: colours, and lines folded at the width of a terminal. Elsewhere a line stays one line."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from argparse import ArgumentParser

_PLAIN = "\x1b[0m"
_CODES = {"good": "32", "bad": "31", "doubt": "33", "note": "36", "strong": "1", "aside": "2"}
_NARROWEST = 20
"""Of a folded column: less than this is harder to read than a line that the terminal breaks."""


def add_color_option(parser: ArgumentParser) -> None:
    parser.add_argument(
        "--color", choices=("auto", "always", "never"), default="auto", help="colour the text (auto: on a terminal)"
    )


class Look:
    """`width` None: nobody knows it, or a program reads along. Then nothing is folded."""

    def __init__(self, *, colour: bool = False, width: int | None = None) -> None:
        self.colour = colour
        self.width = width

    def narrower(self, columns: int) -> Look:
        """For text that somebody else indents."""
        return Look(colour=self.colour, width=None if self.width is None else self.width - columns)

    def paint(self, kind: str, text: str) -> str:
        """`kind` is one of `_CODES`, or "" for text as it is."""
        return f"\x1b[{_CODES[kind]}m{text}{_PLAIN}" if self.colour and kind and text else text

    def folded(self, text: str, indent: int, *, first: int | None = None) -> list[str]:
        """`text` in lines that leave `indent` columns free (the first of them `first`), broken between words alone:
        what a person may copy stays whole."""
        room = None if self.width is None else self.width - indent
        if room is None or room < _NARROWEST or len(text) <= room - ((first or indent) - indent):
            return [text]
        from textwrap import wrap

        blank = " " * max((first or indent) - indent, 0)
        lines = wrap(
            text, room, initial_indent=blank, break_long_words=False, break_on_hyphens=False, replace_whitespace=False
        )
        return [lines[0][len(blank) :], *lines[1:]] if lines else [text]
