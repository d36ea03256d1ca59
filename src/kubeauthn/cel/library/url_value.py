"""URLs taken apart as Go's net/url does, with its error texts. Inside, a URL is bytes: escapes may hide any byte."""

from __future__ import annotations

from ..go_text import quote
from .netaddr import AddressError, parse_address

__all__ = ["ParsedURL", "URLError", "check_request_uri", "parse_query", "parse_url", "split_host_port"]

_ALPHANUMERIC = frozenset(b"0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ")
_HEX = frozenset(b"0123456789abcdefABCDEF")
_UNRESERVED = _ALPHANUMERIC | frozenset(b"-_.~")
# The bytes that need no escape, part by part.
_HOST = _UNRESERVED | frozenset(b"!$&'()*+,;=:[]<>\"")
_PATH = _UNRESERVED | frozenset(b"$&+,/:;=@")
_USER = _UNRESERVED | frozenset(b"$&+,;=")
_FRAGMENT = _UNRESERVED | frozenset(b"$&+,/:;=?@!()*")
_PATH_VALID = _PATH | frozenset(b"!'()*[]%")
_FRAGMENT_VALID = _FRAGMENT | frozenset(b"'[]%")
_USERINFO = _ALPHANUMERIC | frozenset(b"-._:~!$&'()*+,;=%@")


class URLError(ValueError):
    """The text is no URL."""


def _text(data: bytes) -> str:
    return data.decode("utf-8", "replace")


def _quoted(data: bytes) -> str:
    """In quotation marks as Go has them; a byte that belongs to no character as a number."""
    text = data.decode("utf-8", "surrogateescape")
    marked = (rf"\x{ord(one) - 0xDC00:02x}" if "\udc80" <= one <= "\udcff" else quote(one)[1:-1] for one in text)
    return f'"{"".join(marked)}"'


def _unescape(data: bytes, *, host: bool = False, zone: bool = False, plus: bool = False) -> bytes:
    """The bytes with their %xx escapes undone. `host` and `zone`: the strict rules of those parts."""
    result = bytearray()
    at = 0
    while at < len(data):
        byte = data[at]
        if byte == 0x25:
            escape = data[at : at + 3]
            if len(escape) < 3 or escape[1] not in _HEX or escape[2] not in _HEX:
                raise URLError(f"invalid URL escape {_quoted(escape)}")
            value = int(escape[1:], 16)
            if host and value < 0x80 and escape != b"%25":
                raise URLError(f"invalid URL escape {_quoted(escape)}")
            if zone and escape != b"%25" and value != 0x20 and value not in _HOST:
                raise URLError(f"invalid URL escape {_quoted(escape)}")
            result.append(value)
            at += 3
            continue
        if (host or zone) and byte < 0x80 and byte not in _HOST:
            raise URLError(f"invalid character {quote(chr(byte))} in host name")
        result.append(0x20 if plus and byte == 0x2B else byte)
        at += 1
    return bytes(result)


def _escape(data: bytes, kept: frozenset[int]) -> bytes:
    if kept.issuperset(data):
        return data
    return b"".join(bytes((byte,)) if byte in kept else b"%%%02X" % byte for byte in data)


class ParsedURL:
    """The parts of a URL."""

    __slots__ = ("force_query", "fragment", "host", "omit_host", "opaque", "path", "query", "scheme", "user")

    def __init__(self) -> None:
        self.scheme = b""
        self.opaque = b""
        self.user: bytes | None = None
        self.host = b""
        self.path = b""  # as it was written
        self.query = b""
        self.fragment = b""  # as it was written
        self.force_query = False
        self.omit_host = False

    def escaped_path(self) -> bytes:
        if _PATH_VALID.issuperset(self.path):
            return self.path
        return _escape(_unescape(self.path), _PATH)

    def __bytes__(self) -> bytes:
        result = self.scheme + b":" if self.scheme else b""
        if self.opaque:
            result += self.opaque
        else:
            bare = self.omit_host and not self.host and self.user is None
            if (self.scheme or self.host or self.user is not None) and not bare:
                if self.host or self.path or self.user is not None:
                    result += b"//"
                if self.user is not None:
                    result += self.user + b"@"
                result += _escape(self.host, _HOST)
            path = self.escaped_path()
            if path and not path.startswith(b"/") and self.host:
                result += b"/"
            if not result and b":" in path.partition(b"/")[0]:
                result += b"./"
            result += path
        if self.force_query or self.query:
            result += b"?" + self.query
        if self.fragment:
            valid = _FRAGMENT_VALID.issuperset(self.fragment)
            result += b"#" + (self.fragment if valid else _escape(_unescape(self.fragment), _FRAGMENT))
        return result


def check_request_uri(text: str) -> None:
    """Raises URLError, with the text it is about, if this could not stand in a request."""
    try:
        _parse(text.encode("utf-8", "replace"), via_request=True)
    except URLError as error:
        raise URLError(f"parse {quote(text)}: {error}") from None


def parse_url(text: str) -> ParsedURL:
    """The parts of a URL. Raises URLError, with the text it is about."""
    head, _, fragment = text.partition("#")
    try:
        url = _parse(head.encode("utf-8", "replace"), via_request=False)
    except URLError as error:
        raise URLError(f"parse {quote(head)}: {error}") from None
    try:
        url.fragment = fragment.encode("utf-8", "replace")
        _unescape(url.fragment)
    except URLError as error:
        raise URLError(f"parse {quote(text)}: {error}") from None
    return url


def _parse(data: bytes, *, via_request: bool) -> ParsedURL:
    if any(byte < 0x20 or byte == 0x7F for byte in data):
        raise URLError("net/url: invalid control character in URL")
    if not data and via_request:
        raise URLError("empty url")
    url = ParsedURL()
    if data == b"*":
        url.path = b"*"
        return url
    scheme, rest = _split_scheme(data)
    url.scheme = scheme.lower()
    if rest.endswith(b"?") and rest.count(b"?") == 1:
        url.force_query, rest = True, rest[:-1]
    else:
        rest, _, url.query = rest.partition(b"?")
    if not rest.startswith(b"/"):
        if url.scheme:
            url.opaque = rest
            return url
        if via_request:
            raise URLError("invalid URI for request")
        if b":" in rest.partition(b"/")[0]:
            raise URLError("first path segment in URL cannot contain colon")
    if (url.scheme or (not via_request and not rest.startswith(b"///"))) and rest.startswith(b"//"):
        authority, slash, path = rest[2:].partition(b"/")
        rest = slash + path
        url.user, url.host = _parse_authority(url.scheme, authority)
    elif url.scheme and rest.startswith(b"/"):
        url.omit_host = True
    _unescape(rest)
    url.path = rest
    return url


def _split_scheme(data: bytes) -> tuple[bytes, bytes]:
    for at, byte in enumerate(data):
        if byte == 0x3A:
            if at == 0:
                raise URLError("missing protocol scheme")
            return data[:at], data[at + 1 :]
        if not (byte in _ALPHANUMERIC or byte in b"+-.") or (at == 0 and not bytes((byte,)).isalpha()):
            break
    return b"", data


def _parse_authority(scheme: bytes, authority: bytes) -> tuple[bytes | None, bytes]:
    userinfo, at, host = authority.rpartition(b"@")
    parsed = _parse_host(scheme, host)
    if not at:
        return None, parsed
    if not _USERINFO.issuperset(userinfo):
        raise URLError("net/url: invalid userinfo")
    name, colon, password = userinfo.partition(b":")
    return _escape(_unescape(name), _USER) + colon + _escape(_unescape(password), _USER), parsed


def _parse_host(scheme: bytes, host: bytes) -> bytes:
    bracket = host.rfind(b"[")
    if bracket > 0:
        raise URLError("invalid IP-literal")
    if bracket == 0:
        return _parse_bracketed(host)
    first, last = host.find(b":"), host.rfind(b":")
    if first != -1:
        # More than one colon is an error for the web's schemes, and tolerated for the others.
        _check_port(host[first if scheme in (b"http", b"https") else last :])
    return _unescape(host, host=True)


def _parse_bracketed(host: bytes) -> bytes:
    end = host.rfind(b"]")
    if end < 0:
        raise URLError("missing ']' in host")
    _check_port(host[end + 1 :])
    name, percent, zone = host[1:end].partition(b"%25")
    unescaped = _unescape(name, host=True) + _unescape(percent + zone, zone=True)
    try:
        address = parse_address(_text(unescaped))
    except AddressError as error:
        raise URLError(f"invalid host: {error}") from None
    if address.bits == 32:
        raise URLError("invalid IP-literal")
    return b"[" + unescaped + b"]" + host[end + 1 :]


def _is_port(data: bytes) -> bool:
    return not data or (data.startswith(b":") and (len(data) == 1 or data[1:].isdigit()))


def _check_port(data: bytes) -> None:
    if not _is_port(data):
        raise URLError(f"invalid port {quote(_text(data))} after host")


def split_host_port(host: bytes) -> tuple[bytes, bytes]:
    """The host without brackets, and the port or nothing."""
    port = b""
    colon = host.rfind(b":")
    if colon != -1 and _is_port(host[colon:]):
        host, port = host[:colon], host[colon + 1 :]
    if host.startswith(b"[") and host.endswith(b"]"):
        host = host[1:-1]
    return host, port


def parse_query(query: bytes) -> dict[str, list[str]]:
    """The parameters of a query. What cannot be read is left out."""
    values: dict[str, list[str]] = {}
    for pair in query.split(b"&"):
        if not pair or b";" in pair:
            continue
        name, _, value = pair.partition(b"=")
        try:
            key, text = _unescape(name, plus=True), _unescape(value, plus=True)
        except URLError:
            continue
        values.setdefault(_text(key), []).append(_text(text))
    return values
