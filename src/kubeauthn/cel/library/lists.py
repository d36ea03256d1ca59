"""The lists library: slice, flatten, sort, distinct, reverse, lists.range."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

from ..deadline import NEVER, look_at_clock
from ..errors import EvalError, LimitError
from ..limits import COST_LIMIT, MAX_FLAT_ELEMENTS
from ..overloads import Overload
from ..values import Duration, Timestamp, UInt, same, size_of, type_name
from . import costs
from .go_order import go_order

__all__ = ["LATEST", "OLD_OVERLOADS", "OVERLOADS", "TYPES", "overloads"]

TYPES: tuple[str, ...] = ()
LATEST = 3
_MAX_RANGE = 1_000_000
# A list that is compared with itself costs its size squared: more than this no limit allows.
_MAX_QUADRATIC = 2_000
_COMPARABLE = frozenset((int, UInt, float, str, bytes, bool, Timestamp, Duration))
# Values that Python compares as CEL does, as long as both are of the same type.
_PLAIN = frozenset((int, UInt, str, bytes, bool))
# Where an error text has a type with its parameters.
_FULL_NAMES = {"map": "map(dyn, dyn)", "list": "list(dyn)", "optional_type": "optional_type(dyn)"}


def _slice(elements: list[object], start: int, end: int) -> list[object]:
    if start < 0 or end < 0:
        raise EvalError(f"cannot slice({start}, {end}), negative indexes not supported")
    if start > end:
        raise EvalError(f"cannot slice({start}, {end}), start index must be less than or equal to end index")
    if len(elements) < end:
        raise EvalError(f"cannot slice({start}, {end}), list is length {len(elements)}")
    return list(elements[start:end])


def _flatten(elements: object, *depths: object) -> list[object]:
    depth = depths[0] if depths else 1
    if not isinstance(elements, list | tuple) or type(depth) is not int:
        name = _FULL_NAMES.get(type_name(elements), type_name(elements))
        raise EvalError(f"no such overload: {name}.flatten({', '.join(type_name(given) for given in depths)})")
    if depth < 0:
        raise EvalError("level must be non-negative")
    flat: list[object] = list(elements)
    for _ in range(depth):
        if not any(isinstance(element, list | tuple) for element in flat):
            break
        deeper: list[object] = []
        for element in flat:
            if isinstance(element, list | tuple):
                deeper.extend(element)
            else:
                deeper.append(element)
            if len(deeper) > MAX_FLAT_ELEMENTS:
                raise LimitError(f"list of more than {MAX_FLAT_ELEMENTS} elements")
        flat = deeper
    return flat


def _sort(elements: object) -> list[object]:
    return _sort_by_keys(elements, elements, "sort")


def _sort_by_keys(elements: Any, keys: Any, name: str = "@sortByAssociatedKeys") -> list[object]:
    """The elements in the order of their keys."""
    if not isinstance(elements, list | tuple):
        short = isinstance(elements, str | Timestamp | Duration)
        raise EvalError("no such overload" if short else f"no such overload: {name}")
    if len(elements) != len(keys):
        raise EvalError(
            "@sortByAssociatedKeys() expected a list of the same size as the associated keys list, "
            f"but got {len(elements)} and {len(keys)} elements respectively"
        )
    if not keys:
        return elements  # type: ignore[return-value]  # itself: see `outside`
    kind = type(keys[0])
    if kind not in _COMPARABLE:
        raise EvalError("list elements must be comparable")
    if any(type(key) is not kind for key in keys):
        raise EvalError("list elements must have the same type")
    if kind is Timestamp or kind is Duration:
        keys = [key.ns for key in keys]
    return [elements[position] for position in _order(keys)]


def _order(keys: Any) -> list[int]:
    """The positions of the keys in their order. Equal ones, and what is not a number, come as Go's sort leaves them."""
    order = sorted(range(len(keys)), key=keys.__getitem__)
    sorted_keys = [keys[position] for position in order]
    has_order = len(keys) > _MAX_QUADRATIC or all(one < two for one, two in pairwise(sorted_keys))
    return order if has_order else go_order(keys)


def _range(size: int) -> list[int]:
    if size < 0:
        raise EvalError(f"lists.range: size must be non-negative, got {size}")
    if size > _MAX_RANGE:
        raise EvalError(f"lists.range: size {size} exceeds maximum allowed ({_MAX_RANGE})")
    return list(range(size))


def _range_at_any_cost(size: int) -> list[int]:
    """`lists.range` as it was in cel-go 0.26, where only the cost is a limit."""
    if size > COST_LIMIT:
        raise LimitError("operation cancelled: actual cost limit exceeded")
    return list(range(size))


def _reverse(elements: list[object]) -> list[object]:
    return list(elements[::-1])


def _distinct(elements: list[Any], *, deadline: float = NEVER) -> list[object]:
    if not elements:
        return elements  # itself: see `outside`
    kinds = {type(element) for element in elements}
    if len(kinds) == 1 and (kinds <= _PLAIN or (kinds == {float} and all(element == element for element in elements))):
        # Of one type, Python's equality is CEL's, and its hash saves comparing each with each.
        return list(dict.fromkeys(elements))
    if len(elements) > _MAX_QUADRATIC:
        raise LimitError("operation cancelled: actual cost limit exceeded")
    unique: list[object] = []
    for element in elements:
        look_at_clock(deadline)
        if not any(same(element, other) for other in unique):
            unique.append(element)
    return unique


def _flatten_cost(arguments: tuple[Any, ...], result: object) -> int:
    depth = arguments[1] if len(arguments) == 2 else 1
    return int(size_of(arguments[0]) * (1.0 if depth < 0 else float(depth))) + 1 + costs.LIST_BASE


def _old_flatten_cost(arguments: tuple[Any, ...], result: object) -> int:
    """As cel-go 0.26 reckons it, where a negative depth goes round the end of 64 bits, and what does not fit into them
    is half of their range."""
    product = size_of(arguments[0]) * float(arguments[1])
    fits = -(2.0**63) <= product < 2.0**64
    return ((int(product) if fits else 1 << 63) + 1 + costs.LIST_BASE) % (1 << 64)


costs.ASSERTED[_flatten_cost] = (1, costs.INT_ASSERTED)
costs.ASSERTED[_old_flatten_cost] = (1, costs.INT_ASSERTED)
_DURATION = "google.protobuf.Duration"
_TIMESTAMP = "google.protobuf.Timestamp"
_COMPARABLE_TYPES = ("int", "uint", "double", "bool", _DURATION, _TIMESTAMP, "string", "bytes")


def overloads(version: int) -> tuple[Overload, ...]:
    """The library as it was in that version. Before version 3 its calls cost 1 each."""
    priced = version >= 3
    rows = [
        Overload(
            "list_slice",
            "slice",
            ("list(<T>)", "int", "int"),
            "list(<T>)",
            _slice,
            member=True,
            cost=costs.allocated_list if priced else None,
        )
    ]
    if version >= 1:
        rows += [
            Overload(
                id,
                "flatten",
                params,
                result,
                _flatten,
                member=True,
                cost=_flatten_cost if priced else None,
                unguarded=True,
            )
            for id, params, result in (
                ("list_flatten", ("list(list(<T>))",), "list(<T>)"),
                ("list_flatten_int", ("list(dyn)", "int"), "list(dyn)"),
            )
        ]
    if version >= 2:
        rows += _since_version_2(priced=priced)
    return tuple(rows)


def _since_version_2(*, priced: bool) -> list[Overload]:
    compared, allocated = costs.self_compared(0), costs.allocated_list
    by_key = costs.self_compared(1)
    rows = [
        Overload(
            f"list_{name}_sort",
            "sort",
            (f"list({name})",),
            f"list({name})",
            _sort,
            member=True,
            cost=compared if priced else None,
            unguarded=True,
        )
        for name in _COMPARABLE_TYPES
    ]
    rows += [
        Overload(
            f"list_{name}_sortByAssociatedKeys",
            "@sortByAssociatedKeys",
            ("list(<T>)", f"list({name})"),
            "list(<T>)",
            _sort_by_keys,
            member=True,
            cost=by_key if priced else None,
            unguarded=True,
        )
        for name in _COMPARABLE_TYPES
    ]
    rows += [
        Overload("lists_range", "lists.range", ("int",), "list(int)", _range, cost=allocated if priced else None),
        Overload(
            "list_reverse",
            "reverse",
            ("list(<T>)",),
            "list(<T>)",
            _reverse,
            member=True,
            cost=allocated if priced else None,
        ),
        Overload(
            "list_distinct",
            "distinct",
            ("list(<T>)",),
            "list(<T>)",
            _distinct,
            member=True,
            cost=compared if priced else None,
            timed=True,
        ),
    ]
    return rows


OVERLOADS = overloads(LATEST)
OLD_OVERLOADS = (
    Overload("lists_range", "lists.range", ("int",), "list(int)", _range_at_any_cost, cost=costs.allocated_list),
    Overload(
        "list_flatten_int", "flatten", ("list(dyn)", "int"), "list(dyn)", _flatten, member=True, cost=_old_flatten_cost,
        unguarded=True,
    ),
)  # fmt: skip
"""As they were in cel-go 0.26."""
