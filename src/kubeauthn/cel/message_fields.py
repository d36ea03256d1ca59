"""What the fields of a message make of the values they are given, and what cel-go says of those that do not fit.

A checker cannot know a value of type dyn: without this, `google.protobuf.BoolValue{value: dyn(1)}` would be a bool to
the checker and a number to what uses it.
"""

from __future__ import annotations

from base64 import b64encode
from typing import Any

from .errors import EvalError
from .values import MISSING, CelMap, Duration, Opaque, Optional, Timestamp, TypeValue, UInt, type_name

__all__ = ["converted", "converted_list", "converted_map"]

_EXACT = (1 << 53) - 1
"""The largest whole number that JSON keeps; larger ones are written as texts."""
_RANGES = {
    "int32": (-(1 << 31), (1 << 31) - 1, ""),
    "uint32": (0, (1 << 32) - 1, "unsigned "),
    "protoreflect.EnumNumber": (-(1 << 31), (1 << 31) - 1, ""),
}
_KINDS: dict[str, type] = {
    "bool": bool,
    "[]uint8": bytes,
    "float64": float,
    "float32": float,
    "int32": int,
    "int64": int,
    "protoreflect.EnumNumber": int,
    "string": str,
    "uint32": UInt,
    "uint64": UInt,
}
_PHRASES: dict[type, str] = {
    int: "unsupported type conversion from 'int' to {}",
    UInt: "unsupported type conversion from 'uint' to {}",
    float: "type conversion error from Double to '{}'",
    str: "unsupported native conversion from string to '{}'",
    bytes: "type conversion error from Bytes to '{}'",
    bool: "type conversion error from bool to '{}'",
    type(None): "type conversion error from 'null_type' to '{}'",
    list: "type conversion error from list to '{}'",
    tuple: "type conversion error from list to '{}'",
    Duration: "type conversion error from 'Duration' to '{}'",
    Timestamp: "type conversion error from 'Timestamp' to '{}'",
    TypeValue: "type conversion not supported for 'type'",
}


class _Misfit(Exception):
    """Why a value does not fit, in cel-go's words."""


def converted(place: str, value: Any, go: str) -> Any:
    """A field's value, `go` being the type that the field has in Go. Raises EvalError."""
    try:
        return _native(value, go)
    except _Misfit as misfit:
        raise EvalError(f"field type conversion error for {place} value type: {misfit}") from None


def converted_list(place: str, value: Any) -> list[Any]:
    """The values of a `ListValue`."""
    if type(value) is not list and type(value) is not tuple:
        raise EvalError(f"unsupported field type for {place}: {_declared(value)}")
    return [converted(place, element, "*structpb.Value") for element in value]


def converted_map(place: str, value: Any) -> dict[str, Any]:
    """The fields of a `Struct`."""
    if not isinstance(value, dict) and type(value) is not CelMap:
        raise EvalError(f"unsupported field type for {place}: {_declared(value)}")
    return {
        converted(place, key, "string"): converted(place, element, "*structpb.Value") for key, element in value.items()
    }


def _native(value: Any, go: str) -> Any:
    if type(value) is Optional:
        if value.value is MISSING:
            raise _Misfit("optional.none() dereference")
        return _native(value.value, go)
    if go == "*structpb.Value":
        return _json(value)
    if go == "*structpb.ListValue" and type(value) in (list, tuple):
        return [_json(element) for element in value]
    if go == "*structpb.Struct" and (isinstance(value, dict) or type(value) is CelMap):
        return {_native(key, "string"): _json(element) for key, element in value.items()}
    if type(value) is _KINDS.get(go):
        return _in_range(value, go)
    if go == "string" and isinstance(value, Opaque) and not _is_lazy(value):
        return str(value)
    if go == "[]uint8" and type(value) in (list, tuple) and value:
        raise _Misfit(_phrase(value[0], "uint8"))
    raise _Misfit(_phrase(value, go))


def _in_range(value: Any, go: str) -> Any:
    low, high, sort = _RANGES.get(go, (0, 0, ""))
    if high and not low <= value <= high:
        raise _Misfit(f"{sort}integer overflow")
    return value


def _json(value: Any) -> Any:
    """A value as JSON has it."""
    kind = type(value)
    if value is None or kind in (bool, str, float):
        return value
    if kind is int or kind is UInt:
        return float(value) if -_EXACT <= value <= _EXACT else str(int(value))
    if kind is bytes:
        return b64encode(value).decode()
    if kind is Duration or kind is Timestamp:
        from .go_time import format_duration, format_timestamp

        return format_duration(value) if kind is Duration else format_timestamp(value)
    if kind is list or kind is tuple:
        return _native(value, "*structpb.ListValue")
    if isinstance(value, dict) or kind is CelMap:
        return _native(value, "*structpb.Struct")
    if kind is Optional:
        return _native(value, "*structpb.Value")
    raise _Misfit(_phrase(value, "*structpb.Value"))


def _phrase(value: Any, go: str) -> str:
    if isinstance(value, Opaque):
        name = value.cel_type.rpartition(".")[2]
        if _is_lazy(value):
            short = "" if go.startswith(("*", "[")) else go.rpartition(".")[2]
            return f'disallowed conversion from "{value.cel_type}" to "{short}"'
        return f"type conversion error from '{name.removeprefix('Named')}' to '{go}'"
    if isinstance(value, dict) or type(value) is CelMap:
        return f"type conversion error from map to '{go}'"
    return _PHRASES[type(value)].format(go)


def _is_lazy(value: Opaque) -> bool:
    return value.cel_type in ("kubernetes.claims", "kubernetes.UserInfo")


def _declared(value: Any) -> str:
    name = type_name(value)
    return {"list": "list(dyn)", "map": "map(dyn, dyn)", "optional_type": "optional_type(dyn)"}.get(name, name)
