"""CEL values as JSON that keeps their types: `{"int": "1"}`, `{"list": […]}`. The form of recorded cases."""

from __future__ import annotations

from base64 import b64encode
from typing import Any

from .go_text import go_format_double
from .members import check_members
from .old_optionals import Failure
from .values import MISSING, CelMap, Duration, Opaque, Optional, Timestamp, TypeValue, UInt

__all__ = ["to_typed_json"]


def to_typed_json(value: Any) -> dict[str, object]:
    """One value. Raises LimitError for one that is too long to be written out."""
    check_members(value)
    return _typed(value)


def _typed(value: Any) -> dict[str, object]:
    kind = type(value)
    if value is None:
        return {"null": True}
    if kind is bool:
        return {"bool": value}
    if kind is int:
        return {"int": str(value)}
    if kind is UInt:
        return {"uint": str(int(value))}
    if kind is float:
        return {"double": go_format_double(value)}
    if kind is str:
        return {"string": value}
    if kind is bytes:
        return {"bytes": b64encode(value).decode()}
    if kind is list or kind is tuple:
        return {"list": [_typed(element) for element in value]}
    if isinstance(value, dict) or kind is CelMap:
        return {"map": [[_typed(key), _typed(element)] for key, element in value.items()]}
    if kind is Timestamp:
        from .go_time import format_timestamp

        return {"timestamp": format_timestamp(value)}
    if kind is Duration:
        return {"duration": f"{value.ns}ns"}
    if kind is TypeValue:
        return {"type": value.name}
    if kind is Optional:
        return {"optional": [] if value.value is MISSING else [_typed(value.value)]}
    if kind is Failure:
        return {"error": value.message}
    if isinstance(value, Opaque):
        return {"opaque": {"type": value.cel_type, "string": str(value)}}
    raise TypeError(f"not a CEL value: {value!r}")
