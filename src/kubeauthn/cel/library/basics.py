"""The standard functions of strings and containers: size, contains, startsWith, endsWith, matches."""

from __future__ import annotations

from typing import Any

from .. import regex
from ..errors import EvalError
from ..overloads import Overload
from ..values import CelMap, Duration, Timestamp
from . import costs

__all__ = ["OLD_OVERLOADS", "OVERLOADS", "TYPES"]

TYPES: tuple[str, ...] = ()


def _size(value: Any) -> int:
    kind = type(value)
    if kind is str or kind is list or kind is dict or kind is bytes or kind is CelMap or kind is tuple:
        return len(value)
    raise EvalError("no such overload" if kind is Timestamp or kind is Duration else "no such overload: size")


def _contains(text: object, part: object) -> bool:
    if type(text) is str and type(part) is str:
        return part in text
    raise EvalError("no such overload")


def _starts_with(text: object, prefix: object) -> bool:
    if type(text) is str and type(prefix) is str:
        return text.startswith(prefix)
    raise EvalError("no such overload")


def _ends_with(text: object, suffix: object) -> bool:
    if type(text) is str and type(suffix) is str:
        return text.endswith(suffix)
    raise EvalError("no such overload")


def _matches(text: object, pattern: object) -> bool:
    if type(text) is str and type(pattern) is str:
        return regex.matches(text, pattern)
    raise EvalError("no such overload")


def _text_function(id: str, function: str, implementation: Any, cost: Any, *, member: bool = True) -> Overload:
    return Overload(
        id, function, ("string", "string"), "bool", implementation, member=member, cost=cost, unguarded=True
    )


OVERLOADS = (
    *(
        Overload(id, "size", (params,), "int", _size, member=member, unguarded=True)
        for word, params in (("bytes", "bytes"), ("list", "list(<A>)"), ("map", "map(<A>, <B>)"), ("string", "string"))
        for id, member in ((f"size_{word}", False), (f"{word}_size", True))
    ),
    _text_function("contains_string", "contains", _contains, costs.contains),
    _text_function("starts_with_string", "startsWith", _starts_with, costs.second_scan),
    _text_function("ends_with_string", "endsWith", _ends_with, costs.second_scan),
    _text_function("matches", "matches", _matches, costs.pattern_scan, member=False),
    _text_function("matches_string", "matches", _matches, costs.pattern_scan),
)
OLD_OVERLOADS = (
    _text_function("starts_with_string", "startsWith", _starts_with, costs.first_scan),
    _text_function("ends_with_string", "endsWith", _ends_with, costs.first_scan),
    _text_function("matches", "matches", _matches, None, member=False),
)
"""With the cost that cel-go 0.26 reckons."""
