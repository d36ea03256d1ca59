"""Protobuf's well-known types as CEL sees them: `google.protobuf.Int64Value{value: 1}` is a number."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from .message_fields import converted, converted_list, converted_map
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
from .values import MISSING, Duration, Timestamp, UInt

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
# The same fields in Go.
_GO_SCALARS = {
    "BoolValue": "bool", "BytesValue": "[]uint8", "DoubleValue": "float64", "FloatValue": "float32",
    "Int32Value": "int32", "Int64Value": "int64", "StringValue": "string", "UInt32Value": "uint32",
    "UInt64Value": "uint64",
}  # fmt: skip
_GO_FIELDS = {
    "null_value": "protoreflect.EnumNumber", "number_value": "float64", "string_value": "string", "bool_value": "bool",
    "struct_value": "*structpb.Struct", "list_value": "*structpb.ListValue", "seconds": "int64", "nanos": "int32",
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
    """A function from the fields of a literal to its value. A field that is MISSING was not given."""
    short = name.removeprefix(_P)
    made = _scalar(short) if short in _SCALARS else _MAKERS[short]
    return lambda fields: made({field: value for field, value in fields.items() if value is not MISSING})


def _scalar(short: str) -> Callable[[dict[str, Any]], object]:
    default = _SCALARS[short][1]
    place, go = f"{_P}{short}.value", _GO_SCALARS[short]

    def create(fields: dict[str, Any]) -> object:
        value = converted(place, fields["value"], go) if "value" in fields else default
        return _single(value) if short == "FloatValue" else value

    return create


def _single(value: float) -> float:
    from struct import error, pack, unpack

    try:
        return float(unpack("f", pack("f", value))[0])
    except (error, OverflowError):
        return float("inf") if value > 0 else float("-inf")


def _value(fields: dict[str, Any]) -> object:
    value: object = None
    for name, given in fields.items():  # of several the last stands
        value = converted(f"{_P}Value.{name}", given, _GO_FIELDS[name])
        if name == "null_value":
            value = None
    return value


def _struct(fields: dict[str, Any]) -> object:
    return converted_map(_P + "Struct.fields", fields["fields"]) if fields else {}


def _list(fields: dict[str, Any]) -> object:
    return converted_list(_P + "ListValue.values", fields["values"]) if fields else []


def _nanoseconds(name: str, fields: dict[str, Any]) -> int:
    found = {field: converted(f"{_P}{name}.{field}", value, _GO_FIELDS[field]) for field, value in fields.items()}
    return int(found.get("seconds", 0)) * 1_000_000_000 + int(found.get("nanos", 0))


def _duration(fields: dict[str, Any]) -> object:
    return Duration(max(-(1 << 63), min((1 << 63) - 1, _nanoseconds("Duration", fields))))


def _timestamp(fields: dict[str, Any]) -> object:
    return Timestamp(_nanoseconds("Timestamp", fields))


_MAKERS = {"Value": _value, "Struct": _struct, "ListValue": _list, "Duration": _duration, "Timestamp": _timestamp}
