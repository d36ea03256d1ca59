"""What the clauses of format strings print from version 4 of the strings library on: no locale, no quotes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..deadline import NEVER, look_at_clock
from ..go_text import format_fixed
from ..go_time import format_duration, format_timestamp
from ..members import check_members
from ..values import CelMap, Duration, Timestamp, TypeValue, UInt, type_name
from .bounds import join
from .format_clauses import DEFAULT_PRECISION, FormatError, expand

__all__ = ["format_string", "refusal"]

_REFUSALS = {
    "s": "string clause can only be used on strings, bools, bytes, ints, doubles, maps, lists, types, durations, "
    "and timestamps, was given ",
    "d": "decimal clause can only be used on ints, uints, and doubles, was given ",
    "f": "fixed-point clause can only be used on ints, uints, and doubles, was given ",
    "e": "scientific clause can only be used on ints, uints, and doubles, was given ",
    "b": "only ints, uints, and bools can be formatted as binary, was given ",
    "x": "only ints, uints, bytes, and strings can be formatted as hex, was given ",
    "o": "octal clause can only be used on ints and uints, was given ",
}
MAX_PRECISION = 100


def refusal(letter: str, given: str) -> FormatError:
    """The error of a clause that meets an argument of a type it cannot print."""
    return FormatError(_REFUSALS[letter.lower()] + given)


def format_string(text: str, arguments: list[Any], *, deadline: float = NEVER) -> str:
    """CEL's text.format(arguments)."""
    check_members(arguments)

    def clause(letter: str, precision: int | None, argument: int) -> str:
        look_at_clock(deadline)
        return _clause(arguments[argument], letter, DEFAULT_PRECISION if precision is None else precision)

    return expand(text, len(arguments), clause, max_precision=MAX_PRECISION)


def _string(value: Any) -> str:
    kind = type(value)
    if kind is list or kind is tuple:
        return "[" + join(", ", (_string(element) for element in value)) + "]"
    if kind is dict or kind is CelMap:
        pairs = sorted((_string(key), _string(element)) for key, element in value.items())
        return "{" + join(", ", (f"{key}: {element}" for key, element in pairs)) + "}"
    printer = _SCALARS.get(kind)
    if printer is None:
        raise refusal("s", type_name(value))
    return printer(value)


def _not_finite(number: float) -> str:
    if number != number:
        return "NaN"
    return "Infinity" if number > 0 else "-Infinity"


def _double(number: float) -> str:
    return format_fixed(number) if number - number == 0 else _not_finite(number)


def _type_name(value: TypeValue) -> str:
    return value.name


_SCALARS: dict[type, Callable[[Any], str]] = {
    str: str,
    bool: lambda value: "true" if value else "false",
    int: str,
    UInt: lambda value: str(int(value)),
    float: _double,
    bytes: lambda value: value.decode("utf-8", "replace"),
    Timestamp: lambda value: format_timestamp(value, utc=True),
    Duration: format_duration,
    TypeValue: _type_name,
    type(None): lambda value: "null",
}


def _clause(value: Any, letter: str, precision: int) -> str:
    kind = type(value)
    integer = kind is int or kind is UInt
    if letter == "s":
        return _string(value)
    if letter == "d" and (integer or kind is float):
        return _double(value) if kind is float else str(int(value))
    if letter in "fe" and (integer or kind is float):
        number = float(value)
        return f"{number:.{precision}{letter}}" if number - number == 0 else _not_finite(number)
    if letter == "b" and (integer or kind is bool):
        return f"{int(value):b}"
    if letter in "oxX" and integer:
        return f"{int(value):{letter}}"
    if letter in "xX" and (kind is str or kind is bytes):
        data: bytes = value if kind is bytes else value.encode("utf-8", "replace")
        return data.hex().upper() if letter == "X" else data.hex()
    raise refusal(letter, type_name(value))
