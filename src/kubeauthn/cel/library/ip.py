"""Kubernetes' IP addresses: ip, isIP, family, isLoopback and their like."""

from __future__ import annotations

from ..errors import EvalError
from ..go_text import quote
from ..overloads import CostFunction, Implementation, Overload
from ..values import Opaque
from . import costs
from .netaddr import Address, AddressError, parse_address

__all__ = ["IP", "OVERLOADS", "TYPES", "string_to_ip"]

TYPES = ("net.IP",)


class IP(Opaque):
    """An IP address."""

    __slots__ = ("address",)
    cel_type = "net.IP"

    def __init__(self, address: Address) -> None:
        self.address = address

    def cel_equals(self, other: Opaque) -> bool:
        return isinstance(other, IP) and self.address.same(other.address)

    def cel_size(self) -> int:
        return self.address.bits // 8

    def __str__(self) -> str:
        return str(self.address)

    def __repr__(self) -> str:
        return f"IP({str(self)!r})"


def string_to_ip(text: str) -> IP:
    try:
        address = parse_address(text)
    except AddressError as error:
        raise EvalError(f"IP Address {quote(text)} parse error during conversion from string: {error}") from None
    if address.zone:
        raise EvalError(f"IP address {quote(text)} with zone value is not allowed")
    if address.is_mapped:
        raise EvalError(f"IPv4-mapped IPv6 address {quote(text)} is not allowed")
    return IP(address)


def _is_ip(text: str) -> bool:
    try:
        string_to_ip(text)
    except EvalError:
        return False
    return True


def _is_canonical(text: str) -> bool:
    return str(string_to_ip(text)) == text


def _to_string(ip: IP) -> str:
    return str(ip)


def _family(ip: IP) -> int:
    return 4 if ip.address.bits == 32 else 6


def _is_unspecified(ip: IP) -> bool:
    return ip.address.number == 0


def _is_loopback(ip: IP) -> bool:
    address = ip.address
    return address.number >> 24 == 127 if address.bits == 32 else address.number == 1


def _is_multicast(ip: IP) -> bool:
    address = ip.address
    return address.number >> 28 == 0xE if address.bits == 32 else address.number >> 120 == 0xFF


def _is_link_local_multicast(ip: IP) -> bool:
    address = ip.address
    return address.number >> 8 == 0xE00000 if address.bits == 32 else address.number >> 112 & 0xFF0F == 0xFF02


def _is_link_local_unicast(ip: IP) -> bool:
    address = ip.address
    return address.number >> 16 == 0xA9FE if address.bits == 32 else address.number >> 112 & 0xFFC0 == 0xFE80


def _is_global_unicast(ip: IP) -> bool:
    if ip.address.bits == 32 and ip.address.number == 0xFFFFFFFF:
        return False
    return not (_is_unspecified(ip) or _is_loopback(ip) or _is_multicast(ip) or _is_link_local_unicast(ip))


def _of_text(id: str, function: str, result: str, implementation: Implementation, cost: CostFunction) -> Overload:
    return Overload(id, function, ("string",), result, implementation, cost=cost, cost_by_name=function != "ip")


def _test(id: str, function: str, implementation: Implementation) -> Overload:
    return Overload(id, function, ("net.IP",), "bool", implementation, member=True)


OVERLOADS = (
    _of_text("string_to_ip", "ip", "net.IP", string_to_ip, costs.first_scan),
    _of_text("is_ip", "isIP", "bool", _is_ip, costs.first_scan),
    _of_text("ip_is_canonical", "ip.isCanonical", "bool", _is_canonical, costs.first_scan_twice),
    Overload("ip_to_string", "string", ("net.IP",), "string", _to_string),
    Overload("ip_family", "family", ("net.IP",), "int", _family, member=True),
    _test("ip_is_unspecified", "isUnspecified", _is_unspecified),
    _test("ip_is_loopback", "isLoopback", _is_loopback),
    _test("ip_is_link_local_multicast", "isLinkLocalMulticast", _is_link_local_multicast),
    _test("ip_is_link_local_unicast", "isLinkLocalUnicast", _is_link_local_unicast),
    _test("ip_is_global_unicast", "isGlobalUnicast", _is_global_unicast),
)
