"""Looking into lists, maps and optionals: a[i], a.b, a[?i], a.?b."""

from __future__ import annotations

from typing import Any

from ..errors import EvalError
from ..go_text import go_format_double
from ..values import INT_MAX, MISSING, NONE, CelMap, Optional, UInt, map_find, type_name

__all__ = ["display_key", "index", "optional_index", "optional_select", "position_of"]


def display_key(key: Any) -> str:
    """A key as error texts show it."""
    kind = type(key)
    if kind is str:
        return str(key)
    if kind is bool:
        return "true" if key else "false"
    if kind is float:
        return go_format_double(key)
    if key is None:
        return "NULL_VALUE"
    return str(int(key)) if kind is UInt else str(key)


def position_of(key: Any) -> int:
    """The place that a list's index names."""
    kind = type(key)
    if kind is int:
        return int(key)
    if kind is UInt:
        if key <= INT_MAX:
            return int(key)
        raise EvalError(f"unsupported index value {int(key)} in list")
    if kind is float:
        if key.is_integer() and -(2.0**63) < key < 2.0**63:
            return int(key)
        raise EvalError(f"unsupported index value {go_format_double(key)} in list")
    raise EvalError(f"unsupported index type '{type_name(key)}' in list")


def index(container: Any, key: Any) -> object:
    """container[key]. In an absent optional there is nothing; in a present one, an optional again."""
    kind = type(container)
    if kind is list or kind is tuple:
        position = key if type(key) is int else position_of(key)
        if 0 <= position < len(container):
            return container[position]
        raise EvalError(f"index out of bounds: {display_key(key)}")
    if kind is dict or kind is CelMap:
        value = map_find(container, key)
        if value is not MISSING:
            return value
    elif kind is Optional:
        return container if container.value is MISSING else optional_index(container.value, key)
    raise EvalError(f"no such key: {display_key(key)}")


def optional_index(container: Any, key: Any) -> Optional:
    """container[?key]: an optional of the value, or none."""
    kind = type(container)
    if kind is Optional:
        return NONE if container.value is MISSING else optional_index(container.value, key)
    if kind is list or kind is tuple:
        position = position_of(key)
        return Optional(container[position]) if 0 <= position < len(container) else NONE
    if kind is dict or kind is CelMap:
        value = map_find(container, key)
        return NONE if value is MISSING else Optional(value)
    return NONE


def optional_select(container: Any, field: str) -> Optional:
    """container.?field: an optional of the value, or none."""
    return optional_index(container, field)
