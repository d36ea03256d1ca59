"""Numbers and strings written and read the way Go does it: what CEL prints is what Go prints."""

from __future__ import annotations

__all__ = [
    "format_fixed",
    "go_format_double",
    "is_decimal",
    "parse_bool",
    "parse_double",
    "parse_int",
    "parse_uint",
    "quote",
]

_EXPONENT_FROM = 6  # the power of ten at which %g turns to an exponent
_DIGITS = frozenset("0123456789")
_HEX_DIGITS = frozenset("0123456789abcdefABCDEF")


def _shortest(number: float) -> tuple[str, str, int]:
    """The sign, the shortest decimal digits that read back as this number, and where the point is among them."""
    text = repr(number)
    sign = "-" if text.startswith("-") else ""
    mantissa, _, exponent = text.lstrip("-").partition("e")
    whole, _, fraction = mantissa.partition(".")
    point = len(whole) + (int(exponent) if exponent else 0)
    digits = whole + fraction
    stripped = digits.lstrip("0")
    point -= len(digits) - len(stripped)
    stripped = stripped.rstrip("0")
    return (sign, stripped, point) if stripped else (sign, "0", 1)


def _not_finite(number: float) -> str:
    if number != number:
        return "NaN"
    if number in (float("inf"), float("-inf")):
        return "+Inf" if number > 0 else "-Inf"
    return ""


def go_format_double(number: float) -> str:
    """A double as Go's %g prints it: 1.5, 1e+06, 1.7000864e+09, NaN, +Inf."""
    special = _not_finite(number)
    if special:
        return special
    sign, digits, point = _shortest(number)
    exponent = point - 1
    if -4 <= exponent < _EXPONENT_FROM:
        return sign + _plain(digits, point)
    fraction = "." + digits[1:] if len(digits) > 1 else ""
    return f"{sign}{digits[0]}{fraction}e{'-' if exponent < 0 else '+'}{abs(exponent):02d}"


def _plain(digits: str, point: int) -> str:
    if point <= 0:
        return "0." + "0" * -point + digits
    if point >= len(digits):
        return digits + "0" * (point - len(digits))
    return digits[:point] + "." + digits[point:]


def format_fixed(number: float) -> str:
    """A double with as many digits as it takes, and never an exponent."""
    special = _not_finite(number)
    if special:
        return special
    sign, digits, point = _shortest(number)
    return sign + _plain(digits, point)


def parse_int(text: str) -> int | None:
    """A decimal integer of 64 bits, or None."""
    digits = text[1:] if text[:1] in ("+", "-") else text
    significant = digits.lstrip("0")
    if not is_decimal(digits) or len(significant) > 19:
        return None
    number = int(significant or "0")
    if text[0] == "-":
        number = -number
    return number if -(1 << 63) <= number < 1 << 63 else None


def parse_uint(text: str) -> int | None:
    """A decimal unsigned integer of 64 bits, or None. It has no sign."""
    significant = text.lstrip("0")
    if not is_decimal(text) or len(significant) > 20:
        return None
    number = int(significant or "0")
    return number if number < 1 << 64 else None


def is_decimal(text: str) -> bool:
    """Whether it has digits, and nothing else."""
    return text != "" and _DIGITS.issuperset(text)


def parse_bool(text: str) -> bool | None:
    """One of the words that Go takes for a truth value, or None."""
    if text in ("1", "t", "T", "true", "TRUE", "True"):
        return True
    if text in ("0", "f", "F", "false", "FALSE", "False"):
        return False
    return None


def parse_double(text: str) -> float | None:
    """A double as Go reads it, or None. Too large is no number, and Python's liberties with spaces are not taken."""
    if "_" in text:
        if not _underscores_separate_digits(text):
            return None
        text = text.replace("_", "")
    unsigned = text[1:] if text[:1] in ("+", "-") else text
    lowered = unsigned.lower()
    if lowered in ("inf", "infinity"):
        return float("-inf") if text[0] == "-" else float("inf")
    if text.lower() == "nan":
        return float("nan")
    if lowered.startswith("0x"):
        return _parse_hex_double(text, lowered[2:])
    mantissa, letter, exponent = lowered.partition("e")
    if not _is_mantissa(mantissa, _DIGITS) or (letter and not _is_exponent(exponent)):
        return None
    number = float(text)
    return None if number in (float("inf"), float("-inf")) else number


def _underscores_separate_digits(text: str) -> bool:
    lowered = text.lower().lstrip("+-")
    is_hex = lowered.startswith("0x")
    digits = _HEX_DIGITS if is_hex else _DIGITS
    # After the prefix of a hexadecimal number an underscore is in its place too.
    body = "0" + lowered[2:] if is_hex else lowered
    return all(
        character != "_" or (body[at - 1 : at] in digits and body[at + 1 : at + 2] in digits)
        for at, character in enumerate(body)
    )


def _is_mantissa(text: str, digits: frozenset[str]) -> bool:
    whole, _, fraction = text.partition(".")
    return whole + fraction != "" and digits.issuperset(whole) and digits.issuperset(fraction)


def _is_exponent(text: str) -> bool:
    return is_decimal(text[1:] if text[:1] in ("+", "-") else text)


def _parse_hex_double(text: str, lowered: str) -> float | None:
    mantissa, letter, exponent = lowered.partition("p")
    if not letter or not _is_exponent(exponent) or not _is_mantissa(mantissa, _HEX_DIGITS):
        return None
    try:
        return float.fromhex(text)
    except OverflowError:
        return None


_ESCAPES = {"\a": "\\a", "\b": "\\b", "\f": "\\f", "\n": "\\n", "\r": "\\r", "\t": "\\t", "\v": "\\v"}


def quote(text: str) -> str:
    """A string in double quotes, as Go's %q prints it."""
    if text.isascii() and text.isprintable() and '"' not in text and "\\" not in text:
        return f'"{text}"'
    return '"' + "".join(_quoted(character) for character in text) + '"'


def _quoted(character: str) -> str:
    if character in '"\\':
        return "\\" + character
    if character.isprintable():
        return character
    escape = _ESCAPES.get(character)
    if escape is not None:
        return escape
    code = ord(character)
    if code < 0x80:
        return f"\\x{code:02x}"
    return f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"
