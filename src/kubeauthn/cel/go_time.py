"""Timestamps and durations read and printed the way Go does it, and the calendar behind them."""

from __future__ import annotations

from .errors import EvalError
from .go_text import format_fixed, is_decimal, parse_int
from .values import INT_MAX, Duration, Timestamp

__all__ = [
    "MAX_SECONDS",
    "MIN_SECONDS",
    "SECOND",
    "civil",
    "days_from_civil",
    "format_duration",
    "format_timestamp",
    "go_duration",
    "go_timestamp",
    "parse_duration",
    "parse_timestamp",
    "zone_offset",
]

SECOND = 1_000_000_000
MIN_SECONDS = -62135596800  # 0001-01-01T00:00:00Z
MAX_SECONDS = 253402300799  # 9999-12-31T23:59:59Z
_DAY = 86400
_UNITS = {
    "ns": 1,
    "us": 1000,
    "µs": 1000,  # U+00B5, the micro sign
    "μs": 1000,
    "ms": 1_000_000,
    "s": SECOND,
    "m": 60 * SECOND,
    "h": 3600 * SECOND,
}
_DIGITS = frozenset("0123456789")


def days_from_civil(year: int, month: int, day: int) -> int:
    """Days since 1970-01-01 of a date of the Gregorian calendar, any year."""
    if month <= 2:
        year -= 1
    era, year_of_era = divmod(year, 400)
    day_of_year = (153 * ((month + 9) % 12) + 2) // 5 + day - 1
    return era * 146097 + year_of_era * 365 + year_of_era // 4 - year_of_era // 100 + day_of_year - 719468


def civil(days: int) -> tuple[int, int, int]:
    """The year, month and day of a number of days since 1970-01-01."""
    era, day_of_era = divmod(days + 719468, 146097)
    year_of_era = (day_of_era - day_of_era // 1460 + day_of_era // 36524 - day_of_era // 146096) // 365
    day_of_year = day_of_era - (365 * year_of_era + year_of_era // 4 - year_of_era // 100)
    shifted = (5 * day_of_year + 2) // 153
    month = shifted + 3 if shifted < 10 else shifted - 9
    year = year_of_era + era * 400 + (1 if month <= 2 else 0)
    return year, month, day_of_year - (153 * shifted + 2) // 5 + 1


def _days_in(year: int, month: int) -> int:
    if month == 2:
        return 29 if year % 4 == 0 and (year % 100 != 0 or year % 400 == 0) else 28
    return 30 if month in (4, 6, 9, 11) else 31


class _Reader:
    """Takes an RFC 3339 text apart from left to right. Every method raises ValueError if its part is not there."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.at = 0

    def number(self, width: int, low: int, high: int) -> int:
        digits = self.text[self.at : self.at + width]
        if len(digits) != width or not _DIGITS.issuperset(digits) or not low <= int(digits) <= high:
            raise ValueError(digits)
        self.at += width
        return int(digits)

    def hour(self) -> int:
        # Go takes an hour of one digit too.
        second = self.text[self.at + 1 : self.at + 2]
        return self.number(2 if second in _DIGITS else 1, 0, 23)

    def literal(self, character: str) -> None:
        if self.text[self.at : self.at + 1] != character:
            raise ValueError(character)
        self.at += 1

    def fraction(self) -> int:
        """Nanoseconds; digits after the ninth are dropped. A comma does as a point."""
        if self.text[self.at : self.at + 1] not in (".", ",") or self.text[self.at + 1 : self.at + 2] not in _DIGITS:
            return 0
        end = self.at + 1
        while self.text[end : end + 1] in _DIGITS:
            end += 1
        digits = self.text[self.at + 1 : end]
        self.at = end
        return int(digits[:9].ljust(9, "0"))

    def offset(self) -> int:
        sign = self.text[self.at : self.at + 1]
        self.at += 1
        if sign == "Z":
            return 0
        if sign not in ("+", "-"):
            raise ValueError(sign)
        hours = self.number(2, 0, 24)
        self.literal(":")
        seconds = hours * 3600 + self.number(2, 0, 60) * 60
        return -seconds if sign == "-" else seconds


def parse_timestamp(text: str) -> Timestamp | None:
    """An RFC 3339 time, or None. Raises if it is outside the years 1 to 9999."""
    reader = _Reader(text)
    try:
        year = reader.number(4, 0, 9999)
        reader.literal("-")
        month = reader.number(2, 1, 12)
        reader.literal("-")
        day = reader.number(2, 1, _days_in(year, month))
        reader.literal("T")
        seconds = reader.hour() * 3600
        reader.literal(":")
        seconds += reader.number(2, 0, 59) * 60
        reader.literal(":")
        seconds += reader.number(2, 0, 59)
        nanoseconds = reader.fraction()
        offset = reader.offset()
    except ValueError:
        return None
    if reader.at != len(text):
        return None
    seconds += days_from_civil(year, month, day) * _DAY - offset
    if not MIN_SECONDS <= seconds <= MAX_SECONDS:
        raise EvalError("timestamp overflow")
    return Timestamp(seconds * SECOND + nanoseconds, offset)


def format_timestamp(timestamp: Timestamp, *, utc: bool = False) -> str:
    """RFC 3339 with as many digits of the second as there are."""
    offset = 0 if utc else timestamp.offset
    seconds, nanoseconds = divmod(timestamp.ns + offset * SECOND, SECOND)
    days, of_day = divmod(seconds, _DAY)
    year, month, day = civil(days)
    hour, minute, second = of_day // 3600, of_day // 60 % 60, of_day % 60
    fraction = f".{nanoseconds:09d}".rstrip("0") if nanoseconds else ""
    if offset == 0:
        zone = "Z"
    else:
        minutes = abs(offset) // 60
        zone = f"{'-' if offset < 0 else '+'}{minutes // 60:02d}:{minutes % 60:02d}"
    return f"{year:04d}-{month:02d}-{day:02d}T{hour:02d}:{minute:02d}:{second:02d}{fraction}{zone}"


def parse_duration(text: str) -> Duration | None:
    """A duration such as 1h30m or -1.5s, or None."""
    negative = text.startswith("-")
    rest = text[1:] if text[:1] in ("+", "-") else text
    if rest == "0":
        return Duration(0)
    if not rest:
        return None
    total = 0
    while rest:
        amount, rest = _parse_part(rest)
        total += amount
        if amount < 0 or total > INT_MAX + 1:
            return None
    if negative:
        return Duration(-total)
    return Duration(total) if total <= INT_MAX else None


def _parse_part(text: str) -> tuple[int, str]:
    """The nanoseconds of the first number and unit, and what follows them. Negative: this is none."""
    whole = _digits_at(text, 0)
    end = len(whole)
    fraction = ""
    if text[end : end + 1] == ".":
        fraction = _digits_at(text, end + 1)
        end += 1 + len(fraction)
    if not whole and not fraction:
        return -1, ""
    unit_end = end
    while unit_end < len(text) and text[unit_end] != "." and text[unit_end] not in _DIGITS:
        unit_end += 1
    unit = _UNITS.get(text[end:unit_end])
    whole = whole.lstrip("0")
    if unit is None or len(whole) > 19:
        return -1, ""
    # The fraction is cut to what 63 bits hold, and the product to whole nanoseconds, as Go does.
    digits = fraction[:18]
    nanoseconds = int(whole or "0") * unit + (int(int(digits) * (unit / 10 ** len(digits))) if digits else 0)
    return nanoseconds, text[unit_end:]


def _digits_at(text: str, start: int) -> str:
    end = start
    while end < len(text) and text[end] in _DIGITS:
        end += 1
    return text[start:end]


def format_duration(duration: Duration) -> str:
    """Seconds and an s, such as 5400s or 1.5s."""
    seconds, nanoseconds = divmod(abs(duration.ns), SECOND)
    number = float(seconds) + float(nanoseconds) / 1e9
    return format_fixed(-number if duration.ns < 0 else number) + "s"


def go_timestamp(timestamp: Timestamp) -> str:
    """A time as Go prints it, such as 2024-02-29 12:30:45.5 +0200 +0200."""
    text = format_timestamp(timestamp)
    day, _, rest = text.partition("T")
    if not timestamp.offset:
        return f"{day} {rest.removesuffix('Z')} +0000 UTC"
    zone = rest[-6:].replace(":", "")
    return f"{day} {rest[:-6]} {zone} {zone}"


def go_duration(duration: Duration) -> str:
    """A duration as Go prints it, such as 1h30m0s or 1.5ms."""
    amount = abs(duration.ns)
    sign = "-" if duration.ns < 0 else ""
    if amount < SECOND:
        for unit, name in ((1_000_000, "ms"), (1_000, "µs"), (1, "ns")):
            if amount >= unit:
                return f"{sign}{_decimal(amount, unit)}{name}"
        return "0s"
    minutes, rest = divmod(amount, 60 * SECOND)
    hours, minutes = divmod(minutes, 60)
    large = f"{hours}h{minutes}m" if hours else f"{minutes}m" if minutes else ""
    return f"{sign}{large}{_decimal(rest, SECOND)}s"


def _decimal(amount: int, unit: int) -> str:
    """amount / unit, of a unit that is a power of ten, without zeros at the end."""
    whole, part = divmod(amount, unit)
    return f"{whole}.{str(part + unit)[1:].rstrip('0')}" if part else str(whole)


def zone_offset(seconds: int, zone: str) -> int:
    """How far a time zone is ahead of UTC, in seconds, at a time: +02:00, or a name such as Europe/Berlin."""
    if ":" in zone:
        hours, _, minutes = zone.partition(":")
        offset = _zone_number(hours) * 60
        offset += -_zone_number(minutes) if zone.startswith("-") else _zone_number(minutes)
        span = _wrapped(offset * 60 * SECOND)
        return abs(span) // SECOND * (-1 if span < 0 else 1)
    if zone in ("", "UTC", "Local"):
        return 0
    return _named_zone_offset(seconds, zone)


def _zone_number(text: str) -> int:
    number = parse_int(text)
    if number is None:
        from .go_text import quote

        fault = "value out of range" if is_decimal(text[1:] if text[:1] in ("+", "-") else text) else "invalid syntax"
        raise EvalError(f"strconv.Atoi: parsing {quote(text)}: {fault}")
    return number


def _wrapped(number: int) -> int:
    """What 64 bits hold of a number."""
    return (number + (1 << 63)) % (1 << 64) - (1 << 63)


def _named_zone_offset(seconds: int, zone: str) -> int:
    # Only an expression that names a time zone pays for these two.
    import datetime
    import zoneinfo

    if ".." in zone or zone[0] in "/\\":
        raise EvalError("time: invalid location name")
    if "\0" in zone:
        raise EvalError("invalid argument")
    try:
        plain = "/".join(part for part in zone.split("/") if part not in ("", "."))
        tz = zoneinfo.ZoneInfo(plain + "/" * zone.endswith("/"))
    except (zoneinfo.ZoneInfoNotFoundError, ValueError, OSError):
        raise EvalError(_why_unknown(zone, zoneinfo.TZPATH)) from None
    # A day's distance from the ends of the calendar, so that adding an offset cannot leave it.
    inside = min(max(seconds, MIN_SECONDS + _DAY), MAX_SECONDS - _DAY)
    utc = datetime.datetime(1970, 1, 1, tzinfo=tz) + datetime.timedelta(seconds=inside)
    offset = tz.fromutc(utc).utcoffset()
    return int(offset.total_seconds()) if offset is not None else 0


def _why_unknown(zone: str, places: tuple[str, ...]) -> str:
    """What Go says of a name under which there is no time zone: it opens the file, and tells what became of that."""
    for place in places:
        try:
            with open(f"{place}/{zone}", "rb") as file:
                file.read(1)
        except (FileNotFoundError, ValueError):
            continue
        except OSError as error:
            return (error.strerror or str(error)).lower()
        return "malformed time zone information"
    return f"unknown time zone {zone}"
