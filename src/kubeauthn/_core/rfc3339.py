"""RFC 3339 times, as Kubernetes' `metav1.Time` reads and writes them.

By hand, because `datetime.fromisoformat` accepts week dates, basic formats and missing
offsets, which Kubernetes refuses.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

_DIGITS = frozenset("0123456789")


def parse(text: str) -> float:
    """Unix seconds. Raises ValueError for anything but `2006-01-02T15:04:05[.fraction](Z|±hh:mm)`."""
    if len(text) < 20 or any(text[at] != mark for at, mark in ((4, "-"), (7, "-"), (10, "T"), (13, ":"), (16, ":"))):
        raise ValueError("not an RFC 3339 time")
    year, month, day = _number(text[0:4]), _number(text[5:7]), _number(text[8:10])
    hour, minute, second = _number(text[11:13]), _number(text[14:16]), _number(text[17:19])
    rest = text[19:]
    fraction = 0.0
    if rest[0] in ".,":
        digits = rest[1 : len(rest) - len(rest[1:].lstrip("0123456789"))]
        if not digits:
            raise ValueError("not an RFC 3339 time")
        fraction = float(f"0.{digits[:9]}")
        rest = rest[1 + len(digits) :]
    offset = _offset(rest)
    try:
        moment = datetime(year, month, day, hour, minute, second, tzinfo=UTC)
        return (moment - timedelta(minutes=offset)).timestamp() + fraction
    except OverflowError:
        raise ValueError("not a time of our calendar") from None


def format(seconds: float) -> str:
    """Whole seconds in UTC, as Kubernetes writes them."""
    moment = datetime.fromtimestamp(int(seconds), UTC)
    return moment.replace(tzinfo=None).isoformat() + "Z"  # strftime writes the year 1, Go's zero time, with one digit


def _number(digits: str) -> int:
    # int() alone would take "+1", " 1", "1_0" and other scripts' digits.
    if not _DIGITS.issuperset(digits):
        raise ValueError("not an RFC 3339 time")
    return int(digits)


def _offset(text: str) -> int:
    if text == "Z":
        return 0
    if len(text) != 6 or text[0] not in "+-" or text[3] != ":":
        raise ValueError("not an RFC 3339 time")
    hours, minutes = _number(text[1:3]), _number(text[4:6])
    if hours > 24 or minutes > 59:
        raise ValueError("not an RFC 3339 time")
    return (hours * 60 + minutes) * (-1 if text[0] == "-" else 1)
