"""Which overload takes these arguments: asked at run time, where the checker saw `dyn`."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable

from .errors import EvalError
from .overloads import Implementation, Overload
from .values import CelMap, Opaque, is_foreign, no_such_overload, type_name

__all__ = ["Guard", "bind", "describing", "guard_for", "naming_matches"]

Guard = Callable[[object], bool]


def guard_for(type_text: str, objects: Collection[str] = ()) -> Guard | None:
    """A test whether a value may be passed as a parameter of this type; None if every value may.

    Of a list or map only the first entry is looked at, as in cel-go. `objects`: types that were declared by their
    fields, of which a value may be a dictionary or any Python object.
    """
    if type_text in ("dyn", "any", "google.protobuf.Any") or type_text.startswith("<"):
        return None
    name, parameters = _split(type_text)
    if name == "list":
        return _list_guard(guard_for(parameters[0], objects))
    if name == "map":
        return _map_guard(guard_for(parameters[0], objects), guard_for(parameters[1], objects))
    if name == "wrapper":
        return _nullable_guard(guard_for(parameters[0]))
    if name in objects:
        return _object_guard(name)

    def guard(value: object) -> bool:
        return type_name(value) == name

    return guard


def _list_guard(element: Guard | None) -> Guard:
    def guard(value: object) -> bool:
        if not isinstance(value, list | tuple):
            return False
        return element is None or not value or element(value[0])

    return guard


def _map_guard(key: Guard | None, element: Guard | None) -> Guard:
    def guard(value: object) -> bool:
        if not isinstance(value, dict | CelMap):
            return False
        if (key is None and element is None) or not len(value):
            return True
        first = next(iter(value))
        return (key is None or key(first)) and (element is None or element(value[first]))

    return guard


def _nullable_guard(scalar: Guard | None) -> Guard:
    def guard(value: object) -> bool:
        return value is None or scalar is None or scalar(value)

    return guard


def _object_guard(name: str) -> Guard:
    def guard(value: object) -> bool:
        if isinstance(value, Opaque):
            return value.cel_type == name
        return isinstance(value, dict) or is_foreign(value)

    return guard


def _split(type_text: str) -> tuple[str, list[str]]:
    """A type's name and its parameters: "map(string, list(int))" is map, [string, list(int)]."""
    name, bracket, rest = type_text.partition("(")
    if not bracket:
        return name, []
    parameters: list[str] = []
    depth, start = 0, 0
    for at, character in enumerate(rest):
        if character == "(":
            depth += 1
        elif character == ")" and depth:
            depth -= 1
        elif character in ",)" and not depth:
            parameters.append(rest[start:at].strip())
            start = at + 1
    return name, parameters


def bind(function: str, overloads: Iterable[Overload], objects: Collection[str] = ()) -> Implementation:
    """A callable that finds the overload for its arguments and calls it.

    Where all overloads share one implementation, that one looks at its arguments itself.
    """
    rows = [overload for overload in overloads if overload.implementation is not None]
    implementations = {overload.implementation for overload in rows}
    if len(implementations) == 1 and rows[0].unguarded:
        (only,) = implementations
        assert only is not None  # noqa: S101 - rows have one
        return only
    table = [(len(row.params), [guard_for(text, objects) for text in row.params], row.implementation) for row in rows]

    def call(*arguments: object, **deadline: float) -> object:
        count = len(arguments)
        for arity, guards, implementation in table:
            if arity == count and all(
                guard is None or guard(argument) for guard, argument in zip(guards, arguments, strict=True)
            ):
                return implementation(*arguments, **deadline)  # type: ignore[misc]
        raise no_such_overload(function, *arguments)

    return call


def describing(function: str, bound: Implementation) -> Implementation:
    """The same, for a function that says which types no overload takes only where its pattern is no constant."""

    def call(*arguments: object, **deadline: float) -> object:
        try:
            return bound(*arguments, **deadline)
        except EvalError as error:
            if error.message != "no such overload":
                raise
            raise no_such_overload(function, *arguments) from None

    return call


def naming_matches(bound: Implementation) -> Implementation:
    """`matches` with a pattern that is no constant is named where its text is no string, and only there."""

    def call(*arguments: object, **deadline: float) -> object:
        try:
            return bound(*arguments, **deadline)
        except EvalError as error:
            if error.message != "no such overload" or isinstance(arguments[0], str):
                raise
            raise EvalError("no such overload: matches") from None

    return call
