"""The operators: arithmetic, comparison, logic, membership and indexing."""

from __future__ import annotations

from typing import Any

from ..errors import EvalError
from ..overloads import CostFunction, Implementation, Overload
from ..values import (
    INT_MAX,
    INT_MIN,
    MISSING,
    UINT_MAX,
    CelMap,
    Duration,
    Timestamp,
    UInt,
    compare,
    equals,
    map_find,
    same,
)
from . import costs
from .indexing import index
from .timestamps import add_duration, subtract_duration, subtract_timestamps

__all__ = ["HIDDEN", "OVERLOADS", "TYPES", "add", "contains", "divide", "modulo", "multiply", "negate", "subtract"]

TYPES: tuple[str, ...] = ()


def _int(number: int) -> int:
    if INT_MIN <= number <= INT_MAX:
        return number
    raise EvalError("integer overflow")


def _uint(number: int) -> UInt:
    if 0 <= number <= UINT_MAX:
        return UInt(number)
    raise EvalError("unsigned integer overflow")


# A value on the left that knows no such operation at all is told so with the operator's name. The types that have
# functions of their own (strings, timestamps, durations) give the short text instead.
_SHORT = frozenset((str, Timestamp, Duration))


def _refused(operator: str, left: object, operands: frozenset[type]) -> EvalError:
    kind = type(left)
    return EvalError("no such overload" if kind in operands or kind in _SHORT else f"no such overload: {operator}")


_ADDERS = frozenset((int, UInt, float, str, bytes, list, tuple))
_SUBTRACTORS = frozenset((int, UInt, float))
_MODDERS = frozenset((int, UInt))
_COMPARERS = frozenset((int, UInt, float, str, bytes, bool, Timestamp, Duration))


def add(left: Any, right: Any) -> object:
    kind, other = type(left), type(right)
    if kind is other:
        if kind is int:
            return _int(left + right)
        if kind is str or kind is float or kind is bytes:
            return left + right
        if kind is UInt:
            return _uint(int(left) + int(right))
        if kind is Duration:
            return Duration(_int(left.ns + right.ns))
    if isinstance(left, list | tuple) and isinstance(right, list | tuple):
        return [*left, *right]
    if kind is Timestamp and other is Duration:
        return add_duration(left, right.ns)
    if kind is Duration and other is Timestamp:
        return add_duration(right, left.ns)
    raise _refused("_+_", left, _ADDERS)


def subtract(left: Any, right: Any) -> object:
    kind, other = type(left), type(right)
    if kind is other:
        if kind is int:
            return _int(left - right)
        if kind is float:
            return left - right
        if kind is UInt:
            return _uint(int(left) - int(right))
        if kind is Duration:
            return Duration(_int(left.ns - right.ns))
        if kind is Timestamp:
            return subtract_timestamps(left, right)
    if kind is Timestamp and other is Duration:
        return subtract_duration(left, right.ns)
    raise _refused("_-_", left, _SUBTRACTORS)


def multiply(left: Any, right: Any) -> object:
    kind = type(left)
    if kind is type(right):
        if kind is int:
            return _int(left * right)
        if kind is float:
            return left * right
        if kind is UInt:
            return _uint(int(left) * int(right))
    raise _refused("_*_", left, _SUBTRACTORS)


def divide(left: Any, right: Any) -> object:
    kind = type(left)
    if kind is type(right):
        if kind is int or kind is UInt:
            if right == 0:
                raise EvalError("division by zero")
            quotient = abs(int(left)) // abs(int(right))
            return UInt(quotient) if kind is UInt else _int(quotient if (left < 0) == (right < 0) else -quotient)
        if kind is float:
            return _divide_doubles(left, right)
    raise _refused("_/_", left, _SUBTRACTORS)


def _divide_doubles(left: float, right: float) -> float:
    if right != 0:
        return left / right
    if left == 0 or left != left:
        return float("nan")
    # The sign of a zero counts: 1.0 / -0.0 is -infinity.
    return float("inf") if (str(left)[0] == "-") == (str(right)[0] == "-") else float("-inf")


def modulo(left: Any, right: Any) -> object:
    kind = type(left)
    if kind is type(right) and (kind is int or kind is UInt):
        if right == 0:
            raise EvalError("modulus by zero")
        if left == INT_MIN and right == -1:
            raise EvalError("integer overflow")
        remainder = abs(int(left)) % abs(int(right))
        return UInt(remainder) if kind is UInt else (-remainder if left < 0 else remainder)
    raise _refused("_%_", left, _MODDERS)


def negate(value: Any) -> object:
    kind = type(value)
    if kind is int:
        return _int(-value)
    if kind is float:
        return -value
    if kind is Duration:
        return Duration(_int(-value.ns))
    raise _refused("-_", value, frozenset((bool,)))


def logical_not(value: object) -> bool:
    if type(value) is bool:
        return not value
    raise EvalError("no such overload")


def not_equals(left: object, right: object) -> bool:
    # Unlike ==, this has an answer for values of different opaque types.
    return same(left, right) is not True


def less(left: object, right: object) -> bool:
    if type(left) not in _COMPARERS:
        raise EvalError("no such overload: _<_")
    return compare(left, right) < 0


def less_equals(left: object, right: object) -> bool:
    if type(left) not in _COMPARERS:
        raise EvalError("no such overload: _<=_")
    return compare(left, right) <= 0


def greater(left: object, right: object) -> bool:
    if type(left) not in _COMPARERS:
        raise EvalError("no such overload: _>_")
    return compare(left, right) > 0


def greater_equals(left: object, right: object) -> bool:
    if type(left) not in _COMPARERS:
        raise EvalError("no such overload: _>=_")
    return compare(left, right) >= 0


def contains(sought: object, container: Any) -> bool:
    """CEL's `in`."""
    kind = type(container)
    if kind is list or kind is tuple:
        if type(sought) is str:
            # Python's own look-up is right for strings, which equal nothing else.
            return sought in container
        return any(same(sought, element) for element in container)
    if kind is dict or kind is CelMap:
        return map_find(container, sought) is not MISSING
    raise EvalError("no such overload")


def _row(
    id: str,
    function: str,
    params: tuple[str, ...],
    result: str,
    implementation: Implementation | None,
    cost: CostFunction | None = None,
    *,
    by_name: bool = False,
) -> Overload:
    return Overload(
        id,
        function,
        params,
        result,
        implementation,
        cost=cost,
        unguarded=True,
        non_strict=implementation is None and function in ("_&&_", "_||_", "_?_:_", "@not_strictly_false"),
        cost_by_name=by_name,
    )


_DURATION = "google.protobuf.Duration"
_TIMESTAMP = "google.protobuf.Timestamp"

_ARITHMETIC = (
    _row("add_bytes", "_+_", ("bytes", "bytes"), "bytes", add, costs.add_texts),
    _row("add_double", "_+_", ("double", "double"), "double", add),
    _row("add_duration_duration", "_+_", (_DURATION, _DURATION), _DURATION, add),
    _row("add_duration_timestamp", "_+_", (_DURATION, _TIMESTAMP), _TIMESTAMP, add),
    _row("add_timestamp_duration", "_+_", (_TIMESTAMP, _DURATION), _TIMESTAMP, add),
    _row("add_int64", "_+_", ("int", "int"), "int", add),
    _row("add_list", "_+_", ("list(<A>)", "list(<A>)"), "list(<A>)", add),
    _row("add_string", "_+_", ("string", "string"), "string", add, costs.add_texts),
    _row("add_uint64", "_+_", ("uint", "uint"), "uint", add),
    _row("divide_double", "_/_", ("double", "double"), "double", divide),
    _row("divide_int64", "_/_", ("int", "int"), "int", divide),
    _row("divide_uint64", "_/_", ("uint", "uint"), "uint", divide),
    _row("modulo_int64", "_%_", ("int", "int"), "int", modulo),
    _row("modulo_uint64", "_%_", ("uint", "uint"), "uint", modulo),
    _row("multiply_double", "_*_", ("double", "double"), "double", multiply),
    _row("multiply_int64", "_*_", ("int", "int"), "int", multiply),
    _row("multiply_uint64", "_*_", ("uint", "uint"), "uint", multiply),
    _row("negate_double", "-_", ("double",), "double", negate),
    _row("negate_int64", "-_", ("int",), "int", negate),
    _row("subtract_double", "_-_", ("double", "double"), "double", subtract),
    _row("subtract_duration_duration", "_-_", (_DURATION, _DURATION), _DURATION, subtract),
    _row("subtract_int64", "_-_", ("int", "int"), "int", subtract),
    _row("subtract_timestamp_duration", "_-_", (_TIMESTAMP, _DURATION), _TIMESTAMP, subtract),
    _row("subtract_timestamp_timestamp", "_-_", (_TIMESTAMP, _TIMESTAMP), _DURATION, subtract),
    _row("subtract_uint64", "_-_", ("uint", "uint"), "uint", subtract),
)

_ORDERED_PAIRS = (
    ("bool", "bool", "bool"),
    ("int64", "int", "int"),
    ("int64_double", "int", "double"),
    ("int64_uint64", "int", "uint"),
    ("uint64", "uint", "uint"),
    ("uint64_double", "uint", "double"),
    ("uint64_int64", "uint", "int"),
    ("double", "double", "double"),
    ("double_int64", "double", "int"),
    ("double_uint64", "double", "uint"),
    ("string", "string", "string"),
    ("bytes", "bytes", "bytes"),
    ("timestamp", _TIMESTAMP, _TIMESTAMP),
    ("duration", _DURATION, _DURATION),
)

_COMPARISONS = tuple(
    _row(
        f"{word}_{suffix}",
        operator,
        (left, right),
        "bool",
        implementation,
        costs.comparison if suffix in ("string", "bytes") else None,
    )
    for operator, word, implementation in (
        ("_<_", "less", less),
        ("_<=_", "less_equals", less_equals),
        ("_>_", "greater", greater),
        ("_>=_", "greater_equals", greater_equals),
    )
    for suffix, left, right in _ORDERED_PAIRS
)

_LOGIC = (
    _row("conditional", "_?_:_", ("bool", "<A>", "<A>"), "<A>", None),
    _row("logical_and", "_&&_", ("bool", "bool"), "bool", None),
    _row("logical_or", "_||_", ("bool", "bool"), "bool", None),
    _row("logical_not", "!_", ("bool",), "bool", logical_not),
    _row("not_strictly_false", "@not_strictly_false", ("bool",), "bool", None),
    _row("equals", "_==_", ("<A>", "<A>"), "bool", equals, costs.equality, by_name=True),
    _row("not_equals", "_!=_", ("<A>", "<A>"), "bool", not_equals, costs.comparison, by_name=True),
)

_CONTAINERS = (
    _row("in_list", "@in", ("<A>", "list(<A>)"), "bool", contains, costs.membership),
    _row("in_map", "@in", ("<A>", "map(<A>, <B>)"), "bool", contains),
    _row("index_list", "_[_]", ("list(<A>)", "int"), "<A>", index),
    _row("index_map", "_[_]", ("map(<A>, <B>)", "<A>"), "<B>", index),
)

OVERLOADS = _ARITHMETIC + _COMPARISONS + _LOGIC + _CONTAINERS

# Older names that a running program may know and that no expression can use: the checker must not see them.
HIDDEN = (
    _row("in_list", "in", ("<A>", "list(<A>)"), "bool", contains, costs.membership),
    _row("in_map", "in", ("<A>", "map(<A>, <B>)"), "bool", contains),
    _row("in_list", "_in_", ("<A>", "list(<A>)"), "bool", contains, costs.membership),
    _row("in_map", "_in_", ("<A>", "map(<A>, <B>)"), "bool", contains),
    _row("__not_strictly_false__", "__not_strictly_false__", ("bool",), "bool", None),
)
