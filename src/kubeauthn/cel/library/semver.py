"""Kubernetes' semantic versions: semver, isSemver, major, compareTo and their like."""

from __future__ import annotations

from ..errors import EvalError
from ..go_text import parse_uint, quote
from ..overloads import Overload
from ..values import INT_MAX, Opaque
from . import costs

__all__ = ["LATEST", "OVERLOADS", "TYPES", "Semver", "overloads"]

TYPES = ("kubernetes.Semver",)
LATEST = 1
_DIGITS = frozenset("0123456789")
_ALPHANUMERIC = frozenset("0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ-")


class Semver(Opaque):
    """A semantic version. Build metadata is kept, and counts for nothing in comparisons."""

    __slots__ = ("build", "numbers", "prerelease")
    cel_type = "kubernetes.Semver"

    def __init__(
        self, numbers: tuple[int, int, int], prerelease: tuple[int | str, ...], build: tuple[str, ...]
    ) -> None:
        self.numbers = numbers
        self.prerelease = prerelease
        self.build = build

    def order(self) -> tuple[object, ...]:
        """What versions are compared by: numbers before words, and a release after its pre-releases."""
        parts = tuple((0, part, "") if isinstance(part, int) else (1, 0, part) for part in self.prerelease)
        return (self.numbers, not parts, parts)

    def cel_equals(self, other: Opaque) -> bool:
        return isinstance(other, Semver) and self.order() == other.order()

    def __str__(self) -> str:
        text = ".".join(str(number) for number in self.numbers)
        if self.prerelease:
            text += "-" + ".".join(str(part) for part in self.prerelease)
        if self.build:
            text += "+" + ".".join(self.build)
        return text

    def __repr__(self) -> str:
        return f"Semver({str(self)!r})"


def _number(text: str) -> int:
    number = parse_uint(text)
    if number is None:
        fault = "value out of range" if text else "invalid syntax"
        raise EvalError(f"strconv.ParseUint: parsing {quote(text)}: {fault}")
    return number


def _core_number(text: str, name: str) -> int:
    if not _DIGITS.issuperset(text):
        raise EvalError(f"Invalid character(s) found in {name} number {quote(text)}")
    if len(text) > 1 and text[0] == "0":
        raise EvalError(f"{name.capitalize()} number must not contain leading zeroes {quote(text)}")
    return _number(text)


def _prerelease_part(text: str) -> int | str:
    if not text:
        raise EvalError("Prerelease is empty")
    if _DIGITS.issuperset(text):
        if len(text) > 1 and text[0] == "0":
            raise EvalError(f"Numeric PreRelease version must not contain leading zeroes {quote(text)}")
        return _number(text)
    if not _ALPHANUMERIC.issuperset(text):
        raise EvalError(f"Invalid character(s) found in prerelease {quote(text)}")
    return text


def _build_part(text: str) -> str:
    if not text:
        raise EvalError("Build meta data is empty")
    if not _ALPHANUMERIC.issuperset(text):
        raise EvalError(f"Invalid character(s) found in build meta data {quote(text)}")
    return text


def _parse(text: str) -> Semver:
    if not text:
        raise EvalError("Version string empty")
    parts = text.split(".", 2)
    if len(parts) != 3:
        raise EvalError("No Major.Minor.Patch elements found")
    major = _core_number(parts[0], "major")
    minor = _core_number(parts[1], "minor")
    rest, plus, build = parts[2].partition("+")
    patch_text, dash, prerelease = rest.partition("-")
    patch = _core_number(patch_text, "patch")
    return Semver(
        (major, minor, patch),
        tuple(_prerelease_part(part) for part in prerelease.split(".")) if dash else (),
        tuple(_build_part(part) for part in build.split(".")) if plus else (),
    )


def _normalized(text: str) -> str:
    """A loose version made strict: v1.02 becomes 1.2.0."""
    parts = text.removeprefix("v").split(".", 2)
    for position, part in enumerate(parts):
        if len(part.encode("utf-8", "replace")) > 1:
            stripped = part.lstrip("0")
            parts[position] = stripped if stripped[:1] in _DIGITS else "0" + stripped
    if len(parts) < 3:
        if "+" in parts[-1] or "-" in parts[-1]:
            raise EvalError("short version cannot contain PreRelease/Build meta data")
        parts += ["0"] * (3 - len(parts))
    return ".".join(parts)


def _to_semver(text: str, normalize: bool = False) -> Semver:
    return _parse(_normalized(text) if normalize else text)


def _is_semver(text: str, normalize: bool = False) -> bool:
    try:
        _to_semver(text, normalize)
    except EvalError:
        return False
    return True


def _signed(number: int) -> int:
    """Unsigned 64 bits taken for signed ones, as Go's conversion does."""
    return number if number <= INT_MAX else number - (1 << 64)


def _major(version: Semver) -> int:
    return _signed(version.numbers[0])


def _minor(version: Semver) -> int:
    return _signed(version.numbers[1])


def _patch(version: Semver) -> int:
    return _signed(version.numbers[2])


def _compare(left: Semver, right: Semver) -> int:
    one, two = left.order(), right.order()
    return (one > two) - (one < two)


def _is_greater(left: Semver, right: Semver) -> bool:
    return _compare(left, right) > 0


def _is_less(left: Semver, right: Semver) -> bool:
    return _compare(left, right) < 0


_V = "kubernetes.Semver"
_SCAN = costs.first_scan

_FIRST_VERSION = (
    Overload("string_to_semver", "semver", ("string",), _V, _to_semver, cost=_SCAN, cost_by_name=True),
    Overload("is_semver_string", "isSemver", ("string",), "bool", _is_semver, cost=_SCAN, cost_by_name=True),
    Overload("semver_is_greater_than", "isGreaterThan", (_V, _V), "bool", _is_greater, member=True),
    Overload("semver_is_less_than", "isLessThan", (_V, _V), "bool", _is_less, member=True),
    Overload("semver_compare_to", "compareTo", (_V, _V), "int", _compare, member=True),
    Overload("semver_major", "major", (_V,), "int", _major, member=True),
    Overload("semver_minor", "minor", (_V,), "int", _minor, member=True),
    Overload("semver_patch", "patch", (_V,), "int", _patch, member=True),
)
_SINCE_1 = (
    Overload("string_bool_to_semver", "semver", ("string", "bool"), _V, _to_semver, cost=_SCAN, cost_by_name=True),
    Overload(
        "is_semver_string_bool", "isSemver", ("string", "bool"), "bool", _is_semver, cost=_SCAN, cost_by_name=True
    ),
)


def overloads(version: int) -> tuple[Overload, ...]:
    """The library as it was in that version."""
    return (*_FIRST_VERSION, *_SINCE_1) if version >= 1 else _FIRST_VERSION


OVERLOADS = overloads(LATEST)
