"""The network library of the language: Kubernetes' ip and cidr, which it was made from, and a little more."""

from __future__ import annotations

from ..overloads import Overload
from . import cidr, ip
from .cidr import CIDR
from .ip import IP, string_to_ip
from .netaddr import Address, AddressError, parse_address

__all__ = ["OVERLOADS", "TYPES"]

TYPES = ("net.IP", "net.CIDR")


def _string_to_ip(text: str) -> IP:
    """As Kubernetes' ip, but an IPv4 address written as IPv6 without dots is taken for the IPv4 address it is."""
    if "." not in text:
        try:
            address = parse_address(text)
        except AddressError:
            return string_to_ip(text)  # for its error
        if address.is_mapped and not address.zone:
            return IP(Address(address.number & 0xFFFFFFFF, 32))
    return string_to_ip(text)


def _is_mask(network: CIDR) -> bool:
    return network.prefix.same(network.prefix.masked())


OVERLOADS = (
    *(row for row in ip.OVERLOADS if row.id != "string_to_ip"),
    Overload("string_to_ip", "ip", ("string",), "net.IP", _string_to_ip, cost=ip.OVERLOADS[0].cost),
    *cidr.OVERLOADS,
    Overload("cidr_is_mask", "isMask", ("net.CIDR",), "bool", _is_mask, member=True),
)
