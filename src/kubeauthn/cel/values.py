"""CEL's values as Python objects, their types, equality and order.

int  int        double  float      string  str      bool  bool
uint UInt       bytes   bytes      null    None     list  list (or tuple)
map  dict when every key is a string, else CelMap
timestamp, duration, type, optional: the classes below; anything else derives from Opaque
"""

from __future__ import annotations

from .comparing import compare, equals, is_zero, same, size_of
from .value_types import (
    INT_MAX,
    INT_MIN,
    MISSING,
    NONE,
    UINT_MAX,
    CelMap,
    Duration,
    Opaque,
    Optional,
    Timestamp,
    TypeValue,
    UInt,
    is_foreign,
    make_map,
    map_find,
    no_such_overload,
    type_name,
    type_of,
)

__all__ = [
    "INT_MAX",
    "INT_MIN",
    "MISSING",
    "NONE",
    "UINT_MAX",
    "CelMap",
    "Duration",
    "Opaque",
    "Optional",
    "Timestamp",
    "TypeValue",
    "UInt",
    "compare",
    "equals",
    "is_foreign",
    "is_zero",
    "make_map",
    "map_find",
    "no_such_overload",
    "same",
    "size_of",
    "type_name",
    "type_of",
]
