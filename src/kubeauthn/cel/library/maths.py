"""The math library: math.least, math.abs, math.ceil, bits and roots. Kubernetes does not have it."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from ..errors import EvalError
from ..overloads import Implementation, Overload
from ..values import INT_MAX, INT_MIN, UINT_MAX, UInt, compare

__all__ = ["LATEST", "OVERLOADS", "TYPES", "overloads"]

TYPES: tuple[str, ...] = ()
LATEST = 2
_NUMBERS = frozenset((int, UInt, float))


def _extreme(function: str, preferred: int) -> Callable[..., object]:
    """The least or greatest of one number, two numbers or a list of numbers."""

    def choose(*arguments: Any) -> object:
        numbers = arguments[0] if isinstance(arguments[0], list | tuple) else arguments
        if not numbers:
            raise EvalError(f"{function}(list) argument must not be empty")
        best = numbers[0]
        for number in numbers[1:]:
            try:
                if compare(best, number) == preferred:
                    best = number
            except EvalError as error:
                raise EvalError(f"{error.message}: {function}") from None
        if type(best) not in _NUMBERS:
            raise EvalError(f"no such overload: {function}")
        return best

    return choose


def _whole(function: Callable[[float], int]) -> Callable[[float], float]:
    """A rounding that leaves alone what is not finite and keeps the sign of zero."""

    def rounded(number: float) -> float:
        return math.copysign(float(function(number)), number) if math.isfinite(number) else number

    return rounded


def _half_away(number: float) -> int:
    whole = math.trunc(number)
    if abs(number - whole) >= 0.5:
        return whole + (1 if number > 0 else -1)
    return whole


def _abs(number: Any) -> object:
    if type(number) is int and number == INT_MIN:
        raise EvalError("integer overflow")
    return UInt(number) if type(number) is UInt else abs(number)


def _sign(number: Any) -> object:
    if type(number) is float and math.isnan(number):
        return number
    return type(number)((number > 0) - (number < 0))


def _signed(bits: int) -> int:
    bits &= UINT_MAX
    return bits if bits <= INT_MAX else bits - (1 << 64)


def _like(example: Any, bits: int) -> int:
    return UInt(bits & UINT_MAX) if type(example) is UInt else _signed(bits)


def _bit_and(left: int, right: int) -> int:
    return _like(left, int(left) & int(right))


def _bit_or(left: int, right: int) -> int:
    return _like(left, int(left) | int(right))


def _bit_xor(left: int, right: int) -> int:
    return _like(left, int(left) ^ int(right))


def _bit_not(number: int) -> int:
    return _like(number, ~int(number))


def _shift_left(number: int, offset: int) -> int:
    if offset < 0:
        raise EvalError(f"math.bitShiftLeft() negative offset: {offset}")
    return _like(number, int(number) << offset if offset < 64 else 0)


def _shift_right(number: int, offset: int) -> int:
    if offset < 0:
        raise EvalError(f"math.bitShiftRight() negative offset: {offset}")
    # The bits move as if they were unsigned: what comes in from the left is zero.
    return _like(number, (int(number) & UINT_MAX) >> offset if offset < 64 else 0)


def _sqrt(number: float) -> float:
    return math.sqrt(number) if number >= 0 else float("nan")


def _extremes(word: str, preferred: int) -> list[Overload]:
    function = f"math.@{word}"
    choose = _extreme(function, preferred)
    names = ("double", "int", "uint")
    rows = [Overload(f"math_@{word}_{name}", function, (name,), name, choose) for name in names]
    rows += [
        Overload(f"math_@{word}_{one}_{two}", function, (one, two), one if one == two else "dyn", choose)
        for one in names
        for two in names
    ]
    rows += [Overload(f"math_@{word}_list_{name}", function, (f"list({name})",), name, choose) for name in names]
    return rows


def _row(name: str, params: tuple[str, ...], result: str, implementation: Implementation, suffix: str = "") -> Overload:
    return Overload(f"math_{name}_{suffix or '_'.join(params)}", f"math.{name}", params, result, implementation)


def _since_version_1() -> list[Overload]:
    double = ("double",)
    rows = [
        _row("ceil", double, "double", _whole(math.ceil)),
        _row("floor", double, "double", _whole(math.floor)),
        _row("round", double, "double", _whole(_half_away)),
        _row("trunc", double, "double", _whole(math.trunc)),
        _row("isInf", double, "bool", math.isinf),
        _row("isNaN", double, "bool", math.isnan),
        _row("isFinite", double, "bool", math.isfinite),
    ]
    for name in ("double", "int", "uint"):
        rows += [_row("abs", (name,), name, _abs), _row("sign", (name,), name, _sign)]
    for name in ("int", "uint"):
        rows += [
            _row("bitAnd", (name, name), name, _bit_and),
            _row("bitOr", (name, name), name, _bit_or),
            _row("bitXor", (name, name), name, _bit_xor),
            _row("bitNot", (name,), name, _bit_not, f"{name}_{name}"),
            _row("bitShiftLeft", (name, "int"), name, _shift_left),
            _row("bitShiftRight", (name, "int"), name, _shift_right),
        ]
    return rows


def overloads(version: int) -> tuple[Overload, ...]:
    """The library as it was in that version."""
    rows = [*_extremes("min", 1), *_extremes("max", -1)]
    if version >= 1:
        rows += _since_version_1()
    if version >= 2:
        rows += [_row("sqrt", (name,), "double", _sqrt) for name in ("double", "int", "uint")]
    return tuple(rows)


OVERLOADS = overloads(LATEST)
