"""Kubernetes' rules for names, label keys and label values, with their texts."""

from __future__ import annotations

from .. import regex

__all__ = ["dns1035_label", "dns1123_label", "dns1123_subdomain", "label_key", "label_value", "masked"]

_LABEL = "[a-z0-9]([-a-z0-9]*[a-z0-9])?"
_SUBDOMAIN = f"{_LABEL}(\\.{_LABEL})*"
_LABEL_1035 = "[a-z]([-a-z0-9]*[a-z0-9])?"
_KEY = "([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]"
_VALUE = f"({_KEY})?"


def masked(text: str) -> str:
    """A name that is only the beginning of one: the dash at its end will be followed by something."""
    encoded = text.encode("utf-8", "replace")
    if len(encoded) > 1 and encoded.endswith(b"-"):
        return encoded[:-2].decode("utf-8", "replace") + "a"
    return text


def _fits(pattern: str, text: str) -> bool:
    return regex.matches(text, f"^{pattern}$")


def _rule(text: str, pattern: str, *examples: str) -> str:
    shown = " or ".join(f"'{example}', " for example in examples)
    return f"{text} (e.g. {shown}regex used for validation is '{pattern}')"


def _is_longer(text: str, limit: int) -> bool:
    return len(text.encode("utf-8", "replace")) > limit


def dns1123_label(text: str) -> list[str]:
    faults = ["must be no more than 63 characters"] if _is_longer(text, 63) else []
    if not _fits(_LABEL, text):
        if _fits(_SUBDOMAIN, text):
            faults.append("must not contain dots")
        else:
            rule = (
                "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', "
                "and must start and end with an alphanumeric character"
            )
            faults.append(_rule(rule, _LABEL, "my-name", "123-abc"))
    return faults


def dns1123_subdomain(text: str, unit: str = "characters") -> list[str]:
    faults = [f"must be no more than 253 {unit}"] if _is_longer(text, 253) else []
    if not _fits(_SUBDOMAIN, text):
        rule = (
            "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', "
            "and must start and end with an alphanumeric character"
        )
        faults.append(_rule(rule, _SUBDOMAIN, "example.com"))
    return faults


def dns1035_label(text: str) -> list[str]:
    faults = ["must be no more than 63 characters"] if _is_longer(text, 63) else []
    if not _fits(_LABEL_1035, text):
        rule = (
            "a DNS-1035 label must consist of lower case alphanumeric characters or '-', "
            "start with an alphabetic character, and end with an alphanumeric character"
        )
        faults.append(_rule(rule, _LABEL_1035, "my-name", "abc-123"))
    return faults


_KEY_RULE = _rule(
    "must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character",
    _KEY,
    "MyName",
    "my.name",
    "123-abc",
)


def label_key(text: str, what: str = "a valid label key", unit: str = "bytes") -> list[str]:
    parts = text.split("/")
    if len(parts) > 2:
        suffix = " with an optional DNS subdomain prefix and '/' (e.g. 'example.com/MyName')"
        return [f"{what} {_KEY_RULE}{suffix}"]
    faults: list[str] = []
    if len(parts) == 2:
        if not parts[0]:
            faults.append("prefix part must be non-empty")
        else:
            faults += [f"prefix part {fault}" for fault in dns1123_subdomain(parts[0], unit)]
    name = parts[-1]
    if not name:
        faults.append("name part must be non-empty")
    elif _is_longer(name, 63):
        faults.append(f"name part must be no more than 63 {unit}")
    if not _fits(_KEY, name):
        faults.append(f"name part {_KEY_RULE}")
    return faults


def label_value(text: str, unit: str = "bytes") -> list[str]:
    faults = [f"must be no more than 63 {unit}"] if _is_longer(text, 63) else []
    if not _fits(_VALUE, text):
        rule = (
            "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', "
            "and must start and end with an alphanumeric character"
        )
        faults.append(_rule(rule, _VALUE, "MyValue", "my_value", "12345"))
    return faults
