"""A value as Go's %v shows it, for error texts."""

from __future__ import annotations

from typing import Any

from ..go_text import go_format_double
from ..go_time import format_duration, format_timestamp, go_duration, go_timestamp
from ..values import CelMap, Duration, Optional, Timestamp, TypeValue, UInt

__all__ = ["display", "display_itself"]


def display(value: Any) -> str:
    kind = type(value)
    if kind is str:
        return str(value)
    if kind is bool:
        return "true" if value else "false"
    if kind is int or kind is UInt:
        return str(int(value))
    if kind is float:
        return go_format_double(value)
    if value is None:
        return "NULL_VALUE"
    if kind is bytes:
        return "[" + " ".join(str(byte) for byte in value) + "]"
    if kind is list or kind is tuple:
        return "[" + ", ".join(display(element) for element in value) + "]"
    if kind is dict or kind is CelMap:
        return "{" + ", ".join(f"{display(key)}: {display(element)}" for key, element in value.items()) + "}"
    if kind is Timestamp:
        return format_timestamp(value)
    if kind is Duration:
        return format_duration(value)
    if kind is TypeValue:
        return str(value.name)
    if kind is Optional:
        return f"optional({display(value.value)})" if value.present else "optional.none()"
    return str(value)


def display_itself(value: Any) -> str:
    """The same of the value as cel-go holds it, where `display` is of the Go value inside."""
    if value is None:
        return "0"
    if type(value) is Timestamp:
        return go_timestamp(value)
    if type(value) is Duration:
        return go_duration(value)
    return display(value)
