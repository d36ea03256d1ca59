"""What calls cost when they run: cel-go's tariff, and Kubernetes' for its own functions.

A cost function takes the arguments and the result of a call. Where this module has none, a call costs 1.
"""

from __future__ import annotations

from math import ceil
from typing import Any

from ..overloads import CostFunction
from ..values import CelMap, Opaque, size_of

__all__ = [
    "add_texts",
    "allocated_list",
    "comparison",
    "contains",
    "equality",
    "first_scan",
    "first_scan_twice",
    "membership",
    "pattern_scan",
    "product",
    "result_scan_twice",
    "second_scan",
    "self_compared",
    "traversal",
]

STRING_FACTOR = 0.1
PATTERN_FACTOR = 0.25
LIST_BASE = 10

_Arguments = tuple[Any, ...]


def first_scan(arguments: _Arguments, result: object) -> int:
    """One look at every character of the first argument."""
    return ceil(size_of(arguments[0]) * STRING_FACTOR)


def first_scan_twice(arguments: _Arguments, result: object) -> int:
    """A look at every character of the first argument, and as much again to build the result."""
    return ceil(size_of(arguments[0]) * 2 * STRING_FACTOR)


def second_scan(arguments: _Arguments, result: object) -> int:
    """One look at every character of the second argument."""
    return ceil(size_of(arguments[1]) * STRING_FACTOR)


def result_scan_twice(arguments: _Arguments, result: object) -> int:
    """The result read and written."""
    return ceil(size_of(result) * 2 * STRING_FACTOR)


def add_texts(arguments: _Arguments, result: object) -> int:
    """Both operands copied."""
    return ceil((size_of(arguments[0]) + size_of(arguments[1])) * STRING_FACTOR)


def comparison(arguments: _Arguments, result: object) -> int:
    """A look at the shorter operand."""
    return ceil(min(size_of(arguments[0]), size_of(arguments[1])) * STRING_FACTOR)


def equality(arguments: _Arguments, result: object) -> int:
    """As `comparison`; opaque values on the left are taken for small."""
    if isinstance(arguments[0], Opaque):
        return 1
    return comparison(arguments, result)


def membership(arguments: _Arguments, result: object) -> int:
    """Every element of the list on the right."""
    return size_of(arguments[1])


def pattern_scan(arguments: _Arguments, result: object) -> int:
    """Text times pattern; the text counts one more so that a pattern on the empty text is not free."""
    return ceil((1.0 + size_of(arguments[0])) * STRING_FACTOR) * ceil(size_of(arguments[1]) * PATTERN_FACTOR)


def contains(arguments: _Arguments, result: object) -> int:
    """Text times what is sought in it."""
    return ceil(size_of(arguments[0]) * STRING_FACTOR) * ceil(size_of(arguments[1]) * STRING_FACTOR)


def traversal(arguments: _Arguments, result: object) -> int:
    """Everything inside the first argument, down to the leaves."""
    return _leaves(arguments[0])


def _leaves(value: Any) -> int:
    kind = type(value)
    if kind is str:
        # Bytes here, not characters, and rounded down.
        return int((len(value) if value.isascii() else len(value.encode("utf-8", "replace"))) * STRING_FACTOR)
    if kind is bytes:
        return int(len(value) * STRING_FACTOR)
    if kind is list or kind is tuple:
        return sum(_leaves(element) for element in value)
    if kind is dict or kind is CelMap:
        return sum(_leaves(key) + _leaves(element) for key, element in value.items())
    parts = value.cel_parts() if isinstance(value, Opaque) else None
    return 1 if parts is None else sum(map(_leaves, parts))


def allocated_list(arguments: _Arguments, result: object) -> int:
    """A new list of the result's size."""
    return size_of(result) + 1 + LIST_BASE


ASSERTED: dict[CostFunction, tuple[int, str]] = {}
"""cel-go's own reckoning of these takes an argument for what it should be: which one, and as what. Where that argument
is an error or of another type, the evaluation as a whole fails, with an internal error."""
LIST_ASSERTED, INT_ASSERTED = "list", "int"


def self_compared(position: int) -> CostFunction:
    """A list whose elements are all compared with one another, and a new list."""

    def cost(arguments: _Arguments, result: object) -> int:
        elements = arguments[position]
        size = size_of(elements)
        if not size:
            return 1 + LIST_BASE
        factor = 2.0 + STRING_FACTOR if type(elements[0]) in (str, bytes) else 2.0
        return int(size * size * factor) + 1 + LIST_BASE

    ASSERTED[cost] = (position, LIST_ASSERTED)
    return cost


def product(factor: float) -> CostFunction:
    """Every element of one list against every element of the other."""

    def cost(arguments: _Arguments, result: object) -> int:
        return 1 + int(size_of(arguments[0]) * size_of(arguments[1]) * factor)

    return cost
