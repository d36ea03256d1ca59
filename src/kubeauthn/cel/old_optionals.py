"""What cel-go until 0.26 does to an optional when a name, a conditional or a select yields it.

It takes the Go value out of what is in the optional and makes a CEL value of that again. Most values survive. A type
becomes its name, an optional in the optional is lost, and the types of Kubernetes' libraries become an error that stays
in the optional until somebody asks for the value.
"""

from __future__ import annotations

from typing import Any

from .errors import EvalError
from .values import MISSING, Opaque, Optional, TypeValue

__all__ = ["Failure", "reopened", "settled"]

_GO_NAMES = {
    "kubernetes.Quantity": "*resource.Quantity",
    "kubernetes.Semver": "semver.Version",
    "kubernetes.URL": "*url.URL",
    "net.CIDR": "netip.Prefix",
    "net.IP": "netip.Addr",
}
_KEPT = "kubernetes.NamedFormat"


class Failure(Opaque):
    """An error in the place of a value."""

    __slots__ = ("message",)
    cel_type = "error"

    def __init__(self, message: str) -> None:
        self.message = message


def reopened(value: Any) -> Any:
    """A value that may be an optional, as it comes out."""
    if type(value) is not Optional or value.value is MISSING:
        return value
    inside = _converted(value.value)
    return value if inside is value.value else Optional(inside)


def settled(value: Any) -> Any:
    """A value that was in an optional. Raises the error that stands there in its place."""
    if type(value) is Failure:
        raise EvalError(value.message)
    return value


def _converted(value: Any) -> Any:
    kind = type(value)
    if kind is Optional:
        return None if value.value is MISSING else _converted(value.value)
    if kind is TypeValue:
        return value.name
    if kind is list or kind is dict:
        return kind(value)  # another object: one of the claims is no longer known for that
    if kind is Failure:
        return Failure(f"unsupported conversion to ref.Val: (*errors.errorString){value.message}")
    if not isinstance(value, Opaque) or value.cel_type == _KEPT:
        return value
    go_name = _GO_NAMES.get(value.cel_type)
    return Failure(f"unsupported conversion to ref.Val: ({go_name}){value}" if go_name else "no such overload")
