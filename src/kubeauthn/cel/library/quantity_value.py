"""Kubernetes' quantities: 100m, 1.5Gi, 2e3; read, printed and added as apimachinery does."""

from __future__ import annotations

from ..errors import EvalError, LimitError
from ..go_text import parse_int
from ..limits import MAX_QUANTITY_DIGITS, MAX_QUANTITY_POWER
from ..values import INT_MAX, INT_MIN, Opaque

__all__ = ["Quantity", "parse_quantity"]

DECIMAL, BINARY, EXPONENT = "DecimalSI", "BinarySI", "DecimalExponent"
_DECIMAL_SUFFIXES = {"n": -9, "u": -6, "m": -3, "": 0, "k": 3, "M": 6, "G": 9, "T": 12, "P": 15, "E": 18}
_BINARY_SUFFIXES = {"Ki": 10, "Mi": 20, "Gi": 30, "Ti": 40, "Pi": 50, "Ei": 60}
_DECIMAL_NAMES = {power: name for name, power in _DECIMAL_SUFFIXES.items()}
_BINARY_NAMES = {0: "", **{power: name for name, power in _BINARY_SUFFIXES.items()}}
_SUFFIX_LETTERS = frozenset("eEinumkKMGTP")
_DIGITS = frozenset("0123456789")
_NANO = -9
_FORMAT_ERROR = "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'"


class Quantity(Opaque):
    """number * 10**power. `is_big`: it did not fit 64 bits, and then it is no integer to anybody.

    `derived`: the result of a calculation, which Kubernetes does not take on the right of ==.
    """

    __slots__ = ("derived", "format", "is_big", "number", "power", "text")
    cel_type = "kubernetes.Quantity"
    cel_is_reference = True

    def __init__(
        self, number: int, power: int, format: str, *, is_big: bool = False, text: str = "", derived: bool = False
    ) -> None:
        self.number = number
        self.power = power
        self.format = format
        self.is_big = is_big
        self.text = text
        self.derived = derived

    def compare(self, other: Quantity) -> int:
        left, right, _ = _aligned(self.number, self.power, other.number, other.power)
        return (left > right) - (left < right)

    def cel_equals(self, other: Opaque) -> bool | None:
        if not isinstance(other, Quantity) or other.derived:
            return None
        return self.compare(other) == 0

    def plus(self, other: Quantity, sign: int = 1) -> Quantity:
        """The sum, or with sign -1 the difference. A zero takes the other's format."""
        format = other.format if self.number == 0 else self.format
        if not self.is_big and not other.is_big:
            # The smallest integer has no negative of 64 bits: Kubernetes then takes it as it is.
            term = other.number if sign > 0 or other.number == INT_MIN else -other.number
            if other.number == 0:
                return Quantity(self.number, self.power, format, derived=True)
            if self.number == 0:
                return Quantity(term, other.power, format, derived=True)
            left, right, power = _aligned(self.number, self.power, term, other.power)
            if all(INT_MIN <= number <= INT_MAX for number in (left, right, left + right)):
                return Quantity(left + right, power, format, derived=True)
        left, right, power = _aligned(self.number, self.power, sign * other.number, other.power)
        return Quantity(left + right, power, format, is_big=True, derived=True)

    def as_integer(self) -> int | None:
        if self.is_big or self.power < 0:
            return None
        number = self.number * 10**self.power
        return number if INT_MIN <= number <= INT_MAX else None

    def as_float(self) -> float:
        try:
            number = float(self.number)
        except OverflowError:
            number = float("inf") if self.number > 0 else float("-inf")
        if self.power == 0:
            return number
        return number * (float(f"1e{self.power}") if self.power < 309 else float("inf"))

    def __str__(self) -> str:
        if not self.text:
            self.text = self._canonical()
        return self.text

    def _canonical(self) -> str:
        if self.number == 0:
            return "0"
        if self.format == BINARY:
            integer, remainder = _split(self.number, self.power)
            if abs(integer) >= 1024 and not remainder:
                power = 0
                while integer % 1024 == 0:
                    integer //= 1024
                    power += 10
                return f"{integer}{_BINARY_NAMES.get(power, '')}"
        number, power = self.number, self.power
        while number % 10 == 0:
            number //= 10
            power += 1
        while power % 3:
            number *= 10
            power -= 1
        if self.format == EXPONENT:
            return f"{number}e{power}" if power else str(number)
        return f"{number}{_DECIMAL_NAMES.get(power, '')}"

    def __repr__(self) -> str:
        return f"Quantity({str(self)!r})"


def _aligned(left: int, left_power: int, right: int, right_power: int) -> tuple[int, int, int]:
    """Both numbers for the smaller power of ten, and that power."""
    power = min(left_power, right_power)
    return left * 10 ** (left_power - power), right * 10 ** (right_power - power), power


def _split(number: int, power: int) -> tuple[int, int]:
    """The whole part, cut towards zero, and what is left."""
    if power >= 0:
        return number * 10**power, 0
    whole, remainder = divmod(abs(number), 10**-power)
    return (-whole if number < 0 else whole), remainder


def _digits(text: str, at: int) -> int:
    while at < len(text) and text[at] in _DIGITS:
        at += 1
    return at


def _parts(text: str) -> tuple[str, str, str]:
    """The digits before the point without leading zeros, those behind it, and the suffix."""
    at = 1 if text[0] in "+-" else 0
    while at < len(text) and text[at] == "0":
        at += 1
    end = _digits(text, at)
    whole = text[at:end] or "0"
    at, fraction = end, ""
    if text[at : at + 1] == ".":
        end = _digits(text, at + 1)
        fraction = text[at + 1 : end]
        at = end
    suffix = text[at:]
    while at < len(text) and text[at] in _SUFFIX_LETTERS:
        at += 1
    if text[at : at + 1] in ("+", "-"):
        at += 1
    if _digits(text, at) != len(text):
        raise EvalError(_FORMAT_ERROR)
    return whole, fraction, suffix


def _interpret(suffix: str) -> tuple[int, str]:
    """The power of ten (or of two) that a suffix stands for, and the format it belongs to."""
    if suffix in _DECIMAL_SUFFIXES:
        return _DECIMAL_SUFFIXES[suffix], DECIMAL
    if suffix in _BINARY_SUFFIXES:
        return _BINARY_SUFFIXES[suffix], BINARY
    power = parse_int(suffix[1:]) if suffix[0] in "eE" and len(suffix) > 1 else None
    if power is None:
        raise EvalError("unable to parse quantity's suffix")
    return (power + (1 << 31)) % (1 << 32) - (1 << 31), EXPONENT  # Kubernetes keeps 32 bits of it


def parse_quantity(text: str) -> Quantity:
    """A quantity of its text. Raises EvalError."""
    if not text:
        raise EvalError(_FORMAT_ERROR)
    if text == "0":
        return Quantity(0, 0, DECIMAL, text=text)
    whole, fraction, suffix = _parts(text)
    power, format = _interpret(suffix)
    sign = -1 if text[0] == "-" else 1
    digits = whole + fraction
    if len(digits) > MAX_QUANTITY_DIGITS:
        raise LimitError(f"quantity of more than {MAX_QUANTITY_DIGITS} digits")
    if abs(power) > MAX_QUANTITY_POWER:
        if digits.strip("0"):
            raise LimitError(f"quantity with a power of ten beyond {MAX_QUANTITY_POWER}")
        power = min(max(power, -MAX_QUANTITY_POWER), MAX_QUANTITY_POWER)  # nothing is nothing, however often
    if format == BINARY:
        # How many digits surely fit is a rough guess, and which numbers count as small depends on it.
        if not fraction and 15 - len(whole) - int(power * 3 / 10) - 1 >= 0:
            number = int(digits) << power
            kept = power % 10 == 0 and int(digits) & 7
            return Quantity(sign * number, 0, format, text=text if kept else "")
        _check_digits(text, suffix)
        return _rounded(sign, int(digits or "0") << power, -len(fraction), format)
    if 18 - len(digits) >= 0 and power - len(fraction) >= _NANO:
        power -= len(fraction)
        kept = power % 3 == 0 and not digits.endswith("000") and digits[0] != "0"
        return Quantity(sign * int(digits), power, format, text=text if kept else "")
    _check_digits(text, suffix)
    return _rounded(sign, int(digits or "0"), power - len(fraction), format)


def _check_digits(text: str, suffix: str) -> None:
    """A suffix without a number is nothing, `Ki`; but not where the number is read by another function, `Ei`."""
    if not any(character in _DIGITS for character in text.removesuffix(suffix)):
        raise EvalError("unable to parse numeric part of quantity")


def _rounded(sign: int, number: int, power: int, format: str) -> Quantity:
    """A number beyond 64 bits or finer than nano: rounded up to whole nanos."""
    if number:
        if power >= _NANO:
            number *= 10 ** (power - _NANO)
        else:
            number = -(-number // 10 ** (_NANO - power))
        power = _NANO
    if format == BINARY:
        unit = 10**-power
        if number > INT_MAX * unit:
            number, power = INT_MAX, 0
        elif 0 < number < unit:
            format = DECIMAL
    return Quantity(sign * number, power, format, is_big=True)
