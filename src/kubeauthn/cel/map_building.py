"""Maps that an expression makes: literals, and what transformMap collects."""

from __future__ import annotations

from typing import Any

from .errors import EvalError, LimitError
from .escaping import escape_name
from .library.display import display_itself
from .library.indexing import display_key
from .objects import LazyObject
from .values import MISSING, CelMap, Timestamp, UInt, make_map, no_such_overload, type_name

__all__ = [
    "check_hashable",
    "insert",
    "insert_all",
    "inserted",
    "is_unhashable",
    "new_map",
    "new_map_escaped",
    "new_map_strict",
    "protect",
]

_BY_VALUE = ("net.IP", "net.CIDR")
"""Types of Kubernetes that Go compares by what is in them; the others are pointers there."""
_UNHASHABLE = {"bytes": "types.Bytes", "kubernetes.NamedFormat": "cel.Format", "kubernetes.Semver": "cel.Semver"}


def new_map(*flat: Any) -> object:
    """A map of keys and values in turn. An entry whose value is MISSING is taken away."""
    entries: dict[object, tuple[object, object]] = {}
    for at in range(0, len(flat), 2):
        key, value = flat[at], flat[at + 1]
        identity = (type(key), key) if type(key) in (str, bool, int, UInt) else _bad_key(key)
        if value is MISSING:
            entries.pop(identity, None)
        else:
            entries[identity] = (key, value)
    return make_map(list(entries.values()))


def new_map_strict(*flat: Any) -> object:
    """The same by the specification: keys of four types, none twice."""
    seen: set[object] = set()
    for at in range(0, len(flat), 2):
        key = flat[at]
        if type(key) not in (str, bool, int, UInt):
            raise EvalError(f"unsupported key type: {type_name(key)}")
        identity = (bool, key) if type(key) is bool else key
        if identity in seen:
            raise EvalError(f"repeated key: {display_key(key)}")
        seen.add(identity)
    return new_map(*flat)


def new_map_escaped(*flat: Any) -> object:
    """The same where names are escaped: only maps from outside answer to escapes."""
    return protect(new_map(*flat))


def protect(value: object) -> object:
    """A map that the expression makes: escaped names do not reach its keys."""
    if type(value) is dict and any(escape_name(key) != key for key in value):
        return CelMap(value.items())
    return value


def check_hashable(key: object) -> None:
    """Raises for a key on which Go panics: that ends the whole evaluation, no `||` forgets it."""
    if is_unhashable(key):
        go_type = _UNHASHABLE[type_name(key)]
        raise LimitError(f"internal error: runtime error: hash of unhashable type {go_type}")


def is_unhashable(key: object) -> bool:
    """Whether a Go map cannot even be asked for this key."""
    return type_name(key) in _UNHASHABLE


def _bad_key(key: object) -> tuple[object, ...]:
    check_hashable(key)
    # cel-go keeps such an entry, where nothing can find it
    return (type(key), id(key))


def insert(entries: dict[object, tuple[object, object]], key: Any, value: object) -> None:
    """Add to the map that a transformMap builds. An integer is found again as a double, but not a double as one."""
    kind = type(key)
    identity: object = key
    if kind is bool:
        identity = (bool, key)
    elif kind is int or kind is UInt:
        identity = (int, int(key))
    elif kind is float:
        identity = (float, key)
        if key.is_integer() and (int, int(key)) in entries:
            identity = (int, int(key))
    elif kind in (list, tuple, dict):
        identity = id(key)
    elif isinstance(key, LazyObject):
        identity = id(key.fields)  # whoever asks for the claims, or the user, gets the same one
    elif kind is Timestamp:
        # Go compares the zones too: there is one of whole hours, and any other is as often there as it is read
        identity = (kind, key.ns, id(key) if key.offset % 3600 else key.offset)
    elif type_name(key) in _BY_VALUE:
        identity = (kind, str(key))
    if identity in entries:
        raise EvalError(f"insert failed: key {display_itself(key)} already exists")
    entries[identity] = (key, value)


def insert_all(entries: dict[object, tuple[object, object]], pairs: Any) -> None:
    if type(pairs) is not dict and type(pairs) is not CelMap:
        raise no_such_overload("cel.@mapInsert", {}, pairs)
    for key, value in pairs.items():
        insert(entries, key, value)


def inserted(entries: dict[object, tuple[object, object]]) -> object:
    return make_map(list(entries.values()))
