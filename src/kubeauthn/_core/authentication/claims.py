"""The claims of a token: read from its payload, and completed with those that other sources hold.

As in kube-apiserver every number is a double, the last of duplicate names wins, half a surrogate pair is U+FFFD, and a
number that is too large spoils only the claim that holds it.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from kubeauthn._core.authentication.claim_sources import NAMES, names_of, source_of
from kubeauthn._core.jose.exact_json import decode_exactly
from kubeauthn._core.jose.limits import JSON_DEPTH
from kubeauthn.cel.go_text import quote
from kubeauthn.cel.kubernetes import Claims
from kubeauthn.cel.large_numbers import first_too_large

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

_LARGEST = float.fromhex("0x1.fffffffffffffp+1023")
_DIGITS_OF_LARGEST = 309


class _NeedsExactReading(Exception):
    """The fast decoder met a number that no double holds."""


def _integer(text: str) -> float:
    if len(text) < _DIGITS_OF_LARGEST:
        return float(text)
    raise _NeedsExactReading


def _number(text: str) -> float:
    number = float(text)
    if -_LARGEST <= number <= _LARGEST:
        return number
    raise _NeedsExactReading


def _no_constant(text: str) -> None:
    raise ValueError(f"{text} is not JSON")


# `scan_once` is `decode` without its search for white space.
_scan = json.JSONDecoder(parse_float=_number, parse_int=_integer, parse_constant=_no_constant).scan_once  # type: ignore[attr-defined]


def read_claims(payload: bytes) -> dict[str, Any]:
    """The claims in a payload. Raises ValueError for what is no JSON object."""
    try:
        text = payload.decode()
        # How deep the fast decoder goes hangs on the interpreter, and on what else it does at the moment.
        if len(text) > 2 * JSON_DEPTH and text.count("[") + text.count("{") > JSON_DEPTH:
            return _read_exactly(payload)
        decoded, end = _scan(text, 0)
        if end != len(text) and text[end:].strip(" \t\r\n"):
            raise ValueError("there is more after the claims")
        # a lone surrogate can only be written as an escape
        if "\\" in text and ("\\ud" in text or "\\uD" in text):
            return _read_exactly(payload)
    except StopIteration:  # white space comes first, or nothing that JSON begins with
        rest = payload.lstrip(b" \t\r\n")
        if len(rest) == len(payload):
            raise ValueError("claims are not JSON") from None
        return read_claims(rest)
    except (_NeedsExactReading, RecursionError, UnicodeDecodeError):
        return _read_exactly(payload)
    if type(decoded) is not dict:
        raise ValueError("claims are no JSON object")
    return decoded


def _read_exactly(payload: bytes) -> dict[str, Any]:
    # Each byte that is no UTF-8 becomes one U+FFFD: an escaped byte is a lone surrogate.
    decoded = decode_exactly(payload.decode("utf-8", "surrogateescape"))
    if not isinstance(decoded, dict):
        raise ValueError("claims are no JSON object")
    faults = _faults(decoded)
    return Claims(decoded, faults) if faults else decoded


def _faults(values: dict[str, Any]) -> dict[str, str]:
    """What is said of the claims that hold a number too large, by their names."""
    numbers = {name: number for name, value in values.items() if (number := first_too_large(value)) is not None}
    return {
        name: f"claim {quote(name)} failed to unmarshal: "
        f"json: cannot unmarshal number {number} into Go value of type float64"
        for name, number in numbers.items()
    }


class ClaimNeeded(Exception):
    """Deciding stopped at a claim that another source holds. Fetch it from there, and decide again with it."""

    def __init__(self, name: str, claims: dict[str, Any]) -> None:
        super().__init__(name)
        self.name = name
        self.claims = claims
        """What the token holds: where the claim is, too."""
        self.issuer = ""
        """The configured issuer of the token."""


class SourcedClaims(Claims):
    """Claims of which some are elsewhere (OpenID Connect Core 5.6.2): whoever first asks for one gets ClaimNeeded."""

    __slots__ = ("elsewhere",)

    def __init__(self, values: dict[str, Any], faults: dict[str, str], elsewhere: Iterable[str]) -> None:
        super().__init__(values, faults)
        self.elsewhere = frozenset(elsewhere)

    def __contains__(self, name: object) -> bool:
        if super().__contains__(name):
            return True
        if name in self.elsewhere:
            raise ClaimNeeded(str(name), self)
        return False

    def __missing__(self, name: str) -> Any:
        if name in self.elsewhere:
            raise ClaimNeeded(name, self)
        raise KeyError(name)


def with_sources(claims: dict[str, Any], fetched: Mapping[str, Any]) -> dict[str, Any]:
    """The claims, with those that were fetched, and with a stop at each that still would have to be.

    Nothing that the token itself holds is ever taken from elsewhere.
    """
    if NAMES not in claims:
        return claims
    elsewhere = [name for name in names_of(claims) if source_of(claims, name) is not None]
    if not elsewhere:
        return claims
    got = {name: fetched[name] for name in elsewhere if name in fetched}
    return SourcedClaims({**claims, **got}, {**getattr(claims, "faults", {}), **_faults(got)}, elsewhere)
