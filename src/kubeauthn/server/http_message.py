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
    """Names are lower case. Granian's own object, or `HeaderList`.

    Granian shows no value that has other characters than ASCII's visible ones: `get` is then None although the name is
    there, and `get_all` leaves it out. Whoever must know that nobody sent a header asks with `in`.
    """

    def __contains__(self, name: str) -> bool:
        """Whether there is one of that name, whatever it holds."""

    def get(self, name: str) -> str | None:
        """The first value of that name."""

    def get_all(self, name: str) -> list[str]:
        """Every value of that name, in order."""


class HeaderList:
    """Headers from a list of pairs."""

    __slots__ = ("_pairs",)

    def __init__(self, pairs: list[tuple[str, str]]) -> None:
        self._pairs = pairs

    def __contains__(self, name: str) -> bool:
        return any(key == name for key, _ in self._pairs)

    def get(self, name: str) -> str | None:
        return next((value for key, value in self._pairs if key == name), None)

    def get_all(self, name: str) -> list[str]:
        return [value for key, value in self._pairs if key == name]


class Scope(Protocol):
    """The rest of a request: Granian's own object, which makes a new text for whoever asks, or `GivenScope`."""

    @property
    def query_string(self) -> str: ...

    @property
    def client(self) -> str: ...


class GivenScope(NamedTuple):
    query_string: str = ""
    client: str = ""


class Request(NamedTuple):
    method: str
    path: str
    headers: Headers
    body: bytes
    scope: Scope

    @property
    def query(self) -> str:
        return self.scope.query_string

    @property
    def client(self) -> str:
        """Address and port of the peer; "" on a unix socket."""
        return self.scope.client

    def __repr__(self) -> str:
        return f"Request({self.method} {self.path}, {len(self.body)} bytes)"  # the rest may hold a token


class Response(NamedTuple):
    status: int
    headers: list[tuple[str, str]]
    body: bytes = b""


Handler = Callable[[Request], "Response | Awaitable[Response]"]
