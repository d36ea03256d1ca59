"""HTTP/1.1 heads, read strictly, for a carrier that passes messages on.

What two readers could understand differently is refused, never mended: a message that one of them ends earlier
than the other is how a second request is smuggled in. RFC 9112 is cited by section.

A head is kept as the lines that came. What is not changed is not written again.
"""

from __future__ import annotations

from kubeauthn.errors import HttpMessageError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Set

HEAD_BYTES = 128 * 1024
"""A token and a long list of groups fit well."""
HEAD_FIELDS = 500

NO_BODY, LENGTH, CHUNKED, UNTIL_CLOSE = range(4)
"""How a body ends."""

_TOKEN = b"!#$%&'*+-.^_`|~0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
_VISIBLE = bytes([9, *range(0x20, 0x7F), *range(0x80, 0x100)])
"""What a line of a head may hold: no control character but the tab."""
_TARGET = bytes(range(0x21, 0x7F))
_DIGITS = b"0123456789"
_LENGTH_DIGITS = 18

HOP_BY_HOP = frozenset(
    {
        b"connection",
        b"keep-alive",
        b"proxy-connection",
        b"proxy-authenticate",
        b"proxy-authorization",
        b"te",
        b"upgrade",
    }
)
"""For the next hop alone (RFC 9110, 7.6.1). Not Transfer-Encoding and Trailer: a body is passed on as it comes."""
_NEVER_NOMINATED = frozenset(
    {b"authorization", b"content-length", b"content-type", b"cookie", b"host", b"transfer-encoding", b"trailer"}
)
"""A `Connection: authorization` would make the carrier drop what the server decides by."""
_TELLING = frozenset({b"content-length", b"transfer-encoding", b"host", b"connection"})
"""Fields that a carrier must understand. All others only pass by."""
_FRAMING = frozenset({b"content-length", b"transfer-encoding", b"host", b"connection", b"upgrade"})
_NOT_TUNNELLED = ("h2c", "h2", "http/", "tls/")
"""Upgrades to a protocol in which more requests could follow, unseen."""


class _Head:
    """What requests and responses share. `fields` are (lower-case name, value); `lines` the same as they came."""

    __slots__ = ("body", "fields", "hop", "keep_alive", "length", "lines", "upgrade")

    def __init__(self, lines: list[bytes], fields: list[tuple[bytes, bytes]], body: int) -> None:
        self.lines = lines
        self.fields = fields
        self.body = body
        self.length = 0
        self.hop: Set[bytes] = HOP_BY_HOP
        self.keep_alive = True
        self.upgrade = b""


class RequestHead(_Head):
    """One request head."""

    __slots__ = ("method", "target")

    def __init__(self, method: bytes, target: bytes, lines: list[bytes], fields: list[tuple[bytes, bytes]]) -> None:
        super().__init__(lines, fields, NO_BODY)
        self.method = method
        self.target = target

    def value(self, name: bytes) -> bytes | None:
        for found, value in self.fields:
            if found == name:
                return value
        return None

    def expects_continue(self) -> bool:
        return any(name == b"expect" and value.lower() == b"100-continue" for name, value in self.fields)


class ResponseHead(_Head):
    """One response head."""

    __slots__ = ("status", "status_line")

    def __init__(self, status: int, status_line: bytes, lines: list[bytes], fields: list[tuple[bytes, bytes]]) -> None:
        super().__init__(lines, fields, UNTIL_CLOSE)
        self.status = status
        self.status_line = status_line


def parse_request(head: bytes) -> RequestHead:
    """The head without its last empty line. `HttpMessageError` where anything could be read in two ways."""
    first, lines, fields = _split(head)
    parts = first.split(b" ")
    if len(parts) != 3 or not parts[0] or parts[0].translate(None, _TOKEN):
        raise HttpMessageError("the request line is not METHOD TARGET HTTP/1.1")
    method, target, version = parts
    if version != b"HTTP/1.1":
        raise HttpMessageError("the request is not HTTP/1.1", status=505)
    if method == b"CONNECT":
        raise HttpMessageError("CONNECT is not carried", status=405)
    if not (target.startswith(b"/") or (target == b"*" and method == b"OPTIONS")) or target.translate(None, _TARGET):
        raise HttpMessageError("the request target is not a path")
    request = RequestHead(method, target, lines, fields)
    hosts = _take_in(request, "the request", 400, coding_status=501)
    if hosts != 1:  # RFC 9112, 3.2
        raise HttpMessageError("the request must have exactly one Host")
    if request.upgrade:
        request.upgrade = _upgrade(fields)
    return request


def parse_response(head: bytes, method: bytes) -> ResponseHead:
    """The answer to a request of this method, head without its last empty line."""
    first, lines, fields = _split(head)
    version, _, rest = first.partition(b" ")
    code, space, _ = rest.partition(b" ")
    if version not in (b"HTTP/1.1", b"HTTP/1.0") or len(code) != 3 or code.translate(None, _DIGITS) or code < b"100":
        raise HttpMessageError("the status line is not HTTP/1.1 CODE REASON", status=502)
    response = ResponseHead(int(code), b"HTTP/1.1 " + (rest if space else rest + b" "), lines, fields)
    response.keep_alive = version == b"HTTP/1.1"
    _take_in(response, "the response", 502, coding_status=502)
    if response.body == CHUNKED and version == b"HTTP/1.0":
        raise HttpMessageError("the response is HTTP/1.0 and yet has a transfer coding", status=502)
    status = response.status
    if status == 101:
        response.upgrade = _upgrade(fields)
        if not response.upgrade:
            raise HttpMessageError("the server switches to a protocol that is not carried", status=502)
    if method == b"HEAD" or status < 200 or status in (204, 304):  # RFC 9112, 6.3
        response.body = NO_BODY
    return response


def _take_in(head: _Head, whose: str, status: int, *, coding_status: int) -> int:
    """What the fields say of the body and of this hop. Returns how often there was a Host."""
    hosts = framings = 0
    for name, value in head.fields:
        if name not in _TELLING:
            continue
        if name == b"content-length":
            framings += 1
            head.length = _length(value)
            head.body = LENGTH if head.length else NO_BODY
        elif name == b"transfer-encoding":
            framings += 1
            if value.lower() != b"chunked":
                raise HttpMessageError(f"{whose} has a transfer coding that is not carried", status=coding_status)
            head.body = CHUNKED
        elif name == b"host":
            hosts += 1
        else:
            _connection(head, value)
    # RFC 9112, 6.1 and 6.3: both lengths, or one of them twice, is how messages are smuggled.
    if framings > 1:
        raise HttpMessageError(f"{whose} has more than one Content-Length or Transfer-Encoding", status=status)
    return hosts


def render_request(
    head: RequestHead, target: bytes, without: Set[bytes], added: Iterable[tuple[bytes, bytes]] = ()
) -> bytes:
    """The head for the next hop: hop-by-hop fields and `without` left out, `added` put behind."""
    hop = head.hop
    out = [head.method + b" " + target + b" HTTP/1.1"]
    out += [
        line for line, (name, _) in zip(head.lines, head.fields, strict=True) if name not in hop and name not in without
    ]
    if head.upgrade:
        out += (b"Connection: Upgrade", b"Upgrade: " + head.upgrade)
    out += [name + b": " + value for name, value in added]
    out += (b"", b"")
    return b"\r\n".join(out)


def render_response(head: ResponseHead, *, close: bool = False) -> bytes:
    """The response head for the client; `close` says that the connection ends with it."""
    hop = head.hop
    out = [head.status_line]
    out += [line for line, (name, _) in zip(head.lines, head.fields, strict=True) if name not in hop]
    if head.status == 101:
        out += (b"Connection: Upgrade", b"Upgrade: " + head.upgrade)
    elif close:
        out.append(b"Connection: close")
    out += (b"", b"")
    return b"\r\n".join(out)


def is_token(name: bytes) -> bool:
    return bool(name) and not name.translate(None, _TOKEN)


def is_field_value(value: bytes) -> bool:
    """Whether it can stand behind a colon: no line end, no NUL, no blanks at its ends."""
    return not value.translate(None, _VISIBLE) and value == value.strip(b" \t")


def is_target(target: bytes) -> bool:
    return target.startswith(b"/") and not target.translate(None, _TARGET)


def _split(head: bytes) -> tuple[bytes, list[bytes], list[tuple[bytes, bytes]]]:
    if len(head) > HEAD_BYTES:
        raise HttpMessageError(f"the head is larger than {HEAD_BYTES} bytes", status=431)
    lines = head.split(b"\r\n")
    first = lines.pop(0)
    # One pass over all of it: what is left must be the line ends that were split at.
    if head.translate(None, _VISIBLE) != b"\r\n" * len(lines):
        raise HttpMessageError("the head has control characters or a line end without its other half")
    if len(lines) > HEAD_FIELDS:
        raise HttpMessageError(f"the head has more than {HEAD_FIELDS} fields", status=431)
    return first, lines, _fields(lines)


def _fields(lines: list[bytes]) -> list[tuple[bytes, bytes]]:
    fields = []
    for line in lines:
        name, colon, value = line.partition(b":")
        # A blank before the colon, and a line that continues the one before, fail here too (RFC 9112, 5.1 and 5.2).
        if not colon or not name or name.translate(None, _TOKEN):
            raise HttpMessageError("a header line is not NAME: VALUE")
        fields.append((name.lower(), value.strip(b" \t")))
    return fields


def _length(value: bytes) -> int:
    if not value or len(value) > _LENGTH_DIGITS or value.translate(None, _DIGITS):
        raise HttpMessageError("Content-Length is not a number")
    return int(value)


def _connection(head: _Head, value: bytes) -> None:
    for option in value.lower().split(b","):
        name = option.strip(b" \t")
        if name == b"close":
            head.keep_alive = False
        elif name == b"keep-alive":
            head.keep_alive = True
        elif name == b"upgrade":
            head.upgrade = b"asked for"
        elif name in _NEVER_NOMINATED:
            raise HttpMessageError(f"Connection names {name.decode()}, which is not for this hop alone")
        elif name and name not in head.hop:
            if name.translate(None, _TOKEN):
                raise HttpMessageError("Connection is not a list of names")
            head.hop = head.hop | {name}


def _upgrade(fields: list[tuple[bytes, bytes]]) -> bytes:
    """The protocol asked for, or nothing where it is one that is not passed on."""
    values = [value for name, value in fields if name == b"upgrade"]
    if len(values) != 1 or not values[0]:
        return b""
    wanted = values[0].decode("latin-1").lower()
    if any(part.strip().startswith(_NOT_TUNNELLED) for part in wanted.split(",")):
        return b""
    return values[0]


def check_trailers(block: bytes) -> None:
    """The fields behind the last chunk. None may change what the head said."""
    if not block:
        return
    if block.translate(None, _VISIBLE) != b"\r\n" * block.count(b"\r\n"):
        raise HttpMessageError("the trailers have control characters or a line end without its other half")
    for name, _ in _fields(block.split(b"\r\n")):
        if name in _FRAMING or name in _NEVER_NOMINATED:
            raise HttpMessageError(f"{name.decode()} cannot be a trailer")
