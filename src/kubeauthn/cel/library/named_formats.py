"""Kubernetes' named formats: format.dns1123Label().validate(text)."""

from __future__ import annotations

from collections.abc import Callable
from math import ceil
from typing import Any

from .. import regex
from ..go_time import parse_timestamp
from ..overloads import Overload
from ..values import NONE, Opaque, Optional, size_of
from . import costs, name_rules
from .url_value import URLError, check_request_uri

__all__ = ["OVERLOADS", "TYPES", "Format"]

TYPES = ("kubernetes.NamedFormat",)
_UUID = "(?i)^[0-9a-f]{8}-?[0-9a-f]{4}-?[0-9a-f]{4}-?[0-9a-f]{4}-?[0-9a-f]{12}$"
_BASE64 = "^(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=|[A-Za-z0-9+/]{4})$"
_TIME = "^([0-9]{2}):([0-9]{2}):([0-9]{2})(.[0-9]+)?(z|([+-][0-9]{2}:[0-9]{2}))$"

Validator = Callable[[str], list[str]]


class Format(Opaque):
    """A format with a name. `pattern_size` is what its cost is reckoned with."""

    __slots__ = ("name", "pattern_size", "validate")
    cel_type = "kubernetes.NamedFormat"

    def __init__(self, name: str, validate: Validator, pattern_size: int) -> None:
        self.name = name
        self.validate = validate
        self.pattern_size = pattern_size

    def cel_equals(self, other: Opaque) -> bool:
        return isinstance(other, Format) and other.name == self.name

    def __str__(self) -> str:
        return self.name

    def __repr__(self) -> str:
        return f"Format({self.name!r})"


def _uri(text: str) -> list[str]:
    try:
        check_request_uri(text)
    except URLError as error:
        return [str(error)]
    return []


def _uuid(text: str) -> list[str]:
    return [] if regex.matches(text, _UUID) else ["does not match the UUID format"]


def _byte(text: str) -> list[str]:
    return [] if regex.matches(text, _BASE64) else ["invalid base64"]


def _is_date(text: str) -> bool:
    # The end is given, so only a date can make it a time; year 0 is out of a timestamp's range but a date.
    if not text or not text[-1].isascii() or len(text) != 10:
        return False
    year = "0004" if text[:4] == "0000" else text[:4]
    return parse_timestamp(f"{year}{text[4:]}T00:00:00Z") is not None


def _date(text: str) -> list[str]:
    return [] if _is_date(text) else ["invalid date"]


def _datetime(text: str) -> list[str]:
    day, letter, time = text.lower().partition("t")
    time = time.partition("t")[0]
    if not letter or not _is_date(day) or not regex.matches(time, _TIME):
        return ["invalid datetime"]
    return [] if time[0:2] <= "23" and time[3:5] <= "59" and time[6:8] <= "59" else ["invalid datetime"]


def _prefixed(rule: Validator) -> Validator:
    return lambda text: rule(name_rules.masked(text))


_FORMATS = {
    "dns1123Label": Format("DNS1123Label", name_rules.dns1123_label, 30),
    "dns1123Subdomain": Format("DNS1123Subdomain", name_rules.dns1123_subdomain, 60),
    "dns1035Label": Format("DNS1035Label", name_rules.dns1035_label, 30),
    "qualifiedName": Format("QualifiedName", name_rules.label_key, 60),
    "dns1123LabelPrefix": Format("DNS1123LabelPrefix", _prefixed(name_rules.dns1123_label), 30),
    "dns1123SubdomainPrefix": Format("DNS1123SubdomainPrefix", _prefixed(name_rules.dns1123_subdomain), 60),
    "dns1035LabelPrefix": Format("DNS1035LabelPrefix", _prefixed(name_rules.dns1035_label), 30),
    "labelValue": Format("LabelValue", name_rules.label_value, 40),
    "uri": Format("URI", _uri, 1103),
    "uuid": Format("uuid", _uuid, len(_UUID)),
    "byte": Format("byte", _byte, 84),
    "date": Format("date", _date, len(_TIME)),
    "datetime": Format("datetime", _datetime, len(_TIME)),
}


# Until 1.34 some texts are other ones.
_OLD_FORMATS = _FORMATS | {
    "qualifiedName": Format(
        "QualifiedName", lambda text: name_rules.label_key(text, "a qualified name", "characters"), 60
    ),
    "labelValue": Format("LabelValue", lambda text: name_rules.label_value(text, "characters"), 40),
}


def _named(name: str) -> Optional:
    found = _FORMATS.get(name)
    return NONE if found is None else Optional(found)


def _old_named(name: str) -> Optional:
    found = _OLD_FORMATS.get(name)
    return NONE if found is None else Optional(found)


def _validate(named: Format, text: str) -> Optional:
    faults = named.validate(text)
    return Optional(faults) if faults else NONE


def _validate_cost(arguments: tuple[Any, ...], result: object) -> int:
    named = arguments[0]
    if type(named) is not Format:  # what should have been one failed
        return 1
    text_cost = ceil((1.0 + size_of(arguments[1])) * costs.STRING_FACTOR)
    return text_cost * ceil(named.pattern_size * costs.PATTERN_FACTOR)


def _constant(value: Format) -> Callable[[], Format]:
    return lambda: value


_F = "kubernetes.NamedFormat"

OVERLOADS = (
    *(Overload(f"format.{name}", f"format.{name}", (), _F, _constant(value)) for name, value in _FORMATS.items()),
    Overload("format-named", "format.named", ("string",), f"optional_type({_F})", _named),
    Overload(
        "format-validate",
        "validate",
        (_F, "string"),
        "optional_type(list(string))",
        _validate,
        member=True,
        cost=_validate_cost,
    ),
)
OLD_OVERLOADS = (
    *(
        Overload(f"format.{name}", f"format.{name}", (), _F, _constant(_OLD_FORMATS[name]))
        for name in ("qualifiedName", "labelValue")
    ),
    Overload("format-named", "format.named", ("string",), f"optional_type({_F})", _old_named),
)
