"""Protobuf's well-known types as CEL sees them: `google.protobuf.Int64Value{value: 1}` is a number."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from .errors import EvalError
from .types import (
    BOOL,
    BYTES,
    DOUBLE,
    DURATION,
    DYN,
    INT,
    STRING,
    TIMESTAMP,
    UINT,
    Type,
    list_of,
    map_of,
    wrapper_of,
)
from .values import Duration, Timestamp, UInt

__all__ = ["CONSTANTS", "FIELDS", "TYPES", "fields_of", "make"]

_P = "google.protobuf."
_SCALARS: dict[str, tuple[Type, Any]] = {
    "BoolValue": (BOOL, False), "BytesValue": (BYTES, b""), "DoubleValue": (DOUBLE, 0.0), "FloatValue": (DOUBLE, 0.0),
    "Int32Value": (INT, 0), "Int64Value": (INT, 0), "StringValue": (STRING, ""), "UInt32Value": (UINT, UInt(0)),
    "UInt64Value": (UINT, UInt(0)),
}  # fmt: skip

# What each name means as a type, and what its fields are.
TYPES: Mapping[str, Type] = {
    **{_P + name: wrapper_of(of) for name, (of, _) in _SCALARS.items()},
    _P + "Value": DYN,
    _P + "Struct": map_of(STRING, DYN),
    _P + "ListValue": list_of(DYN),
    _P + "Duration": DURATION,
    _P + "Timestamp": TIMESTAMP,
}
FIELDS: Mapping[str, Mapping[str, Type]] = {
    **{_P + name: {"value": of} for name, (of, _) in _SCALARS.items()},
    _P + "Value": {
        "null_value": INT, "number_value": DOUBLE, "string_value": STRING, "bool_value": BOOL,
        "struct_value": map_of(STRING, DYN), "list_value": list_of(DYN),
    },
    _P + "Struct": {"fields": map_of(STRING, DYN)},
    _P + "ListValue": {"values": list_of(DYN)},
    _P + "Duration": {"seconds": INT, "nanos": INT},
    _P + "Timestamp": {"seconds": INT, "nanos": INT},
}  # fmt: skip
_ANY: Mapping[str, Type] = {"type_url": STRING, "value": BYTES}
CONSTANTS: Mapping[str, int] = {_P + "NullValue.NULL_VALUE": 0}


def fields_of(of: Type) -> Mapping[str, Type] | None:
    """The fields by which cel-go lets a type be made under its own name, as in `list{}`: a slip of its check, since
    no such literal has a value. None for a type that has no message."""
    if of.kind == "any":
        return _ANY
    if of.kind == "null":
        return {}
    if of.kind not in ("duration", "list", "timestamp"):
        return None
    return next((FIELDS[name] for name, known in TYPES.items() if known is of), None)


def make(name: str) -> Callable[[dict[str, Any]], object]:
    """A function from the fields of a literal to its value."""
    short = name.removeprefix(_P)
    if short in _SCALARS:
        return _scalar(short)
    return {"Value": _value, "Struct": _struct, "ListValue": _list, "Duration": _duration, "Timestamp": _timestamp}[
        short
    ]


def _scalar(short: str) -> Callable[[dict[str, Any]], object]:
    default = _SCALARS[short][1]
    low, high = {"Int32Value": (-(1 << 31), (1 << 31) - 1), "UInt32Value": (0, (1 << 32) - 1)}.get(short, (0, 0))

    def create(fields: dict[str, Any]) -> object:
        value = fields.get("value", default)
        if high and not low <= value <= high:
            raise EvalError("integer overflow" if low else "unsigned integer overflow")
        if short == "FloatValue":
            from struct import error, pack, unpack

            try:
                return float(unpack("f", pack("f", value))[0])
            except (error, OverflowError):
                return float("inf") if value > 0 else float("-inf")
        return value

    return create


def _value(fields: dict[str, Any]) -> object:
    for name, value in fields.items():
        return None if name == "null_value" else value
    return None


def _struct(fields: dict[str, Any]) -> object:
    return fields.get("fields", {})


def _list(fields: dict[str, Any]) -> object:
    return fields.get("values", [])


def _duration(fields: dict[str, Any]) -> object:
    return Duration(fields.get("seconds", 0) * 1_000_000_000 + fields.get("nanos", 0))


def _timestamp(fields: dict[str, Any]) -> object:
    return Timestamp(fields.get("seconds", 0) * 1_000_000_000 + fields.get("nanos", 0))
