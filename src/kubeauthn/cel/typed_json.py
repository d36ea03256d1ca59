"""CEL values as JSON that keeps their types: `{"int": "1"}`, `{"list": […]}`. The form of recorded cases."""

from __future__ import annotations

from base64 import b64encode
from typing import Any

from .errors import LimitError
from .go_text import go_format_double
from .limits import MAX_WRITTEN_DEPTH
from .members import check_members
from .old_optionals import Failure
from .values import MISSING, CelMap, Duration, Opaque, Optional, Timestamp, TypeValue, UInt

__all__ = ["to_typed_json"]


def to_typed_json(value: Any, levels: int = MAX_WRITTEN_DEPTH) -> dict[str, object]:
    """One value. Raises LimitError for one that is too long, or nested too deeply, to be written out.

    More `levels` are for who has room for them on the stack (see deep_stack.py).
    """
    try:
        check_members(value)
        return _typed(value, levels)
    except RecursionError:
        raise _too_deep() from None


def _too_deep() -> LimitError:
    return LimitError("a value is nested too deeply to be written out")


def _typed(value: Any, levels: int) -> dict[str, object]:
    """`levels` is how many more it may have: who writes the JSON out has a limit too."""
    if levels < 0:
        raise _too_deep()
    levels -= 1
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
        return {"list": [_typed(element, levels) for element in value]}
    if isinstance(value, dict) or kind is CelMap:
        return {"map": [[_typed(key, levels), _typed(element, levels)] for key, element in value.items()]}
    if kind is Timestamp:
        from .go_time import format_timestamp

        return {"timestamp": format_timestamp(value)}
    if kind is Duration:
        return {"duration": f"{value.ns}ns"}
    if kind is TypeValue:
        return {"type": value.name}
    if kind is Optional:
        return {"optional": [] if value.value is MISSING else [_typed(value.value, levels)]}
    if kind is Failure:
        return {"error": value.message}
    if isinstance(value, Opaque):
        return {"opaque": {"type": value.cel_type, "string": str(value)}}
    raise TypeError(f"not a CEL value: {value!r}")
