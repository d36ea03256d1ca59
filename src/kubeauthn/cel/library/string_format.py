"""What the clauses of format strings print, up to version 3 of the strings library: Kubernetes has this one."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..deadline import NEVER, look_at_clock
from ..errors import EvalError
from ..go_text import format_fixed, go_format_double, quote
from ..go_time import format_duration, format_timestamp
from ..members import check_members
from ..values import CelMap, Duration, Timestamp, TypeValue, UInt, type_name
from .bounds import join
from .conversions import bytes_to_string
from .format_clauses import DEFAULT_PRECISION, FormatError, expand

__all__ = ["format_string", "refusal"]

# The end of each text is the type that was given.
_REFUSALS = {
    "s": "string clause can only be used on strings, bools, bytes, ints, doubles, maps, lists, types, durations, "
    "and timestamps, was given ",
    "d": "decimal clause can only be used on integers, was given ",
    "f": "fixed-point clause can only be used on doubles, was given ",
    "e": "scientific clause can only be used on doubles, was given ",
    "b": "only integers and bools can be formatted as binary, was given ",
    "x": "only integers, byte buffers, and strings can be formatted as hex, was given ",
    "o": "octal clause can only be used on integers, was given ",
}
_RAISED = str.maketrans("0123456789-", "⁰¹²³⁴⁵⁶⁷⁸⁹⁻")


def refusal(letter: str, given: str) -> FormatError:
    """The error of a clause that meets an argument of a type it cannot print."""
    return FormatError(_REFUSALS[letter.lower()] + given)


def format_string(text: str, arguments: list[Any], *, deadline: float = NEVER) -> str:
    """CEL's text.format(arguments)."""
    check_members(arguments)

    def clause(letter: str, precision: int | None, argument: int) -> str:
        look_at_clock(deadline)
        return _CLAUSES[letter](arguments[argument], letter, precision)

    return expand(text, len(arguments), clause)


def _string(value: Any, letter: str, precision: int | None) -> str:
    kind = type(value)
    if kind is str:
        return str(value)
    if kind is list or kind is tuple:
        return "[" + join(", ", (_member(element) for element in value)) + "]"
    if kind is dict or kind is CelMap:
        return "{" + join(", ", (f"{key}:{element}" for key, element in sorted(_pairs(value)))) + "}"
    printer = _SCALARS.get(kind)
    if printer is None:
        raise refusal("s", type_name(value))
    return printer(value)


def _pairs(mapping: Any) -> list[tuple[str, str]]:
    pairs = []
    for key, element in mapping.items():
        if type(key) not in (str, bool, int, UInt):
            raise FormatError(f"no formatting function for map key of type {type_name(key)}")
        pairs.append((_member(key), _member(element)))
    return pairs


def _member(value: Any) -> str:
    """A value inside a list or map: quoted so that it could be read back."""
    kind = type(value)
    if kind is str:
        return quote(value)
    if kind is bytes:
        return "b" + quote(_bytes(value))
    if kind is float:
        text = f"{value:.6f}" if value - value == 0 else go_format_double(value)
        return text if value - value == 0 else quote(text)
    if kind is Timestamp:
        return f"timestamp({quote(format_timestamp(value))})"
    if kind is Duration:
        return f"duration({quote(format_duration(value))})"
    if kind in _SCALARS or kind in (list, tuple, dict, CelMap):
        return _string(value, "s", None)
    raise FormatError(f"no formatting function for {type_name(value)}")


def _bytes(value: bytes) -> str:
    try:
        return bytes_to_string(value)
    except EvalError as error:
        raise FormatError(f"could not convert argument {quote(error.message)} to string") from None


def _type_name(value: TypeValue) -> str:
    return value.name


_SCALARS: dict[type, Callable[[Any], str]] = {
    bool: lambda value: "true" if value else "false",
    int: str,
    UInt: lambda value: str(int(value)),
    float: go_format_double,
    bytes: _bytes,
    Timestamp: format_timestamp,
    Duration: format_duration,
    TypeValue: _type_name,
    type(None): lambda value: "null",
}


def _decimal(value: Any, letter: str, precision: int | None) -> str:
    if type(value) in (int, UInt):
        return str(int(value))
    raise refusal(letter, type_name(value))


def _double(value: Any, letter: str) -> float:
    if type(value) is float:
        return value
    if type(value) is str and value in ("NaN", "Infinity", "-Infinity"):
        return float(value)
    raise refusal(letter, type_name(value))


def _special(number: float) -> str:
    """How the English locale writes what is no finite number."""
    if number != number:
        return "NaN"
    return "∞" if number > 0 else "-∞"


def _fixed(value: Any, letter: str, precision: int | None) -> str:
    number = _double(value, letter)
    if number - number != 0:
        return _special(number)
    digits = DEFAULT_PRECISION if precision is None else precision
    return f"{number + 0.0:,.{digits}f}" if digits < 256 else _fixed_narrow(number + 0.0, digits)


def _fixed_narrow(number: float, digits: int) -> str:
    """Go's formatter keeps the most digits in 16 bits, where a negative number means as many as are needed, and the
    fewest in 8."""
    most, fewest = digits & 0xFFFF, digits & 0xFF
    if most < 0x8000:
        whole, _, fraction = f"{number:,.{most}f}".partition(".")
    else:
        whole, _, fraction = format_fixed(number).partition(".")
        whole = f"{int(whole):,}" if int(whole) else whole
    fraction = fraction.rstrip("0").ljust(fewest, "0")
    return f"{whole}.{fraction}" if fraction else whole


def _scientific(value: Any, letter: str, precision: int | None) -> str:
    number = _double(value, letter)
    if number - number != 0:
        text = _special(number)
    else:
        mantissa, _, exponent = f"{number + 0.0:.6e}".partition("e")  # no negative zero
        text = f"{mantissa}×10{exponent.lstrip('+').translate(_RAISED)}"
    # The precision is taken for a width: that is how cel-go has it.
    return text.rjust(DEFAULT_PRECISION if precision is None else precision & 0xFFFF)


def _binary(value: Any, letter: str, precision: int | None) -> str:
    if type(value) in (int, UInt, bool):
        return f"{int(value):b}"
    raise refusal(letter, type_name(value))


def _octal(value: Any, letter: str, precision: int | None) -> str:
    if type(value) in (int, UInt):
        return f"{int(value):o}"
    raise refusal(letter, type_name(value))


def _hex(value: Any, letter: str, precision: int | None) -> str:
    kind = type(value)
    if kind is int or kind is UInt:
        return f"{int(value):{letter}}"
    if kind is str or kind is bytes:
        data: bytes = value if kind is bytes else value.encode("utf-8", "replace")
        return data.hex().upper() if letter == "X" else data.hex()
    raise refusal(letter, type_name(value))


_CLAUSES: dict[str, Callable[[Any, str, int | None], str]] = {
    "s": _string,
    "d": _decimal,
    "f": _fixed,
    "e": _scientific,
    "b": _binary,
    "o": _octal,
    "x": _hex,
    "X": _hex,
}
