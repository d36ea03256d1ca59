"""The sets library: lists taken for sets."""

from __future__ import annotations

from typing import Any

from ..errors import LimitError
from ..overloads import Overload
from ..values import UInt
from . import costs
from .operators import contains

__all__ = ["OVERLOADS", "TYPES"]

TYPES: tuple[str, ...] = ()
# Comparing each with each costs as much as there are pairs: more than this no limit allows.
_MAX_PAIRS = 4_000_000
_PLAIN = frozenset((str, bytes, int, UInt, bool))


def _as_sets(left: list[Any], right: list[Any]) -> tuple[frozenset[Any], frozenset[Any]] | None:
    """Both as Python's sets, where its equality is CEL's: all of one plain type."""
    kinds = {*map(type, left), *map(type, right)}
    if len(kinds) == 1 and kinds <= _PLAIN:
        return frozenset(left), frozenset(right)
    if len(left) * len(right) > _MAX_PAIRS:
        raise LimitError("operation cancelled: actual cost limit exceeded")
    return None


def _contains(elements: list[Any], part: list[Any]) -> bool:
    sets = _as_sets(elements, part)
    if sets is not None:
        return sets[0] >= sets[1]
    return all(contains(element, elements) for element in part)


def _equivalent(left: list[Any], right: list[Any]) -> bool:
    sets = _as_sets(left, right)
    if sets is not None:
        return sets[0] == sets[1]
    return _contains(left, right) and _contains(right, left)


def _intersects(left: list[Any], right: list[Any]) -> bool:
    sets = _as_sets(left, right)
    if sets is not None:
        return not sets[0].isdisjoint(sets[1])
    return any(contains(element, right) for element in left)


_LISTS = ("list(<T>)", "list(<T>)")

OVERLOADS = (
    Overload("list_sets_contains_list", "sets.contains", _LISTS, "bool", _contains, cost=costs.product(1)),
    Overload("list_sets_equivalent_list", "sets.equivalent", _LISTS, "bool", _equivalent, cost=costs.product(2)),
    Overload("list_sets_intersects_list", "sets.intersects", _LISTS, "bool", _intersects, cost=costs.product(1)),
)
