"""How CEL's values compare: equality across types, order, size and nothingness."""

from __future__ import annotations

from typing import Any

from .errors import EvalError
from .value_types import MISSING, TYPE_NAMES, CelMap, Duration, Opaque, Optional, Timestamp, UInt, map_find

__all__ = ["compare", "equals", "is_zero", "same", "size_of"]

_YEAR_ONE = -62135596800_000000000  # Go's zero time, in nanoseconds since 1970
_TWO_TO_63 = 2.0**63
_TWO_TO_64 = 2.0**64


def size_of(value: Any) -> int:
    """The size that costs are reckoned with: characters, bytes, elements or entries, and 1 for the rest."""
    kind = type(value)
    if kind is str or kind is bytes or kind is list or kind is dict or kind is tuple or kind is CelMap:
        return len(value)
    if isinstance(value, Opaque):
        return value.cel_size()
    if kind is Optional and value.value is not MISSING:
        return size_of(value.value)
    return 1


def is_zero(value: Any) -> bool:
    """Whether optional.ofNonZeroValue takes this for nothing."""
    kind = type(value)
    if value is None:
        return True
    if kind in TYPE_NAMES:
        return not value
    if kind is CelMap:
        return len(value) == 0
    if kind is Duration:
        return bool(value.ns == 0)
    return kind is Timestamp and bool(value.ns == _YEAR_ONE)


def equals(left: Any, right: Any) -> bool:
    """CEL's ==. Raises where one side is of an opaque type and the other is not the same one."""
    kind = type(left)
    if kind is type(right) and (kind is str or kind is bool or kind is int or kind is float):
        return bool(left == right)
    verdict = same(left, right)
    if verdict is None:
        raise EvalError("no such overload")
    return verdict


def same(left: Any, right: Any, known: _Known | None = None) -> bool | None:
    """Like `equals`, but None where that raises: inside lists and maps such a pair does not count as different.

    `known`: pairs of lists and maps that were compared already. A small expression can make a list that holds the same
    one twice, which holds the same one twice, and so on; looked at each time that would never end.
    """
    kind, other = type(left), type(right)
    if left is None or right is None:
        return left is right
    if kind in _NUMBERS:
        return other in _NUMBERS and _compare_numbers(left, right) == 0
    if kind is list or kind is tuple:
        return (other is list or other is tuple) and _same_lists(left, right, {} if known is None else known)
    if kind is dict or kind is CelMap:
        if other is dict or other is CelMap:
            return _same_maps(left, right, {} if known is None else known)
        return isinstance(right, Opaque) and right.cel_is_map and _is_same_map(left, right, known)
    if kind is Optional:
        return other is Optional and _same_optionals(left, right, known)
    if isinstance(left, Opaque):
        return left.cel_equals(right) if other is kind else None
    return kind is other and bool(left == right)


_Known = dict[tuple[int, int], bool]


def _same_lists(left: list[object], right: list[object], known: _Known) -> bool:
    if len(left) != len(right):
        return False
    pair = (id(left), id(right))
    verdict = known.get(pair)
    if verdict is None:
        verdict = all(same(one, two, known) is not False for one, two in zip(left, right, strict=True))
        known[pair] = verdict
    return verdict


def _same_maps(left: Any, right: Any, known: _Known) -> bool:
    if len(left) != len(right):
        return False
    pair = (id(left), id(right))
    verdict = known.get(pair)
    if verdict is None:
        verdict = all(_has_entry(right, key, value, known) for key, value in left.items())
        known[pair] = verdict
    return verdict


def _has_entry(mapping: Any, key: object, value: object, known: _Known) -> bool:
    other = map_find(mapping, key)
    return other is not MISSING and same(value, other, known) is not False


def _is_same_map(left: Any, right: Opaque, known: _Known | None) -> bool:
    """A map asks what it is compared with for its size and entries; the other way round only identity counts."""
    if len(left) != right.cel_size():
        return False
    pairs = ((value, right.cel_find(key)) for key, value in left.items())
    return all(other is not MISSING and same(value, other, known) is not False for value, other in pairs)


def _same_optionals(left: Optional, right: Optional, known: _Known | None) -> bool | None:
    if left.value is MISSING or right.value is MISSING:
        return left.value is right.value
    # cel-go asks the value itself here, so that null has its own rule: equal to null alone, which `same` says too.
    return same(left.value, right.value, known)


_NUMBERS = frozenset((int, float, UInt))
_ORDERED = frozenset((str, bytes, bool))


def compare(left: Any, right: Any) -> int:
    """-1, 0 or 1. Raises for values that have no order."""
    kind, other = type(left), type(right)
    if kind in _NUMBERS and other in _NUMBERS:
        order = _compare_numbers(left, right)
        if order is None:
            raise EvalError("NaN values cannot be ordered")
        return order
    if kind is other:
        if kind in _ORDERED:
            return int(left > right) - int(left < right)
        if kind is Timestamp or kind is Duration:
            return int(left.ns > right.ns) - int(left.ns < right.ns)
    if kind is float and left != left:
        raise EvalError("NaN values cannot be ordered")
    raise EvalError("no such overload")


def _compare_numbers(left: Any, right: Any) -> int | None:
    """The order of two numbers of any types; None if one of them is not a number.

    An integer meets a double as the nearest double, as it does in cel-go.
    """
    if type(left) is float:
        if type(right) is not float:
            right = _as_double(left, right)
    elif type(right) is float:
        left = _as_double(right, left)
    if left != left or right != right:
        return None
    return int(left > right) - int(left < right)


def _as_double(double: float, integer: int) -> float:
    """The integer as a double, or as itself where the double is out of the integers' range."""
    low, high = (0.0, _TWO_TO_64) if type(integer) is UInt else (-_TWO_TO_63, _TWO_TO_63)
    return float(integer) if low <= double <= high else integer
