"""The environments of Kubernetes' structured authentication.

    claims = decode_claims(raw_json)
    program = claims_environment("1.36").compile("claims.username + ':external'")
    program(claims=claims)

`claims` is a map of string to any, not dyn; its values are lazy in Kubernetes, which shows: `"x" in claims` and
`size(claims)` have no overload, and a loop over `claims` yields the values. Every JSON number is a double.
"""

from __future__ import annotations

import json
from typing import Any

from .environment import Environment
from .errors import CelError, EvalError
from .go_text import quote
from .large_numbers import TooLarge, first_too_large
from .libraries import KUBERNETES_LIBRARIES
from .overloads import Overload
from .quirks import Quirks
from .types import ANY, DURATION, TIMESTAMP

__all__ = ["LATEST", "OLDEST", "Claims", "claims_environment", "decode_claims", "libraries_of", "user_environment"]

OLDEST, LATEST = 28, 37
_FIRST_VALIDATING = 29
_FIRST_WITH_LISTS = 34
_FIRST_OF_NEW_NAME_RULES = 35
_FIRST_OF_NEW_CEL_GO = 37
"""1.37 has cel-go 0.29, 1.34 to 1.36 have 0.26."""
_USER = "kubernetes.UserInfo"
_HIDDEN_TYPES = (
    *(f"kubernetes.{name}" for name in ("NamedFormat", "Quantity", "Semver", "URL")),
    *(
        f"kubernetes.authorization.{name}"
        for name in ("Authorizer", "Decision", "GroupCheck", "PathCheck", "ResourceCheck")
    ),
)
_environments: dict[tuple[str, int], Environment] = {}


def claims_environment(version: str = f"1.{LATEST}") -> Environment:
    """For claim mappings and claim validation rules: the variable is `claims`, as `decode_claims` makes it."""
    return _environment("claims", _minor(version))


def user_environment(version: str = f"1.{LATEST}") -> Environment:
    """For user validation rules: the variable is `user`, a dict with username, uid, groups and extra."""
    return _environment("user", _minor(version))


def libraries_of(version: str) -> list[str]:
    """The libraries of a Kubernetes version."""
    minor = _minor(version)
    return [name for name, first, end in KUBERNETES_LIBRARIES if first <= minor < end]


def _minor(version: str) -> int:
    major, _, minor = version.removeprefix("v").partition(".")
    number = minor.partition(".")[0]
    if major != "1" or not number.isdigit() or not OLDEST <= int(number) <= LATEST:
        raise CelError(f"Kubernetes 1.{OLDEST} to 1.{LATEST} are known, not {version!r}")
    return int(number)


def _environment(variable: str, minor: int) -> Environment:
    found = _environments.get((variable, minor))
    if found is None:
        found = _environments[(variable, minor)] = _make(variable, minor)
    return found


def _make(variable: str, minor: int) -> Environment:
    claims = variable == "claims"
    return Environment(
        {"claims": "map(string, any)"} if claims else {"user": _USER},
        libraries_of(f"1.{minor}"),
        types=None
        if claims
        else {
            _USER: {
                "username": "string",
                "uid": "string",
                "groups": "list(string)",
                "extra": "map(string, list(string))",
            }
        },
        strict_literals=minor < _FIRST_VALIDATING,
        validate_literals=minor >= _FIRST_VALIDATING,
        quirks=Quirks(
            lazy={"claims": "kubernetes.claims"} if claims else {"user": _USER},
            escaped_names=True,
            free_has=True,
            cel_go=True,
            old_cel_go=minor < _FIRST_OF_NEW_CEL_GO,
            names_matches=minor >= _FIRST_WITH_LISTS,
            hidden_types=_HIDDEN_TYPES,
            overloads=_old_functions(minor) if minor < _FIRST_OF_NEW_CEL_GO else (),
            undefined_types={"timestamp": TIMESTAMP, "duration": DURATION, "google.protobuf.Any": ANY},
        ),
    )


def _old_functions(minor: int) -> tuple[Overload, ...]:
    from .library import basics, conversions, lists, named_formats, strings  # imported when an environment has them

    old: tuple[Overload, ...] = (*basics.OLD_OVERLOADS, *strings.OLD_OVERLOADS, conversions.OLD_DURATION)
    if minor >= _FIRST_WITH_LISTS:
        old += lists.OLD_OVERLOADS
    if minor < _FIRST_OF_NEW_NAME_RULES and "kubernetes.format" in libraries_of(f"1.{minor}"):
        old += named_formats.OLD_OVERLOADS
    return old


class Claims(dict[str, Any]):
    """Claims of which some cannot be read: they fail when an expression asks for them, not before."""

    __slots__ = ("faults",)

    def __init__(self, values: dict[str, object], faults: dict[str, str]) -> None:
        super().__init__(values)
        self.faults = faults

    def __getitem__(self, key: str) -> Any:
        fault = self.faults.get(key)
        if fault is not None:
            raise EvalError(fault)
        return super().__getitem__(key)

    def values(self) -> Any:
        """Fails at the first claim that cannot be read."""
        return [self[key] for key in self]

    def get(self, key: str, default: Any = None) -> Any:
        return self[key] if key in self else default  # noqa: SIM401 - this is that method


def decode_claims(raw: str | bytes) -> dict[str, Any]:
    """The claims of a token's payload as CEL values. Raises CelError for what is no JSON object.

    A claim whose numbers do not fit a double is kept as a fault, as Kubernetes keeps it.
    """
    try:
        text = raw if isinstance(raw, str) else raw.decode("utf-8")
        # `scan_once` is `decode` without its search for white space
        decoded, end = _scan(text, 0)
        if end == len(text) and type(decoded) is dict and "\\u" not in text:
            return decoded
    except (StopIteration, ValueError, RecursionError):
        pass  # what is not plainly in order takes longer
    return _decode(raw)


def _decode(raw: str | bytes) -> dict[str, Any]:
    try:
        text = raw if isinstance(raw, str) else raw.decode("utf-8")
        try:
            decoded, exact = _DECODER.decode(text), False
        except _TooLargeError:
            decoded, exact = _EXACT_DECODER.decode(text), True
    except (ValueError, RecursionError) as error:
        raise CelError(f"claims are not JSON: {error}") from None
    if decoded is None:
        return {}  # as Go reads null into a map
    if not isinstance(decoded, dict):
        raise CelError(f"claims have to be a JSON object, not {type(decoded).__name__}")
    if "\\ud" in text or "\\uD" in text:
        decoded = _replace_surrogates(decoded)
    return _with_faults(decoded) if exact else decoded


class _TooLargeError(ValueError):
    """There is a number that no double can hold."""


def _number(text: str) -> float | TooLarge:
    number = float(text)
    return number if -_LARGEST <= number <= _LARGEST else TooLarge(text)


def _finite(text: str) -> float:
    number = float(text)
    if -_LARGEST <= number <= _LARGEST:
        return number
    raise _TooLargeError


def _no_constant(text: str) -> None:
    raise ValueError(f"{text} is not JSON")


_LARGEST = float.fromhex("0x1.fffffffffffffp+1023")
_DECODER = json.JSONDecoder(parse_float=_finite, parse_int=_finite, parse_constant=_no_constant)
_scan = _DECODER.scan_once  # type: ignore[attr-defined]
_EXACT_DECODER = json.JSONDecoder(parse_float=_number, parse_int=_number, parse_constant=_no_constant)


def _replace_surrogates(value: Any) -> Any:
    """Half of a surrogate pair is no character: Go reads it as U+FFFD."""
    if isinstance(value, str):
        if type(value) is TooLarge:
            return value
        return "".join("\ufffd" if "\ud800" <= char <= "\udfff" else char for char in value)
    if isinstance(value, dict):
        return {_replace_surrogates(key): _replace_surrogates(element) for key, element in value.items()}
    if isinstance(value, list):
        return [_replace_surrogates(element) for element in value]
    return value


def _with_faults(decoded: dict[str, Any]) -> dict[str, Any]:
    faults = {}
    for name, value in decoded.items():
        number = first_too_large(value)
        if number is not None:
            faults[name] = (
                f"claim {quote(name)} failed to unmarshal: "
                f"json: cannot unmarshal number {number} into Go value of type float64"
            )
    return Claims(decoded, faults) if faults else decoded
