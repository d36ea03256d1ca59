"""Kubernetes' functions of URLs: url, isURL, getHost, getQuery and their like."""

from __future__ import annotations

from ..errors import EvalError
from ..overloads import Implementation, Overload
from ..values import Opaque
from . import costs
from .url_value import ParsedURL, URLError, check_request_uri, parse_query, parse_url, split_host_port

__all__ = ["OVERLOADS", "TYPES", "URL"]

TYPES = ("kubernetes.URL",)


class URL(Opaque):
    """A URL."""

    __slots__ = ("parts",)
    cel_type = "kubernetes.URL"
    cel_is_reference = True

    def __init__(self, parts: ParsedURL) -> None:
        self.parts = parts

    def cel_equals(self, other: Opaque) -> bool:
        return isinstance(other, URL) and bytes(self.parts) == bytes(other.parts)

    def __str__(self) -> str:
        return _text(bytes(self.parts))

    def __repr__(self) -> str:
        return f"URL({str(self)!r})"


def _text(data: bytes) -> str:
    return data.decode("utf-8", "replace")


def _to_url(text: str) -> URL:
    try:
        check_request_uri(text)
        return URL(parse_url(text))
    except URLError as error:
        raise EvalError(f"URL parse error during conversion from string: {error}") from None


def _is_url(text: str) -> bool:
    try:
        check_request_uri(text)
    except URLError:
        return False
    return True


def _scheme(url: URL) -> str:
    return _text(url.parts.scheme)


def _host(url: URL) -> str:
    return _text(url.parts.host)


def _hostname(url: URL) -> str:
    return _text(split_host_port(url.parts.host)[0])


def _port(url: URL) -> str:
    return _text(split_host_port(url.parts.host)[1])


def _escaped_path(url: URL) -> str:
    return _text(url.parts.escaped_path())


def _query(url: URL) -> dict[str, list[str]]:
    return parse_query(url.parts.query)


def _getter(id: str, function: str, implementation: Implementation, result: str = "string") -> Overload:
    return Overload(id, function, ("kubernetes.URL",), result, implementation, member=True)


OVERLOADS = (
    Overload("string_to_url", "url", ("string",), "kubernetes.URL", _to_url, cost=costs.first_scan),
    Overload("is_url_string", "isURL", ("string",), "bool", _is_url),
    _getter("url_get_scheme", "getScheme", _scheme),
    _getter("url_get_host", "getHost", _host),
    _getter("url_get_hostname", "getHostname", _hostname),
    _getter("url_get_port", "getPort", _port),
    _getter("url_get_escaped_path", "getEscapedPath", _escaped_path),
    _getter("url_get_query", "getQuery", _query, "map(string, list(string))"),
)
