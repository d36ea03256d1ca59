"""The classes of CEL's values, and maps whose keys are not all strings."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from .errors import EvalError

__all__ = [
    "INT_MAX",
    "INT_MIN",
    "MISSING",
    "NONE",
    "TYPE_NAMES",
    "UINT_MAX",
    "CelMap",
    "Duration",
    "Opaque",
    "Optional",
    "Timestamp",
    "TypeValue",
    "UInt",
    "is_foreign",
    "make_map",
    "map_find",
    "no_such_overload",
    "type_name",
    "type_of",
]

INT_MIN = -(1 << 63)
INT_MAX = (1 << 63) - 1
UINT_MAX = (1 << 64) - 1


class _Missing:
    """What a look-up gives that found nothing: null is a value, so it cannot say that."""

    __slots__ = ()

    def __repr__(self) -> str:
        return "MISSING"

    def __reduce__(self) -> str:
        return "MISSING"  # also after a copy, and in another process, there is one of it


MISSING = _Missing()


class UInt(int):
    """An unsigned integer: a type of its own in CEL."""

    __slots__ = ()

    def __repr__(self) -> str:
        return f"UInt({int(self)})"


class Duration:
    """A length of time, in nanoseconds."""

    __slots__ = ("ns",)
    cel_type = "google.protobuf.Duration"

    def __init__(self, ns: int) -> None:
        self.ns = ns

    def __eq__(self, other: object) -> bool:
        return type(other) is Duration and other.ns == self.ns

    def __hash__(self) -> int:
        return hash((Duration, self.ns))

    def __repr__(self) -> str:
        return f"Duration({self.ns})"


class Timestamp:
    """A point in time, in nanoseconds since 1970, and the offset from UTC (seconds) it was written with.

    The offset is only seen when the timestamp is printed: 10:00+02:00 equals 08:00Z.
    """

    __slots__ = ("ns", "offset")
    cel_type = "google.protobuf.Timestamp"

    def __init__(self, ns: int, offset: int = 0) -> None:
        self.ns = ns
        self.offset = offset

    def __eq__(self, other: object) -> bool:
        return type(other) is Timestamp and other.ns == self.ns

    def __hash__(self) -> int:
        return hash((Timestamp, self.ns))

    def __repr__(self) -> str:
        return f"Timestamp({self.ns})"


class TypeValue:
    """A type as a value, such as type(1)."""

    __slots__ = ("name",)
    cel_type = "type"

    def __init__(self, name: str) -> None:
        self.name = name

    def __eq__(self, other: object) -> bool:
        return type(other) is TypeValue and other.name == self.name

    def __hash__(self) -> int:
        return hash((TypeValue, self.name))

    def __repr__(self) -> str:
        return f"TypeValue({self.name!r})"


class Optional:
    """A value that may be absent. `value` is MISSING when it is."""

    __slots__ = ("value",)
    cel_type = "optional_type"

    def __init__(self, value: object = MISSING) -> None:
        self.value = value

    @property
    def present(self) -> bool:
        return self.value is not MISSING

    def __repr__(self) -> str:
        return "NONE" if self.value is MISSING else f"Optional({self.value!r})"


NONE = Optional()


class Opaque:
    """Base of the types that only functions can look into. A subclass names its type in `cel_type`."""

    __slots__ = ()
    cel_type = ""
    cel_is_reference = False
    """Whether two of the same value are two keys of a map, as pointers are in Go."""
    cel_is_map = False
    """Whether a map can be equal to it: one of its size that has what `cel_find` finds."""

    def cel_equals(self, other: Opaque) -> bool | None:
        """Whether both are the same value; `other` is of this very class. None: they cannot be compared."""
        return self is other

    def cel_size(self) -> int:
        """The size that the cost of a call is reckoned with."""
        return 1

    def cel_find(self, key: object) -> object:
        """What is under a key, or MISSING."""
        return MISSING

    def cel_parts(self) -> Iterable[object] | None:
        """What the cost of going through it is reckoned with, for those that can be looked into."""
        return None


class CelMap:
    """A map whose keys are not all strings. Keys keep their type; 1, 1u and 1.0 find the same entry."""

    __slots__ = ("_entries",)
    cel_type = "map"

    def __init__(self, pairs: Iterable[tuple[object, object]] = ()) -> None:
        entries: dict[object, tuple[object, object]] = {}
        for key, value in pairs:
            entries[_stored_key(key)] = (key, value)
        self._entries = entries

    def find(self, key: object) -> object:
        """The value of a key, or MISSING."""
        entries = self._entries
        for candidate in _sought_keys(key):
            entry = entries.get(candidate)
            if entry is not None:
                return entry[1]
        return MISSING

    def __contains__(self, key: object) -> bool:
        return self.find(key) is not MISSING

    def __getitem__(self, key: object) -> object:
        value = self.find(key)
        if value is MISSING:
            raise KeyError(key)
        return value

    def __len__(self) -> int:
        return len(self._entries)

    def __iter__(self) -> Iterator[object]:
        return iter([key for key, _ in self._entries.values()])

    def keys(self) -> list[object]:
        return [key for key, _ in self._entries.values()]

    def values(self) -> list[object]:
        return [value for _, value in self._entries.values()]

    def items(self) -> list[tuple[object, object]]:
        return list(self._entries.values())

    def __repr__(self) -> str:
        return "CelMap([" + ", ".join(f"({key!r}, {value!r})" for key, value in self.items()) + "])"


def _stored_key(key: Any) -> object:
    kind = type(key)
    if kind is str:
        return key
    if kind is int:
        return (1, key)
    if kind is UInt:
        return (2, int(key))
    if kind is bool:
        return (0, key)
    if kind is float or key is None:
        return (3, key)
    if kind is bytes:
        raise EvalError("unsupported key type: bytes")
    return _unusual_key(key)


def _unusual_key(key: Any) -> object:
    """A key that no literal can have, only a dyn value: found again by its value, and a list or map not at all."""
    if isinstance(key, Opaque) and not key.cel_is_reference:
        return (4, type(key), str(key))
    if isinstance(key, Timestamp) and _has_shared_zone(key):
        return (5, key, key.offset)
    return (5, key) if isinstance(key, Duration | TypeValue) else (6, id(key))


def _has_shared_zone(time: Timestamp) -> bool:
    """Go has one object for each of these offsets, and for another one a new object each time."""
    return time.offset % 3600 == 0 and -12 <= time.offset // 3600 <= 14


def _sought_keys(key: Any) -> tuple[object, ...]:
    kind = type(key)
    if kind is str:
        return (key,)
    if kind is bool:
        return ((0, key),)
    if kind is int:
        return ((1, key), (2, key))
    if kind is UInt:
        number = int(key)
        return ((2, number), (1, number))
    if kind is float and key.is_integer():
        number = int(key)
        return ((3, key), (1, number), (2, number))
    if kind is float or key is None:
        return ((3, key),)
    if kind is bytes:
        raise EvalError("unsupported key type: bytes")
    return (_unusual_key(key),)


def make_map(pairs: Iterable[tuple[Any, object]]) -> dict[str, object] | CelMap:
    """The map of these entries: a dict if it can be one. Of two equal keys the last one counts."""
    pairs = list(pairs)
    if all(type(key) is str for key, _ in pairs):
        return dict(pairs)
    return CelMap(pairs)


def map_find(mapping: Any, key: object) -> object:
    """The value that a dict or CelMap has for a key of any type, or MISSING."""
    if type(mapping) is dict:
        return mapping.get(key, MISSING) if type(key) is str else MISSING
    return mapping.find(key)


TYPE_NAMES: dict[type, str] = {
    str: "string",
    bool: "bool",
    int: "int",
    float: "double",
    UInt: "uint",
    bytes: "bytes",
    list: "list",
    tuple: "list",
    dict: "map",
    type(None): "null_type",
}


def type_name(value: object) -> str:
    """The name of a value's type at run time, without parameters."""
    name = TYPE_NAMES.get(type(value))
    if name is None:
        name = getattr(type(value), "cel_type", None) or type(value).__name__
    return name


def is_foreign(value: object) -> bool:
    """Whether it is an object of the caller's own, not a value of CEL."""
    return type(value) not in TYPE_NAMES and not hasattr(type(value), "cel_type")


def type_of(value: object) -> TypeValue:
    """CEL's type(value)."""
    return TypeValue(type_name(value))


def no_such_overload(function: str = "", *arguments: object) -> EvalError:
    """The error for a call whose arguments no overload takes."""
    if not function:
        return EvalError("no such overload")
    return EvalError(f"no such overload: {function}({', '.join(type_name(argument) for argument in arguments)})")
