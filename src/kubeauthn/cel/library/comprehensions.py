"""What the macros of two variables (transformMap, transformMapEntry) expand to."""

from __future__ import annotations

from typing import Any

from ..errors import EvalError
from ..overloads import Overload
from ..values import MISSING, make_map, map_find
from .display import display

__all__ = ["OVERLOADS", "TYPES", "insert_entries", "insert_entry"]

TYPES: tuple[str, ...] = ()


def insert_entry(mapping: Any, key: object, value: object) -> object:
    """A new map with one entry more. A key that is there already is an error."""
    if map_find(mapping, key) is not MISSING:
        raise EvalError(f"insert failed: key {display(key)} already exists")
    return make_map([*mapping.items(), (key, value)])


def insert_entries(mapping: Any, other: Any) -> object:
    """A new map with the entries of both."""
    pairs = list(mapping.items())
    for key, value in other.items():
        if map_find(mapping, key) is not MISSING:
            raise EvalError(f"insert failed: key {display(key)} already exists")
        pairs.append((key, value))
    return make_map(pairs)


_MAP = "map(<K>, <V>)"

OVERLOADS = (
    Overload("@mapInsert_map_key_value", "cel.@mapInsert", (_MAP, "<K>", "<V>"), _MAP, insert_entry),
    Overload("@mapInsert_map_map", "cel.@mapInsert", (_MAP, _MAP), _MAP, insert_entries),
)
