"""The values of literals."""

from __future__ import annotations

from .unescape import unescape_bytes, unescape_string
from .values import UInt

__all__ = ["literal_value"]

_INFINITY = float("inf")
_WORDS = {"true": True, "false": False, "null": None}


def literal_value(kind: str, text: str) -> object:
    """The value of a token. Raises ValueError with the message for the user."""
    if kind == "STRING":
        return unescape_string(text)
    if kind == "BYTES":
        return unescape_bytes(text)
    if kind == "INT":
        number = _integer(text)
        if number is None or not -(1 << 63) <= number < 1 << 63:
            raise ValueError("invalid int literal")
        return number
    if kind == "UINT":
        number = _integer(text[:-1])
        if number is None or number >= 1 << 64:
            raise ValueError("invalid uint literal")
        return UInt(number)
    if kind == "FLOAT":
        double = float(text)
        if double in (_INFINITY, -_INFINITY):
            raise ValueError("invalid double literal")
        return double
    return _WORDS[kind]


def _integer(text: str) -> int | None:
    """An integer literal; None when it is longer than any that could fit."""
    negative = text.startswith("-")
    digits = text[1:] if negative else text
    base = 10
    if digits.startswith("0x"):
        digits, base = digits[2:], 16
    if len(digits.lstrip("0")) > 20:
        return None
    number = int(digits, base)
    return -number if negative else number
