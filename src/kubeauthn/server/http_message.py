"""A request and a response as the server's handlers see them, whichever interface brought them.

A module contributes its paths with `routes(context)`::

    def routes(context: Context) -> Mapping[str, Handler]:
        return {"/auth": Handler…}

The handler is a plain function of a `Request`; it returns a `Response`, or something that can be awaited for one.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import NamedTuple, Protocol

JSON = ("content-type", "application/json")
TEXT = ("content-type", "text/plain; charset=utf-8")


class Headers(Protocol):
    """Names are lower case. Granian's own object, or `HeaderList`."""

    def get(self, name: str) -> str | None:
        """The first value of that name."""

    def get_all(self, name: str) -> list[str]:
        """Every value of that name, in order."""


class HeaderList:
    """Headers from a list of pairs."""

    __slots__ = ("_pairs",)

    def __init__(self, pairs: list[tuple[str, str]]) -> None:
        self._pairs = pairs

    def get(self, name: str) -> str | None:
        return next((value for key, value in self._pairs if key == name), None)

    def get_all(self, name: str) -> list[str]:
        return [value for key, value in self._pairs if key == name]


class Request(NamedTuple):
    method: str
    path: str
    query: str
    headers: Headers
    body: bytes
    client: str
    """Address and port of the peer; "" on a unix socket."""
    scheme: str

    def __repr__(self) -> str:
        return f"Request({self.method} {self.path}, {len(self.body)} bytes)"  # the rest may hold a token


class Response(NamedTuple):
    status: int
    headers: list[tuple[str, str]]
    body: bytes = b""


Handler = Callable[[Request], "Response | Awaitable[Response]"]
