"""The sets library: lists taken for sets."""

from __future__ import annotations

from typing import Any

from ..deadline import NEVER, look_at_clock
from ..errors import LimitError
from ..overloads import Implementation, Overload
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


def _holds(elements: list[Any], sought: object, deadline: float) -> bool:
    look_at_clock(deadline)  # the elements may be large
    return contains(sought, elements)


def _contains(elements: list[Any], part: list[Any], *, deadline: float = NEVER) -> bool:
    sets = _as_sets(elements, part)
    if sets is not None:
        return sets[0] >= sets[1]
    return all(_holds(elements, element, deadline) for element in part)


def _equivalent(left: list[Any], right: list[Any], *, deadline: float = NEVER) -> bool:
    sets = _as_sets(left, right)
    if sets is not None:
        return sets[0] == sets[1]
    return _contains(left, right, deadline=deadline) and _contains(right, left, deadline=deadline)


def _intersects(left: list[Any], right: list[Any], *, deadline: float = NEVER) -> bool:
    sets = _as_sets(left, right)
    if sets is not None:
        return not sets[0].isdisjoint(sets[1])
    return any(_holds(right, element, deadline) for element in left)


def _row(name: str, implementation: Implementation, factor: float) -> Overload:
    lists = ("list(<T>)", "list(<T>)")
    cost = costs.product(factor)
    return Overload(f"list_sets_{name}_list", f"sets.{name}", lists, "bool", implementation, cost=cost, timed=True)


OVERLOADS = (
    _row("contains", _contains, 1),
    _row("equivalent", _equivalent, 2),
    _row("intersects", _intersects, 1),
)
