"""Where a token came from, for the audit log and for traces: whoever reads a request says it here.

A context variable, because a decider is asked about a token and knows nothing of requests.
"""

from __future__ import annotations

import itertools
import secrets
from contextvars import ContextVar
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from kubeauthn.server.http_message import Request


@dataclass(frozen=True, slots=True)
class RequestDetails:
    request_id: str = ""
    client: str = ""
    """Address and port of the peer; "" on a unix socket."""
    path: str = ""
    traceparent: str = ""
    """The W3C header of that name, as it came."""


UNKNOWN = RequestDetails()

current_request: ContextVar[RequestDetails] = ContextVar("current_request", default=UNKNOWN)

wanted = False
"""Whether anybody in this process reads it: set once, when an extension that does is switched on."""

_LONGEST_ID = 128


class RequestIds:
    """Short, and not to be guessed from outside: one random part for each worker, and a number."""

    __slots__ = ("_count", "_prefix")

    def __init__(self) -> None:
        self._prefix = secrets.token_hex(6)
        self._count = itertools.count(1)

    def next(self) -> str:
        return f"{self._prefix}-{next(self._count):x}"


def note(request: Request) -> None:
    """Remember where this came from, for as long as its task lives."""
    given = request.headers.get("x-request-id") or ""
    taken = given if 0 < len(given) <= _LONGEST_ID and all("!" <= c <= "~" for c in given) else secrets.token_hex(8)
    traceparent = request.headers.get("traceparent") or ""
    current_request.set(RequestDetails(taken, request.client, request.path, traceparent))
