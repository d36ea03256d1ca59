"""Objects: those of Kubernetes, which are lazy, and those of types that a user declares by their fields."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from types import MappingProxyType
from typing import Any

from .errors import EvalError
from .escaping import unescape_or_none
from .old_optionals import Failure
from .values import MISSING, Opaque, is_foreign, no_such_overload, same

__all__ = [
    "LazyObject",
    "Record",
    "has_field",
    "lazy_class",
    "lazy_values",
    "read_field",
    "record_class",
    "value_under",
]


class LazyObject(Opaque):
    """An object of declared fields, or the claims of a token, where the whole of it is asked for.

    Kubernetes' own class for this takes part in little: it can be looked into and iterated over, its values first;
    `in` and `size` do not know it, and it equals itself alone. But a map may find itself equal to it.
    """

    __slots__ = ("fields",)
    cel_is_map = True

    def __init__(self, fields: dict[str, object]) -> None:
        self.fields = fields

    def cel_equals(self, other: Opaque) -> bool:
        return isinstance(other, LazyObject) and other.fields is self.fields

    def cel_size(self) -> int:
        return len(self.fields)

    def cel_find(self, key: object) -> object:
        is_missing = type(key) is str and unescape_or_none(key) not in self.fields
        return MISSING if is_missing else value_under(self.fields, key)

    def cel_parts(self) -> list[object]:
        values = [value_under(self.fields, name) for name in self.fields]
        return [*values, *(value_under(self.fields, value) for value in values)]

    def __str__(self) -> str:
        return "no such overload"  # what Kubernetes' class says instead of its value


def lazy_class(cel_type: str) -> type[LazyObject]:
    """The class of the objects of one CEL type."""
    return type("LazyObject", (LazyObject,), {"__slots__": (), "cel_type": cel_type})


class Record(LazyObject):
    """An object that an expression makes, of a type that was declared by its fields. A Python function may read a
    field as an attribute or as an item; one that was not given has its type's zero value."""

    __slots__ = ()
    cel_is_map = False
    zeros: Mapping[str, object] = MappingProxyType({})

    def cel_equals(self, other: Opaque) -> bool:
        return isinstance(other, Record) and all(same(self[name], other[name]) is not False for name in self.zeros)

    def __getitem__(self, name: str) -> object:
        value = self.fields.get(name)
        zero = self.zeros[name]
        return (type(zero)() if isinstance(zero, list | dict) else zero) if value is None else value

    def __getattr__(self, name: str) -> object:
        try:
            return self[name]
        except KeyError:
            raise AttributeError(f"{self.cel_type} has no field {name!r}") from None

    def __repr__(self) -> str:
        return f"{self.cel_type}({', '.join(f'{name}={value!r}' for name, value in self.fields.items())})"


def record_class(cel_type: str, zeros: Mapping[str, object]) -> type[Record]:
    return type("Record", (Record,), {"__slots__": (), "cel_type": cel_type, "zeros": zeros})


def lazy_values(fields: dict[str, object]) -> Iterator[object]:
    """Each field under its name, which is taken for an escaped one there as everywhere."""
    if type(fields) is dict and not any("__" in name for name in fields):
        return iter(fields.values())
    return iter([value_under(fields, name) for name in fields])


def value_under(fields: dict[str, object], key: object) -> object:
    """A field, or the error that stands for one that is not there or cannot be read."""
    if type(key) is not str:
        return Failure("no such overload")
    name = unescape_or_none(key)
    try:
        value = MISSING if name is None else fields.get(name, MISSING)
    except EvalError as error:
        return Failure(str(error))
    return Failure(f"no such key: {key}") if value is MISSING else value


def read_field(container: Any, name: str, default: object) -> object:
    """A declared field of an object that the caller gave: a mapping or any Python object."""
    if isinstance(container, dict):
        value = container.get(name)
    elif isinstance(container, LazyObject):
        value = container.fields.get(name)
    elif is_foreign(container):
        value = _attribute(container, name)
    else:
        raise no_such_overload()
    return default if value is None else value


def has_field(container: Any, name: str) -> bool:
    """Whether a declared field of such an object was given."""
    return read_field(container, name, None) is not None


def _attribute(container: object, name: str) -> object:
    try:
        return getattr(container, name, None)
    except Exception as error:  # a property may do anything
        raise EvalError(f"field '{name}' failed: {type(error).__name__}: {error}") from error
