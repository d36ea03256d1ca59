"""Variables, types and Python functions of a user's own: declared soundly, and held to what was declared.

The engine believes a declared type. What a library says of itself is tested; what somebody else says is looked at here,
once when it is declared and, for functions, at each call.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

from .dispatch import guard_for
from .errors import CelError, EvalError
from .member_parser import RESERVED
from .overloads import Implementation, Overload
from .types import Type, format_type, parse_type, with_structs
from .value_types import INT_MAX, INT_MIN, UINT_MAX, type_name

__all__ = ["check_name", "own_function", "own_type"]

_UNUSABLE = RESERVED - {"true", "false", "null"}  # the language's own suite has variables of these names
_RANGES = {"int": (INT_MIN, INT_MAX), "uint": (0, UINT_MAX)}


def check_name(name: str, what: str) -> None:
    """Raises for a name that no expression could ever write."""
    parts = name.split(".")
    if not name.isascii() or not all(part.isidentifier() for part in parts) or name in _UNUSABLE:
        raise CelError(f"{name!r} can be no name of a {what}")


def own_type(text: str, structs: Mapping[str, Type], names: Iterable[str]) -> Type:
    """The type that a text names. One without a dot is known, or it is a slip of the pen."""
    found = with_structs(parse_type(text), structs)
    waiting = [found]
    while waiting:
        of = waiting.pop()
        waiting.extend(of.params)
        if of.kind == "opaque" and not of.params and "." not in of.name and of.name not in names:
            raise CelError(
                f"unknown type {of.name!r} in {text!r}: declare it in `types`, or give a type of your own a dotted name"
            )
    return found


def own_function(
    row: Overload,
    table: Mapping[str, tuple[Overload, ...]],
    structs: Mapping[str, Type],
    names: Iterable[str],
) -> Overload:
    """The row as the engine needs it: its types in their full form, its function held to its result."""
    others = table.get(row.function, ())
    if not others:
        check_name(row.function, "function")
    if row.implementation is None:
        raise CelError(f"overload {row.id!r} of {row.function!r} has no Python function")
    params = tuple(own_type(text, structs, names) for text in row.params)
    result = own_type(row.result, structs, names)
    for other in others:
        if other.id == row.id:
            raise CelError(f"overload {row.id!r} of {row.function!r} has several definitions")
        if other.member is row.member and _overlap(params, [parse_type(text) for text in other.params]):
            raise CelError(f"overload {row.id!r} of {row.function!r} takes what {other.id!r} takes")
    return Overload(
        row.id,
        row.function,
        tuple(map(str, params)),
        str(result),
        _held_to(result, row.function, row.implementation, structs),
        member=row.member,
        cost=row.cost,
        non_strict=row.non_strict,
        unguarded=row.unguarded,
        cost_by_name=row.cost_by_name,
        timed=row.timed,
    )


def _overlap(one: Iterable[Type], two: Iterable[Type]) -> bool:
    """Whether some arguments would do for both."""
    one, two = tuple(one), tuple(two)
    return len(one) == len(two) and all(map(_meet, one, two))


def _meet(one: Type, two: Type) -> bool:
    if {one.kind, two.kind} & {"any", "dyn", "parameter"}:
        return True
    same = one.name == two.name and len(one.params) == len(two.params)
    return same and all(map(_meet, one.params, two.params))


def _held_to(
    result: Type, function: str, implementation: Implementation, structs: Mapping[str, Type]
) -> Callable[..., object]:
    fits = guard_for(str(result), structs)
    least, most = _RANGES.get(result.kind, (0, 0))
    declared = format_type(result)

    def call(*arguments: object, **deadline: float) -> object:
        try:
            value = implementation(*arguments, **deadline)
        except EvalError:
            raise
        except Exception as error:
            raise EvalError(f"function '{function}' failed: {type(error).__name__}: {error}") from error
        if fits is not None and not fits(value):
            raise EvalError(f"function '{function}' is declared to return {declared} and returned {type_name(value)}")
        if most and value is not None and not least <= value <= most:  # type: ignore[operator]
            raise EvalError(f"function '{function}' is declared to return {declared}, which has 64 bits")
        return value

    return call
