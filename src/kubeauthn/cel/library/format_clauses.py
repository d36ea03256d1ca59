"""The language of format strings: "%s is %.2f". What a clause prints is the business of its caller."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from ..errors import EvalError
from ..go_text import parse_int, quote
from ..limits import MAX_PRECISION
from .bounds import check_length

__all__ = ["Clause", "FormatError", "expand"]

DEFAULT_PRECISION = 6
_LETTERS = frozenset("sdfebxXo")
_DIGITS = frozenset("0123456789")


class FormatError(EvalError):
    """A format string, or an argument that does not fit its clause."""


class Clause(Protocol):
    """Prints the argument of that number; `precision` is None where the clause names none."""

    def __call__(self, letter: str, precision: int | None, argument: int, /) -> str: ...


def expand(text: str, arguments: int, clause: Clause, *, checking: bool = False, max_precision: int = 0) -> str:
    """The text with its clauses replaced. `checking`: the order of tests that cel-go has when it compiles."""
    pieces: list[str] = []
    at, argument, length = 0, 0, 0
    while True:
        percent = text.find("%", at)
        if percent == -1:
            return "".join(pieces) + text[at:]
        pieces.append(text[at:percent])
        if text.startswith("%%", percent):
            pieces.append("%")
            at = percent + 2
            continue
        if not checking and argument >= arguments:
            raise FormatError(f"index {argument} out of range")
        if percent + 1 == len(text):
            raise FormatError("unexpected end of string")
        if argument >= arguments:
            raise FormatError(f"index {argument} out of range")
        letter, precision, at = _parse_clause(text, percent + 1, max_precision)
        if not checking and letter in "fe" and precision is not None and precision > MAX_PRECISION:
            raise FormatError(f"precision of more than {MAX_PRECISION}")
        pieces.append(_printed(clause, letter, precision, argument))
        length += len(pieces[-1])
        check_length(length)
        argument += 1


def _printed(clause: Callable[[str, int | None, int], str], letter: str, precision: int | None, argument: int) -> str:
    try:
        return clause(letter, precision, argument)
    except FormatError as error:
        raise FormatError(f"error during formatting: {error.message}") from None


def _parse_clause(text: str, at: int, max_precision: int) -> tuple[str, int | None, int]:
    try:
        precision, at = _parse_precision(text, at, max_precision)
        letter = text[at]
        if letter not in _LETTERS:
            # cel-go looks at one byte here, not at one character.
            shown = chr(letter.encode("utf-8", "replace")[0])
            raise FormatError(f'unrecognized formatting clause "{shown}"')
    except FormatError as error:
        raise FormatError(f"could not parse formatting clause: {error.message}") from None
    return letter, precision, at + 1


def _parse_precision(text: str, at: int, max_precision: int) -> tuple[int | None, int]:
    if text[at] != ".":
        return None, at
    end = at + 1
    while end < len(text) and text[end] in _DIGITS:
        end += 1
    prefix = "error while parsing precision: "
    if end == len(text):
        raise FormatError(prefix + "could not find end of precision specifier")
    digits = text[at + 1 : end]
    precision = parse_int(digits)
    if precision is None:
        fault = "value out of range" if digits else "invalid syntax"
        raise FormatError(
            f"{prefix}error while converting precision to integer: strconv.Atoi: parsing {quote(digits)}: {fault}"
        )
    if max_precision and precision > max_precision:
        raise FormatError(f"{prefix}precision {precision} exceeds maximum allowed precision {max_precision}")
    return precision, end
