"""Conversions between types: int("1"), string(1.5), timestamp(0), type(x), dyn(x)."""

from __future__ import annotations

from ..errors import EvalError
from ..go_text import go_format_double, parse_bool, parse_double, parse_int, parse_uint
from ..go_time import (
    MAX_SECONDS,
    MIN_SECONDS,
    SECOND,
    format_duration,
    format_timestamp,
    parse_duration,
    parse_timestamp,
)
from ..overloads import Overload
from ..values import INT_MAX, Duration, Timestamp, TypeValue, UInt, type_of
from . import costs

__all__ = ["OLD_DURATION", "OVERLOADS", "TYPES", "bytes_to_string"]

_DURATION = "google.protobuf.Duration"
_TIMESTAMP = "google.protobuf.Timestamp"
TYPES = ("bool", "bytes", "double", _DURATION, "int", "list", "map", "null_type", "string", _TIMESTAMP, "type", "uint")
_TWO_TO_63 = 2.0**63
_TWO_TO_64 = 2.0**64


def _identity(value: object) -> object:
    return value


def _failed(target: str) -> EvalError:
    return EvalError(f"type conversion error from 'string' to '{target}'")


def _string_to_bool(text: str) -> bool:
    truth = parse_bool(text)
    if truth is None:
        raise _failed("bool")
    return truth


def _string_to_bytes(text: str) -> bytes:
    return text.encode("utf-8", "replace")


def _string_to_double(text: str) -> float:
    number = parse_double(text)
    if number is None:
        raise _failed("double")
    return number


def _string_to_int(text: str) -> int:
    number = parse_int(text)
    if number is None:
        raise _failed("int")
    return number


def _string_to_uint(text: str) -> UInt:
    number = parse_uint(text)
    if number is None:
        raise _failed("uint")
    return UInt(number)


def _string_to_duration(text: str) -> Duration:
    duration = parse_duration(text)
    if duration is None:
        raise _failed(_DURATION)
    return duration


def _string_to_timestamp(text: str) -> Timestamp:
    timestamp = parse_timestamp(text)
    if timestamp is None:
        raise _failed(_TIMESTAMP)
    return timestamp


def _double_to_int(number: float) -> int:
    if -_TWO_TO_63 < number < _TWO_TO_63:
        return int(number)
    raise EvalError("integer overflow")


def _double_to_uint(number: float) -> UInt:
    if 0 <= number < _TWO_TO_64:
        return UInt(number)
    raise EvalError("unsigned integer overflow")


def _int_to_double(number: int) -> float:
    return float(number)


def _int_to_uint(number: int) -> UInt:
    if number < 0:
        raise EvalError("unsigned integer overflow")
    return UInt(number)


def _uint_to_int(number: UInt) -> int:
    if number > INT_MAX:
        raise EvalError("integer overflow")
    return int(number)


def _int_to_timestamp(seconds: int) -> Timestamp:
    if not MIN_SECONDS <= seconds <= MAX_SECONDS:
        raise EvalError("timestamp overflow")
    return Timestamp(seconds * SECOND)


def _timestamp_to_int(timestamp: Timestamp) -> int:
    return timestamp.ns // SECOND


def _int_to_duration(number: int) -> Duration:
    raise EvalError("type conversion error from 'int' to 'google.protobuf.Duration'")


def _duration_to_int(duration: Duration) -> int:
    return duration.ns


def _bool_to_string(truth: bool) -> str:
    return "true" if truth else "false"


def _int_to_string(number: int) -> str:
    return str(int(number))


def bytes_to_string(data: bytes) -> str:
    try:
        return data.decode()
    except UnicodeDecodeError:
        raise EvalError("invalid UTF-8 in bytes, cannot convert to string") from None


def _type(value: object) -> TypeValue:
    return type_of(value)


OVERLOADS = (
    Overload("bool_to_bool", "bool", ("bool",), "bool", _identity),
    Overload("string_to_bool", "bool", ("string",), "bool", _string_to_bool),
    Overload("bytes_to_bytes", "bytes", ("bytes",), "bytes", _identity),
    Overload("string_to_bytes", "bytes", ("string",), "bytes", _string_to_bytes, cost=costs.first_scan),
    Overload("double_to_double", "double", ("double",), "double", _identity),
    Overload("int64_to_double", "double", ("int",), "double", _int_to_double),
    Overload("string_to_double", "double", ("string",), "double", _string_to_double),
    Overload("uint64_to_double", "double", ("uint",), "double", _int_to_double),
    Overload("duration_to_duration", "duration", (_DURATION,), _DURATION, _identity),
    Overload("string_to_duration", "duration", ("string",), _DURATION, _string_to_duration),
    Overload("to_dyn", "dyn", ("<A>",), "dyn", _identity, unguarded=True),
    Overload("int64_to_int64", "int", ("int",), "int", _identity),
    Overload("double_to_int64", "int", ("double",), "int", _double_to_int),
    Overload("duration_to_int64", "int", (_DURATION,), "int", _duration_to_int),
    Overload("string_to_int64", "int", ("string",), "int", _string_to_int),
    Overload("timestamp_to_int64", "int", (_TIMESTAMP,), "int", _timestamp_to_int),
    Overload("uint64_to_int64", "int", ("uint",), "int", _uint_to_int),
    Overload("string_to_string", "string", ("string",), "string", _identity),
    Overload("bool_to_string", "string", ("bool",), "string", _bool_to_string),
    Overload("bytes_to_string", "string", ("bytes",), "string", bytes_to_string, cost=costs.first_scan),
    Overload("double_to_string", "string", ("double",), "string", go_format_double),
    Overload("duration_to_string", "string", (_DURATION,), "string", format_duration),
    Overload("int64_to_string", "string", ("int",), "string", _int_to_string),
    Overload("timestamp_to_string", "string", (_TIMESTAMP,), "string", format_timestamp),
    Overload("uint64_to_string", "string", ("uint",), "string", _int_to_string),
    Overload("timestamp_to_timestamp", "timestamp", (_TIMESTAMP,), _TIMESTAMP, _identity),
    Overload("int64_to_timestamp", "timestamp", ("int",), _TIMESTAMP, _int_to_timestamp),
    Overload("string_to_timestamp", "timestamp", ("string",), _TIMESTAMP, _string_to_timestamp),
    Overload("type", "type", ("<A>",), "type(<A>)", _type, unguarded=True),
    Overload("uint64_to_uint64", "uint", ("uint",), "uint", _identity),
    Overload("double_to_uint64", "uint", ("double",), "uint", _double_to_uint),
    Overload("int64_to_uint64", "uint", ("int",), "uint", _int_to_uint),
    Overload("string_to_uint64", "uint", ("string",), "uint", _string_to_uint),
)
OLD_DURATION = Overload("int64_to_duration", "duration", ("int",), _DURATION, _int_to_duration)
"""Declared by cel-go 0.26, and of no use: it always fails."""
