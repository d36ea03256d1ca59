"""The strings library: charAt, indexOf, join, replace, split, substring, format and their like."""

from __future__ import annotations

from typing import Any

from ..errors import EvalError
from ..limits import MAX_TEXT
from ..overloads import CostFunction, Implementation, Overload
from . import bounds, costs, string_format, string_format_new
from .display import display

__all__ = ["LATEST", "OLD_OVERLOADS", "OVERLOADS", "TYPES", "overloads"]

TYPES: tuple[str, ...] = ()
LATEST = 5
# What Go's TrimSpace takes for white space.
_SPACE = "\t\n\v\f\r \x85\xa0\u1680\u2028\u2029\u202f\u205f\u3000" + "".join(map(chr, range(0x2000, 0x200B)))
_LOWER = {upper: upper + 32 for upper in range(ord("A"), ord("Z") + 1)}
_UPPER = {lower: lower - 32 for lower in range(ord("a"), ord("z") + 1)}


def _out_of_range(position: int) -> EvalError:
    return EvalError(f"index out of range: {position}")


def _char_at(text: str, position: int) -> str:
    if not 0 <= position <= len(text):
        raise _out_of_range(position)
    return text[position : position + 1]


def _index_of(text: str, part: str, start: int = 0) -> int:
    if start < 0:
        raise _out_of_range(start)
    if not part:
        return min(start, len(text))
    return text.find(part, start)


def _old_index_of(text: str, part: str, start: int) -> int:
    return _index_of(text, part, start) if part else start


def _old_last_index_of(text: str, part: str, start: int) -> int:
    return _last_index_of_from(text, part, start) if part else start


def _last_index_of(text: str, part: str) -> int:
    return text.rfind(part) if part else len(text)


def _last_index_of_from(text: str, part: str, start: int) -> int:
    if start < 0:
        raise _out_of_range(start)
    if not part:
        return min(start, len(text))
    if start >= len(text):
        return -1
    return text.rfind(part, 0, start + len(part))


def _lower_ascii(text: str) -> str:
    return text.translate(_LOWER)


def _upper_ascii(text: str) -> str:
    return text.translate(_UPPER)


def _replace(text: str, old: str, new: str, count: int = -1) -> str:
    most = len(text) + 1
    times = most if count < 0 else min(count, most)
    if len(new) * times > MAX_TEXT:
        bounds.check_length(len(text) + min(text.count(old), times) * (len(new) - len(old)))
    return text.replace(old, new, times)


def _split(text: str, separator: str) -> list[str]:
    return text.split(separator) if separator else list(text)


def _split_count(text: str, separator: str, count: int) -> list[str]:
    if count == 0:
        return []
    if count < 0:
        return _split(text, separator)
    if separator:
        return text.split(separator, min(count - 1, len(text)))
    if count >= len(text):
        return list(text)
    return [*text[: count - 1], text[count - 1 :]]


def _substring(text: str, start: int) -> str:
    if not 0 <= start <= len(text):
        raise _out_of_range(start)
    return text[start:]


def _substring_range(text: str, start: int, end: int) -> str:
    if start > end:
        raise EvalError(f"invalid substring range. start: {start}, end: {end}")
    for position in (start, end):
        if not 0 <= position <= len(text):
            raise _out_of_range(position)
    return text[start:end]


def _trim(text: str) -> str:
    return text.strip(_SPACE)


def _join(elements: list[Any], separator: str = "") -> str:
    for element in elements:
        if type(element) is not str:
            raise EvalError(f"join: invalid input: {display(element)}")
    return bounds.join(separator, elements)


_QUOTED = str.maketrans(
    {
        "\a": "\\a",
        "\b": "\\b",
        "\f": "\\f",
        "\n": "\\n",
        "\r": "\\r",
        "\t": "\\t",
        "\v": "\\v",
        "\\": "\\\\",
        '"': '\\"',
    }
)


def _quote(text: str) -> str:
    return '"' + text.translate(_QUOTED) + '"'


def _reverse(text: str) -> str:
    return text[::-1]


def _member(
    id: str,
    function: str,
    params: tuple[str, ...],
    result: str,
    implementation: Implementation,
    cost: CostFunction | None = None,
) -> Overload:
    return Overload(id, function, params, result, implementation, member=True, cost=cost, cost_by_name=cost is not None)


_S, _I, _L = "string", "int", "list(string)"
_FIRST = (
    _member("string_char_at_int", "charAt", (_S, _I), _S, _char_at),
    _member("string_index_of_string", "indexOf", (_S, _S), _I, _index_of, costs.traversal),
    _member("string_index_of_string_int", "indexOf", (_S, _S, _I), _I, _index_of, costs.traversal),
    _member("string_last_index_of_string", "lastIndexOf", (_S, _S), _I, _last_index_of, costs.traversal),
    _member("string_last_index_of_string_int", "lastIndexOf", (_S, _S, _I), _I, _last_index_of_from, costs.traversal),
    _member("string_lower_ascii", "lowerAscii", (_S,), _S, _lower_ascii, costs.first_scan),
    _member("string_replace_string_string", "replace", (_S, _S, _S), _S, _replace, costs.first_scan_twice),
    _member("string_replace_string_string_int", "replace", (_S, _S, _S, _I), _S, _replace, costs.first_scan_twice),
    _member("string_split_string", "split", (_S, _S), _L, _split, costs.first_scan_twice),
    _member("string_split_string_int", "split", (_S, _S, _I), _L, _split_count, costs.first_scan_twice),
    _member("string_substring_int", "substring", (_S, _I), _S, _substring, costs.first_scan),
    _member("string_substring_int_int", "substring", (_S, _I, _I), _S, _substring_range, costs.first_scan),
    _member("string_trim", "trim", (_S,), _S, _trim, costs.first_scan),
    _member("string_upper_ascii", "upperAscii", (_S,), _S, _upper_ascii, costs.first_scan),
    _member("list_join", "join", (_L,), _S, _join, costs.result_scan_twice),
    _member("list_join_string", "join", (_L, _S), _S, _join, costs.result_scan_twice),
)


def _format(implementation: Implementation) -> Overload:
    return Overload(
        "string_format", "format", (_S, "list(dyn)"), _S, implementation, member=True, cost=costs.first_scan, timed=True
    )


def overloads(version: int) -> tuple[Overload, ...]:
    """The library as it was in that version."""
    rows: tuple[Overload, ...] = _FIRST
    if version >= 1:
        rows += (Overload("strings_quote", "strings.quote", (_S,), _S, _quote, cost=costs.first_scan),)
        rows += (_format((string_format_new if version >= 4 else string_format).format_string),)
    if version >= 3:
        rows += (Overload("string_reverse", "reverse", (_S,), _S, _reverse, member=True),)
    return rows


OVERLOADS = overloads(LATEST)
OLD_OVERLOADS = (
    _member("string_index_of_string_int", "indexOf", (_S, _S, _I), _I, _old_index_of, costs.traversal),
    _member("string_last_index_of_string_int", "lastIndexOf", (_S, _S, _I), _I, _old_last_index_of, costs.traversal),
)
"""As they were in cel-go 0.26: an empty text is found wherever it is sought, even outside."""
