"""One claim read as the type that a mapping or a rule needs, with what Go's decoder says if it is another."""

from __future__ import annotations

from typing import Any

from kubeauthn._core.jose.go_json import kind

NOT_PRESENT = "claim not present"


def string_claim(claims: dict[str, Any], name: str) -> tuple[str, str]:
    """The text and a fault, one of them "". null is the empty text."""
    value = claims.get(name) if type(claims) is dict else _raw(claims, name)
    if type(value) is str:
        return value, ""
    if value is None:
        return "", "" if name in claims else NOT_PRESENT
    return "", _mismatch(value, "string")


def true_claim(claims: dict[str, Any], name: str) -> tuple[bool, str]:
    """The truth value and a fault. null is false."""
    value = _raw(claims, name)
    if value is None or isinstance(value, bool):
        return value is True, ""
    return False, _mismatch(value, "bool")


def strings_claim(claims: dict[str, Any], name: str) -> tuple[list[str], str]:
    """One text or a list of them, and a fault. null is none."""
    value = _raw(claims, name)
    if value is None:
        return [], ""
    if type(value) is str:
        return [value], ""
    if isinstance(value, list) and all(entry is None or type(entry) is str for entry in value):
        return [entry or "" for entry in value], ""
    return [], _mismatch(value, "string")


def _raw(claims: dict[str, Any], name: str) -> Any:
    """Also a claim that cannot be read as a double: here it is only of the wrong type."""
    # `in` first: it stops at a claim that another source holds
    return dict.__getitem__(claims, name) if name in claims else None


def _mismatch(value: object, wanted: str) -> str:
    return f"json: cannot unmarshal {kind(value)} into Go value of type {wanted}"
