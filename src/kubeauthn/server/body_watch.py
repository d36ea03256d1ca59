"""The body of a request over RSGI, bounded in bytes and in time before a handler sees any of it."""

from __future__ import annotations

import asyncio
import threading
from typing import TYPE_CHECKING, Any

from kubeauthn.server import limits
from kubeauthn.server.failures import failure
from kubeauthn.server.http_message import Response

if TYPE_CHECKING:
    from collections.abc import Awaitable


class BodyWatch:
    """Who sends a body for too long is stopped. One look a second at all of them costs less than a timer for each.

    Bodies that are not small have one bound for all of them together: over HTTP/2 a client sends hundreds at a time.
    """

    __slots__ = ("_awaited", "_held", "_lock", "_looks")

    def __init__(self) -> None:
        self._looks = 0
        self._held = 0
        """Bytes of the bodies under way that are not small."""
        self._lock = threading.Lock()
        self._awaited: dict[Any, int] = {}
        """Parts of bodies that are waited for, and how many looks there had been when the body began."""

    def start(self, loop: asyncio.AbstractEventLoop) -> None:
        loop.call_later(1.0, self._look_on, loop)

    def read(self, protocol: Any, headers: Any) -> Awaitable[bytes | Response]:
        length = declared_length(headers)
        if type(length) is int and length <= limits.SMALL_BODY_BYTES:
            return self._part(protocol(), self._looks)  # no more than was declared
        return _refused(length) if isinstance(length, Response) else self._in_parts(protocol)

    async def _in_parts(self, protocol: Any) -> bytes | Response:
        began, size = self._looks, 0
        parts: list[bytes] = []
        stream = aiter(protocol)
        try:
            while True:
                try:
                    awaited = stream.__anext__()
                except StopAsyncIteration:
                    return b"".join(parts)
                part = await self._part(awaited, began)
                if not isinstance(part, bytes):
                    return part
                size += len(part)
                if self._hold(len(part)) > limits.BODIES_BYTES:
                    return too_many()
                if size > limits.BODY_BYTES:
                    return too_large()
                parts.append(part)
        finally:
            self._hold(-size)

    def _hold(self, more: int) -> int:
        """How many it are with these."""
        with self._lock:
            self._held += more
            return self._held

    async def _part(self, awaited: Any, began: int) -> bytes | Response:
        self._awaited[awaited] = began
        try:
            part: bytes = await awaited
        except RuntimeError:  # what Granian's protocol raises when the client is gone
            return failure(400, "the body ended too early")
        except asyncio.CancelledError:
            if awaited in self._awaited:
                raise
            return too_slow()
        finally:
            self._awaited.pop(awaited, None)
        return part

    def _look_on(self, loop: asyncio.AbstractEventLoop) -> None:
        loop.call_later(1.0, self._look_on, loop)
        self.look()

    def look(self) -> None:
        """Once a second."""
        self._looks += 1
        # A copy: other threads add to it and take from it.
        for awaited, began in list(self._awaited.items()):
            if self._looks - began > limits.BODY_SECONDS and self._awaited.pop(awaited, None) is not None:
                awaited.cancel()


async def _refused(response: Any) -> Response:
    told: Response = response
    return told


def declared_length(headers: Any) -> int | Response | None:
    """Bytes that the body will have; None if it does not say."""
    declared = headers.get("content-length")
    if declared is None:
        return None
    if len(declared) > 19 or not declared.isascii() or not declared.isdigit():
        return failure(400, "content-length is no number")
    length = int(declared)
    return too_large() if length > limits.BODY_BYTES else length


def too_large() -> Response:
    return failure(413, f"expected a body of at most {limits.BODY_BYTES} bytes")


def too_many() -> Response:
    """429, after which kube-apiserver tries again."""
    return failure(429, "too many large bodies at once", ("retry-after", "1"))


def too_slow() -> Response:
    return failure(408, f"the body did not come within {limits.BODY_SECONDS:g} seconds")
