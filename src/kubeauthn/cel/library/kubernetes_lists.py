"""Kubernetes' functions of lists: isSorted, sum, min, max, indexOf, lastIndexOf, includes."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from typing import Any

from ..errors import EvalError
from ..overloads import Overload
from ..values import Duration, Timestamp, UInt, compare, same
from . import costs
from .operators import add

__all__ = ["LATEST", "OVERLOADS", "TYPES", "overloads"]

TYPES: tuple[str, ...] = ()
LATEST = 1
_COMPARABLE = frozenset((int, UInt, float, str, bytes, bool, Timestamp, Duration))


def _order(left: object, right: object) -> int | None:
    """As `compare`; None where that fails, which cel-go's loops pass over."""
    if type(left) not in _COMPARABLE or type(right) not in _COMPARABLE:
        raise EvalError("no such overload")
    try:
        return compare(left, right)
    except EvalError:
        return None


def _is_sorted(elements: list[object]) -> bool:
    return all(_order(one, two) != 1 for one, two in pairwise(elements))


def _extreme(word: str, preferred: int) -> Callable[[list[object]], object]:
    def function(elements: list[object]) -> object:
        if not elements:
            raise EvalError(f"{word} called on empty list")
        result = elements[0]
        for element in elements[1:]:
            if _order(result, element) == preferred:
                result = element
        return result

    return function


def _sum(zero: object) -> Callable[[list[object]], object]:
    def function(elements: list[object]) -> object:
        total = zero
        for element in elements:
            total = add(total, element)
        return total

    return function


def _index_of(elements: list[object], sought: object) -> int:
    for position, element in enumerate(elements):
        if same(element, sought):
            return position
    return -1


def _last_index_of(elements: list[object], sought: object) -> int:
    for position in range(len(elements) - 1, -1, -1):
        if same(elements[position], sought):
            return position
    return -1


def _includes(target: Any, sought: object) -> bool:
    """Whether the list holds the value; anything else than a list is taken for a list of itself."""
    if isinstance(target, list | tuple):
        return any(same(element, sought) for element in target)
    return same(target, sought) is True


_COMPARABLE_TYPES = {
    "int": "int",
    "uint": "uint",
    "double": "double",
    "bool": "bool",
    "duration": "google.protobuf.Duration",
    "timestamp": "google.protobuf.Timestamp",
    "string": "string",
    "bytes": "bytes",
}
_ZEROS: dict[str, object] = {"int": 0, "uint": UInt(0), "double": 0.0, "duration": Duration(0)}


def _row(
    id: str, function: str, params: tuple[str, ...], result: str, implementation: Callable[..., object]
) -> Overload:
    return Overload(id, function, params, result, implementation, member=True, cost=costs.traversal, cost_by_name=True)


_FIRST_VERSION = (
    *(
        _row(f"list_{word}_is_sorted_bool", "isSorted", (f"list({name})",), "bool", _is_sorted)
        for word, name in _COMPARABLE_TYPES.items()
    ),
    *(
        _row(
            f"list_{word}_sum_{word}", "sum", (f"list({_COMPARABLE_TYPES[word]})",), _COMPARABLE_TYPES[word], _sum(zero)
        )
        for word, zero in _ZEROS.items()
    ),
    *(
        _row(f"list_{word}_max_{word}", "max", (f"list({name})",), name, _extreme("max", -1))
        for word, name in _COMPARABLE_TYPES.items()
    ),
    *(
        _row(f"list_{word}_min_{word}", "min", (f"list({name})",), name, _extreme("min", 1))
        for word, name in _COMPARABLE_TYPES.items()
    ),
    _row("list_a_index_of_int", "indexOf", ("list(<A>)", "<A>"), "int", _index_of),
    _row("list_a_last_index_of_int", "lastIndexOf", ("list(<A>)", "<A>"), "int", _last_index_of),
)


def overloads(version: int) -> tuple[Overload, ...]:
    """The library as it was in that version."""
    if version < 1:
        return _FIRST_VERSION
    return (*_FIRST_VERSION, _row("list_includes_dyn_dyn", "includes", ("dyn", "dyn"), "bool", _includes))


OVERLOADS = overloads(LATEST)
