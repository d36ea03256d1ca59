"""IP addresses and prefixes: read as Go's netip does, with its error texts."""

from __future__ import annotations

from ..go_text import parse_int, quote

__all__ = ["Address", "AddressError", "Prefix", "parse_address", "parse_prefix"]

_HEX = frozenset("0123456789abcdefABCDEF")
_DIGITS = frozenset("0123456789")


class AddressError(ValueError):
    """The text is no address or prefix."""


class Address:
    """An address: its number, its length in bits (32 or 128) and perhaps a zone."""

    __slots__ = ("bits", "number", "zone")

    def __init__(self, number: int, bits: int, zone: str = "") -> None:
        self.number = number
        self.bits = bits
        self.zone = zone

    @property
    def is_mapped(self) -> bool:
        """Whether this is an IPv4 address in the clothes of an IPv6 address."""
        return self.bits == 128 and self.number >> 32 == 0xFFFF

    def same(self, other: Address) -> bool:
        return self.number == other.number and self.bits == other.bits and self.zone == other.zone

    def __str__(self) -> str:
        if self.bits == 32:
            return _dotted(self.number)
        zone = f"%{self.zone}" if self.zone else ""
        if self.is_mapped:
            return f"::ffff:{_dotted(self.number & 0xFFFFFFFF)}{zone}"
        return _colons(self.number) + zone


def _dotted(number: int) -> str:
    return ".".join(str(number >> shift & 0xFF) for shift in (24, 16, 8, 0))


def _colons(number: int) -> str:
    groups = [number >> shift & 0xFFFF for shift in range(112, -1, -16)]
    best_start, best_length = -1, 1  # a lone zero is not shortened
    start = 0
    while start < 8:
        end = start
        while end < 8 and groups[end] == 0:
            end += 1
        if end - start > best_length:
            best_start, best_length = start, end - start
        start = max(end, start + 1)
    texts = [f"{group:x}" for group in groups]
    if best_start < 0:
        return ":".join(texts)
    return ":".join(texts[:best_start]) + "::" + ":".join(texts[best_start + best_length :])


def _fault(text: str, message: str, at: str = "") -> AddressError:
    place = f" (at {quote(at)})" if at else ""
    return AddressError(f"ParseAddr({quote(text)}): {message}{place}")


def parse_address(text: str) -> Address:
    """An IPv4 or IPv6 address. Raises AddressError."""
    for character in text:
        if character == ".":
            return Address(_parse_dotted(text, text), 32)
        if character == ":":
            return _parse_colons(text)
        if character == "%":
            raise _fault(text, "missing IPv6 address")
    raise _fault(text, "unable to parse IP")


def _parse_dotted(text: str, part: str) -> int:
    """The number of four decimal fields; `text` is what error texts show."""
    number, value, dots, digits = 0, 0, 0, 0
    for at, character in enumerate(part):
        if character in _DIGITS:
            if digits == 1 and value == 0:
                raise _fault(text, "IPv4 field has octet with leading zero")
            value = value * 10 + int(character)
            digits += 1
            if value > 255:
                raise _fault(text, "IPv4 field has value >255")
        elif character == ".":
            if at == 0 or at == len(part) - 1 or part[at - 1] == ".":
                raise _fault(text, "IPv4 field must have at least one digit", part[at:])
            if dots == 3:
                raise _fault(text, "IPv4 address too long")
            number = number << 8 | value
            dots += 1
            value = digits = 0
        else:
            raise _fault(text, "unexpected character", part[at:])
    if dots < 3:
        raise _fault(text, "IPv4 address too short")
    return number << 8 | value


def _parse_colons(text: str) -> Address:
    rest, percent, zone = text.partition("%")
    if percent and not zone:
        raise _fault(text, "zone must be a non-empty string")
    groups: list[int] = []
    ellipsis = -1
    if rest.startswith("::"):
        ellipsis, rest = 0, rest[2:]
        if not rest:
            return Address(0, 128, zone)
    while len(groups) < 8:
        digits = _group(text, rest)
        if rest[digits : digits + 1] == ".":
            if ellipsis < 0 and len(groups) != 6:
                raise _fault(text, "embedded IPv4 address must replace the final 2 fields of the address", rest)
            if len(groups) > 6:
                raise _fault(text, "too many hex fields to fit an embedded IPv4 at the end of the address", rest)
            embedded = _parse_dotted(text, rest)
            groups += [embedded >> 16, embedded & 0xFFFF]
            rest = ""
            break
        groups.append(int(rest[:digits], 16))
        rest = rest[digits:]
        if not rest:
            break
        rest = _after_colon(text, rest)
        if rest.startswith(":"):
            if ellipsis >= 0:
                raise _fault(text, "multiple :: in address", rest)
            ellipsis, rest = len(groups), rest[1:]
            if not rest:
                break
    if rest:
        raise _fault(text, "trailing garbage after address", rest)
    if len(groups) < 8:
        if ellipsis < 0:
            raise _fault(text, "address string too short")
        groups[ellipsis:ellipsis] = [0] * (8 - len(groups))
    elif ellipsis >= 0:
        raise _fault(text, "the :: must expand to at least one field of zeros")
    number = 0
    for group in groups:
        number = number << 16 | group
    return Address(number, 128, zone)


def _group(text: str, rest: str) -> int:
    """How many hexadecimal digits there are: one to four."""
    digits = 0
    while rest[digits : digits + 1] in _HEX:
        if digits > 3:
            raise _fault(text, "each group must have 4 or less digits", rest)
        digits += 1
    if digits == 0:
        raise _fault(text, "each colon-separated field must have at least one digit", rest)
    return digits


def _after_colon(text: str, rest: str) -> str:
    if rest[0] != ":":
        raise _fault(text, "unexpected character, want colon", rest)
    if len(rest) == 1:
        raise _fault(text, "colon must be followed by more characters", rest)
    return rest[1:]


class Prefix:
    """An address and how many of its bits count."""

    __slots__ = ("address", "length")

    def __init__(self, address: Address, length: int) -> None:
        self.address = address
        self.length = length

    def same(self, other: Prefix) -> bool:
        return self.length == other.length and self.address.same(other.address)

    def _network(self, address: Address, length: int) -> int:
        shift = address.bits - length
        return address.number >> shift << shift

    def masked(self) -> Prefix:
        return Prefix(Address(self._network(self.address, self.length), self.address.bits), self.length)

    def contains(self, address: Address) -> bool:
        if address.zone or address.bits != self.address.bits:
            return False
        return self._network(address, self.length) == self._network(self.address, self.length)

    def contains_prefix(self, other: Prefix) -> bool:
        if other.address.bits != self.address.bits or other.length < self.length:
            return False
        return self._network(other.address, self.length) == self._network(self.address, self.length)

    def __str__(self) -> str:
        return f"{self.address}/{self.length}"


def parse_prefix(text: str) -> Prefix:
    """An address, a slash and a number of bits. Raises AddressError."""

    def fault(message: str) -> AddressError:
        return AddressError(f"netip.ParsePrefix({quote(text)}): {message}")

    head, slash, tail = text.rpartition("/")
    if not slash:
        raise fault("no '/'")
    try:
        address = parse_address(head)
    except AddressError as error:
        raise fault(str(error)) from None
    if address.zone:
        raise fault("IPv6 zones cannot be present in a prefix")
    length = parse_int(tail)
    if length is None or (len(tail) > 1 and tail[0] not in "123456789"):
        raise fault(f"bad bits after slash: {quote(tail)}")
    if not 0 <= length <= address.bits:
        raise fault("prefix length out of range")
    return Prefix(address, length)
