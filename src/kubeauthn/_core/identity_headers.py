"""A user as HTTP headers, for a proxy to hand to the service behind it, and back again.

The names are those of Kubernetes' request-header authentication (`X-Remote-User`, `-Uid`, `-Group`, `-Extra-…`). Two
more carry everything in one line each, because proxies join or drop headers that are repeated and cannot copy headers
whose names they do not know: `X-Remote-Groups` and `X-Remote-Extras`.

One encoding serves every value. Visible ASCII and spaces inside stay as they are; all else, and ``% , " \\``, is
percent-encoded UTF-8. So no value can end a line or a header, no two names have the same text, and a comma is always
between two values: where a proxy joins `X-Remote-Group` headers with commas, the result reads like `X-Remote-Groups`.
What is empty names nobody and is left out.
"""

from __future__ import annotations

from types import MappingProxyType
from typing import TYPE_CHECKING
from urllib.parse import unquote_to_bytes

from kubeauthn._core.authentication.verdict import NO_EXTRA, UserInfo
from kubeauthn._core.record import record
from kubeauthn.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

_TOKEN_CHARACTERS = frozenset("!#$%&'*+-.^_`|~0123456789abcdefghijklmnopqrstuvwxyz")
"""Of a header's name (RFC 9110, 5.6.2), in lower case."""
_NAME_BYTES = frozenset(b"-.0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ")
"""What an extra key keeps in a header's name. The underscore is escaped: CGI, and so WSGI, takes it for a hyphen."""
_VALUE_BYTES = frozenset(range(0x20, 0x7F)) - frozenset(b'%,"\\')
_PAIR_BYTES = _VALUE_BYTES - frozenset(b"= ")
# fmt: off
_RESERVED = frozenset((
    "accept", "authorization", "connection", "content-length", "content-type", "cookie", "date", "expect",
    "forwarded", "host", "keep-alive", "origin", "proxy-authorization", "server", "set-cookie", "te", "trailer",
    "transfer-encoding", "upgrade", "vary", "via", "www-authenticate", "x-forwarded-for", "x-forwarded-host",
    "x-forwarded-proto", "x-forwarded-uri", "x-original-uri",
))
# fmt: on


@record(frozen=True, slots=True)
class HeaderNames:
    """What the headers are called. Names that are not header names, or are the same, are a UsageError."""

    user: str = "X-Remote-User"
    uid: str = "X-Remote-Uid"
    group: str = "X-Remote-Group"
    groups: str = "X-Remote-Groups"
    extra_prefix: str = "X-Remote-Extra-"
    extras: str = "X-Remote-Extras"

    @classmethod
    def with_prefix(cls, prefix: str) -> HeaderNames:
        """All six with another beginning than `X-Remote-`."""
        parts = ("User", "Uid", "Group", "Groups", "Extra-", "Extras")
        return cls(*(prefix + part for part in parts)).checked()

    def single(self) -> tuple[str, ...]:
        """The five whole names."""
        return self.user, self.uid, self.group, self.groups, self.extras

    def checked(self) -> HeaderNames:
        names = (*self.single(), self.extra_prefix)
        for name in names:
            if not name or not _TOKEN_CHARACTERS.issuperset(name.lower()):
                raise UsageError(f"expected the name of a header, got {name!r}")
            if "_" in name:
                raise UsageError(
                    f"expected a header name without an underscore, got {name!r}",
                    hint="many servers cannot tell it from a hyphen",
                )
            if name.lower() in _RESERVED:
                raise UsageError(f"the header {name!r} has a meaning of its own")
        lower = [name.lower() for name in names]
        if len(set(lower)) != len(lower) or any(name.startswith(lower[-1]) for name in lower[:-1]):
            raise UsageError(f"expected header names that differ, got {', '.join(names)}")
        return self


DEFAULT_NAMES = HeaderNames()


def identity_headers(
    user: UserInfo, names: HeaderNames = DEFAULT_NAMES, *, repeated: bool = True
) -> list[tuple[str, str]]:
    """Every whole name at least once, empty where the user has none of it: a proxy then has what to overwrite with.

    Without `repeated` there is one header of each name: those of one line hold everything.
    """
    groups = [encode_value(group) for group in user.groups if group]
    headers = [
        (names.user, encode_value(user.username)),
        (names.uid, encode_value(user.uid)),
        (names.groups, ",".join(groups)),
        (names.extras, ",".join(_pairs(user))),
    ]
    headers += [(names.group, group) for group in (groups if repeated else ()) or [""]]
    for key, values in user.extra.items() if repeated else ():
        name = names.extra_prefix + encode_key(key)
        headers += [(name, encode_value(value)) for value in values if value]
    return headers


def user_from_headers(headers: Iterable[tuple[str, str]], names: HeaderNames = DEFAULT_NAMES) -> UserInfo | None:
    """The user that these headers stand for; None if they name nobody. Raises ValueError for what nobody encodes so.

    Only for headers that come from a proxy which lets none of a client's own pass. `X-Remote-Groups` and
    `X-Remote-Extras` count where they are there, else the repeated headers.
    """
    found: dict[str, list[str]] = {}
    for name, value in headers:
        found.setdefault(name.lower(), []).append(value)
    username = _one(found, names.user)
    if not username:
        return None
    group_lines = found.get(names.groups.lower()) or found.get(names.group.lower()) or []
    extra_lines = found.get(names.extras.lower())
    extra = _repeated_extra(found, names) if extra_lines is None else _listed_extra(extra_lines)
    return UserInfo(
        username,
        _one(found, names.uid),
        tuple(group for line in group_lines for group in decode_list(line)),
        MappingProxyType({key: tuple(values) for key, values in extra.items()}) if extra else NO_EXTRA,
    )


def encode_value(text: str) -> str:
    """One name or value, as text that every HTTP implementation carries unchanged."""
    encoded = _encode(text, _VALUE_BYTES)
    # White space at the ends is cut off on the way.
    if encoded.startswith(" "):
        encoded = "%20" + encoded[1:]
    return encoded[:-1] + "%20" if encoded.endswith(" ") else encoded


def decode_value(text: str) -> str:
    """Back again. Raises ValueError where a percent sign begins no escape, or the bytes are no UTF-8."""
    if "%" not in text:
        if not text.isascii():
            raise ValueError("a header of the user holds bytes that are not ASCII")
        return text
    for rest in text.split("%")[1:]:
        if len(rest) < 2 or any(digit not in "0123456789abcdefABCDEF" for digit in rest[:2]):
            raise ValueError("a header of the user holds a percent sign that begins no escape")
    try:
        return unquote_to_bytes(text.encode("ascii")).decode()
    except UnicodeError:
        raise ValueError("a header of the user holds bytes that are no text") from None


def decode_list(text: str) -> list[str]:
    """Values between commas, with or without white space around them."""
    return [decode_value(part) for piece in text.split(",") if (part := piece.strip(" \t"))]


def encode_key(key: str) -> str:
    """An extra key as the end of a header's name. Kubernetes' own decoder reads it too."""
    return _encode(key, _NAME_BYTES)


def _encode(text: str, kept: frozenset[int]) -> str:
    raw = text.encode("utf-8", "surrogatepass")  # what is no text comes out as bytes that are refused at the other end
    if kept.issuperset(raw):
        return text
    return "".join(chr(byte) if byte in kept else f"%{byte:02X}" for byte in raw)


def _pairs(user: UserInfo) -> Iterator[str]:
    for key, values in user.extra.items():
        for value in values:
            if value:
                yield f"{_encode(key, _PAIR_BYTES)}={_encode(value, _PAIR_BYTES)}"


def _one(found: dict[str, list[str]], name: str) -> str:
    values = found.get(name.lower(), ())
    if len(values) > 1:
        raise ValueError(f"expected one {name} header, got {len(values)}")
    if values and "," in values[0]:
        raise ValueError(f"expected one value in the {name} header, got several joined by commas")
    return decode_value(values[0].strip(" \t")) if values else ""


def _listed_extra(lines: list[str]) -> dict[str, list[str]]:
    extra: dict[str, list[str]] = {}
    for line in lines:
        for piece in line.split(","):
            if not (pair := piece.strip(" \t")):
                continue
            key, equals, value = pair.partition("=")
            if not equals:
                raise ValueError("expected key=value between commas in the header of the user's extra values")
            extra.setdefault(decode_value(key), []).append(decode_value(value))
    return extra


def _repeated_extra(found: dict[str, list[str]], names: HeaderNames) -> dict[str, list[str]]:
    prefix = names.extra_prefix.lower()
    extra: dict[str, list[str]] = {}
    for name, lines in found.items():
        if name.startswith(prefix) and (key := decode_value(name[len(prefix) :])):
            values = [value for line in lines for value in decode_list(line)]
            if values:
                extra.setdefault(key.lower(), []).extend(values)
    return extra
