"""Times as Go prints them, for any year: a token may say that it ends in the year 5138 or 58 million."""

from __future__ import annotations

_DAY = 86400
_DAYS_BEFORE_1970 = 719468  # from 1 March of the year 0
_DAYS_OF_ERA = 146097  # 400 years

ZERO_TIME = "0001-01-01 00:00:00 +0000 UTC"
"""What Go prints for a time that was never set."""

LARGEST_SECONDS = 9223371974719179007
"""Go counts from the year 1 in 64 bits: later times wrap around to long ago."""

_FIRST = -9223372028741760000
"""Go's calendar begins on 1 March of the year -292277022400, and what is before that is at its end."""


def go_time(seconds: float) -> str:
    """Unix seconds as Go prints a time in UTC: `2023-11-14 22:13:20 +0000 UTC`."""
    if not -(2**63) <= seconds < 2**63:
        seconds = -(2**63)  # what the processor makes of a double that 64 bits do not hold
    whole = int(seconds // 1)
    days, rest = divmod(whole if whole >= _FIRST else whole + 2**64, _DAY)
    year, month, day = _civil(days)
    shown_year = f"{year:04d}" if year >= 0 else f"-{-year:04d}"
    fraction = f"{seconds - whole:.9f}"[1:].rstrip("0").rstrip(".") if seconds != whole else ""
    clock = f"{rest // 3600:02d}:{rest // 60 % 60:02d}:{rest % 60:02d}"
    return f"{shown_year}-{month:02d}-{day:02d} {clock}{fraction} +0000 UTC"


def _civil(days: int) -> tuple[int, int, int]:
    """Year, month and day of a count of days since 1970. Years begin in March here, so a leap day is their last."""
    era, day_of_era = divmod(days + _DAYS_BEFORE_1970, _DAYS_OF_ERA)
    year_of_era = (day_of_era - day_of_era // 1460 + day_of_era // 36524 - day_of_era // 146096) // 365
    day_of_year = day_of_era - (365 * year_of_era + year_of_era // 4 - year_of_era // 100)
    month_from_march = (5 * day_of_year + 2) // 153
    day = day_of_year - (153 * month_from_march + 2) // 5 + 1
    month = month_from_march + 3 if month_from_march < 10 else month_from_march - 9
    return year_of_era + 400 * era + (month <= 2), month, day
