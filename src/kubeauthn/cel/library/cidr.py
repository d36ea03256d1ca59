"""Kubernetes' networks: cidr, isCIDR, containsIP, containsCIDR, masked, prefixLength."""

from __future__ import annotations

from math import ceil
from typing import Any

from ..errors import EvalError
from ..go_text import quote
from ..overloads import CostFunction, Implementation, Overload
from ..values import Opaque, size_of
from . import costs
from .ip import IP, string_to_ip
from .netaddr import AddressError, Prefix, parse_prefix

__all__ = ["CIDR", "OVERLOADS", "TYPES"]

TYPES = ("net.CIDR", "net.IP")


class CIDR(Opaque):
    """A network."""

    __slots__ = ("prefix",)
    cel_type = "net.CIDR"

    def __init__(self, prefix: Prefix) -> None:
        self.prefix = prefix

    def cel_equals(self, other: Opaque) -> bool:
        return isinstance(other, CIDR) and self.prefix.same(other.prefix)

    def cel_size(self) -> int:
        return ceil(self.prefix.length / 8)

    def __str__(self) -> str:
        return str(self.prefix)

    def __repr__(self) -> str:
        return f"CIDR({str(self)!r})"


_PARSE_ERROR = "network address parse error during conversion from string: "


def _string_to_cidr(text: str) -> CIDR:
    try:
        prefix = parse_prefix(text)
    except AddressError as error:
        # Twice, as Kubernetes has it.
        raise EvalError(f"{_PARSE_ERROR}{_PARSE_ERROR}{error}") from None
    if prefix.address.is_mapped:
        raise EvalError(f"{_PARSE_ERROR}IPv4-mapped IPv6 address {quote(text)} is not allowed")
    return CIDR(prefix)


def _is_cidr(text: str) -> bool:
    try:
        _string_to_cidr(text)
    except EvalError:
        return False
    return True


def _to_string(cidr: CIDR) -> str:
    return str(cidr)


def _contains_ip(cidr: CIDR, ip: IP) -> bool:
    return cidr.prefix.contains(ip.address)


def _contains_ip_string(cidr: CIDR, text: str) -> bool:
    try:
        ip = string_to_ip(text)
    except EvalError:
        # Kubernetes drops the reason here.
        raise EvalError("no such overload") from None
    return _contains_ip(cidr, ip)


def _contains_cidr(cidr: CIDR, other: CIDR) -> bool:
    return cidr.prefix.contains_prefix(other.prefix)


def _contains_cidr_string(cidr: CIDR, text: str) -> bool:
    return _contains_cidr(cidr, _string_to_cidr(text))


def _ip(cidr: CIDR) -> IP:
    return IP(cidr.prefix.address)


def _prefix_length(cidr: CIDR) -> int:
    return cidr.prefix.length


def _masked(cidr: CIDR) -> CIDR:
    return CIDR(cidr.prefix.masked())


def _scan(size: int) -> int:
    return ceil(size * costs.STRING_FACTOR)


def _ip_cost(arguments: tuple[Any, ...], result: object) -> int:
    size = size_of(arguments[0])
    return _scan(size + size)


def _cidr_cost(arguments: tuple[Any, ...], result: object) -> int:
    size = size_of(arguments[0])
    return _scan(size + size) + _scan(size) + 1


def _with_text(cost: CostFunction) -> CostFunction:
    """The same and the reading of the second argument."""
    return lambda arguments, result: cost(arguments, result) + _scan(size_of(arguments[1]))


_C = "net.CIDR"


def _contains(id: str, function: str, other: str, implementation: Implementation, cost: CostFunction) -> Overload:
    return Overload(id, function, (_C, other), "bool", implementation, member=True, cost=cost, cost_by_name=True)


# Where it is not known which one of two will run, the first one's cost counts: without the reading of a text.
OVERLOADS = (
    Overload("string_to_cidr", "cidr", ("string",), _C, _string_to_cidr, cost=costs.first_scan),
    Overload("is_cidr", "isCIDR", ("string",), "bool", _is_cidr, cost=costs.first_scan),
    Overload("cidr_to_string", "string", (_C,), "string", _to_string),
    _contains("cidr_contains_ip_ip", "containsIP", "net.IP", _contains_ip, _ip_cost),
    _contains("cidr_contains_ip_string", "containsIP", "string", _contains_ip_string, _with_text(_ip_cost)),
    _contains("cidr_contains_cidr", "containsCIDR", _C, _contains_cidr, _cidr_cost),
    _contains("cidr_contains_cidr_string", "containsCIDR", "string", _contains_cidr_string, _with_text(_cidr_cost)),
    Overload("cidr_ip", "ip", (_C,), "net.IP", _ip, member=True),
    Overload("cidr_prefix_length", "prefixLength", (_C,), "int", _prefix_length, member=True),
    Overload("cidr_masked", "masked", (_C,), _C, _masked, member=True),
)
