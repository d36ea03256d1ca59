"""Arithmetic and calendar functions of timestamps and durations."""

from __future__ import annotations

from collections.abc import Callable

from ..errors import EvalError
from ..go_time import MAX_SECONDS, MIN_SECONDS, SECOND, civil, days_from_civil, zone_offset
from ..overloads import Implementation, Overload
from ..values import INT_MAX, INT_MIN, Duration, Timestamp

__all__ = ["OVERLOADS", "TYPES", "add_duration", "subtract_duration", "subtract_timestamps"]

TYPES: tuple[str, ...] = ()
_DAY = 86400


def add_duration(timestamp: Timestamp, nanoseconds: int) -> Timestamp:
    total = timestamp.ns + nanoseconds
    if not MIN_SECONDS <= total // SECOND <= MAX_SECONDS:
        raise EvalError("timestamp overflow")
    return Timestamp(total, timestamp.offset)


def subtract_duration(timestamp: Timestamp, nanoseconds: int) -> Timestamp:
    if nanoseconds == INT_MIN:
        raise EvalError("integer overflow")
    return add_duration(timestamp, -nanoseconds)


def subtract_timestamps(left: Timestamp, right: Timestamp) -> Duration:
    difference = left.ns - right.ns
    # Whole seconds are scaled first, and must fit by themselves.
    seconds = (left.ns // SECOND - right.ns // SECOND) * SECOND
    if not INT_MIN <= seconds <= INT_MAX or not INT_MIN <= difference <= INT_MAX:
        raise EvalError("integer overflow")
    return Duration(difference)


def _local(timestamp: Timestamp, zone: str) -> tuple[int, int]:
    """The day since 1970 and the second of that day, in a time zone."""
    seconds = timestamp.ns // SECOND
    return divmod(seconds + zone_offset(seconds, zone), _DAY)


def _full_year(timestamp: Timestamp, zone: str = "") -> int:
    return civil(_local(timestamp, zone)[0])[0]


def _month(timestamp: Timestamp, zone: str = "") -> int:
    return civil(_local(timestamp, zone)[0])[1] - 1


def _date(timestamp: Timestamp, zone: str = "") -> int:
    return civil(_local(timestamp, zone)[0])[2]


def _day_of_month(timestamp: Timestamp, zone: str = "") -> int:
    return _date(timestamp, zone) - 1


def _day_of_year(timestamp: Timestamp, zone: str = "") -> int:
    days = _local(timestamp, zone)[0]
    return days - days_from_civil(civil(days)[0], 1, 1)


def _day_of_week(timestamp: Timestamp, zone: str = "") -> int:
    # 1970-01-01 was a Thursday, and Sunday is 0.
    return (_local(timestamp, zone)[0] + 4) % 7


def _hours(timestamp: Timestamp, zone: str = "") -> int:
    return _local(timestamp, zone)[1] // 3600


def _minutes(timestamp: Timestamp, zone: str = "") -> int:
    return _local(timestamp, zone)[1] // 60 % 60


def _seconds(timestamp: Timestamp, zone: str = "") -> int:
    return _local(timestamp, zone)[1] % 60


def _milliseconds(timestamp: Timestamp, zone: str = "") -> int:
    zone_offset(0, zone)  # for its errors: no zone moves a timestamp by less than a second
    return timestamp.ns % SECOND // 1_000_000


def _whole(unit: int) -> Callable[[Duration], int]:
    """A duration in whole units, cut towards zero: of a double, as Go has it, which can round up to the next unit."""

    def count(duration: Duration) -> int:
        units, rest = divmod(abs(duration.ns), unit)
        if unit >= SECOND:
            units = int(float(units) + float(rest) / float(unit))
        return -units if duration.ns < 0 else units

    return count


_TIMESTAMP = "google.protobuf.Timestamp"
_DURATION = "google.protobuf.Duration"


def _getter(function: str, stem: str, implementation: Implementation, with_zone: str = "") -> tuple[Overload, Overload]:
    return (
        Overload(stem, function, (_TIMESTAMP,), "int", implementation, member=True),
        Overload(with_zone or stem + "_with_tz", function, (_TIMESTAMP, "string"), "int", implementation, member=True),
    )


def _unit(function: str, id: str, unit: int) -> Overload:
    return Overload(id, function, (_DURATION,), "int", _whole(unit), member=True)


OVERLOADS = (
    *_getter("getFullYear", "timestamp_to_year", _full_year),
    *_getter("getMonth", "timestamp_to_month", _month),
    *_getter("getDayOfYear", "timestamp_to_day_of_year", _day_of_year),
    *_getter("getDayOfMonth", "timestamp_to_day_of_month", _day_of_month),
    *_getter("getDate", "timestamp_to_day_of_month_1_based", _date),
    *_getter("getDayOfWeek", "timestamp_to_day_of_week", _day_of_week),
    *_getter("getHours", "timestamp_to_hours", _hours),
    _unit("getHours", "duration_to_hours", 3600 * SECOND),
    *_getter("getMinutes", "timestamp_to_minutes", _minutes),
    _unit("getMinutes", "duration_to_minutes", 60 * SECOND),
    *_getter("getSeconds", "timestamp_to_seconds", _seconds, "timestamp_to_seconds_tz"),
    _unit("getSeconds", "duration_to_seconds", SECOND),
    *_getter("getMilliseconds", "timestamp_to_milliseconds", _milliseconds),
    _unit("getMilliseconds", "duration_to_milliseconds", 1_000_000),
)
