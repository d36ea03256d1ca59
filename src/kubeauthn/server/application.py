"""The application: a table of paths, and two interfaces to one `answer`.

RSGI is Granian's own and the faster one; ASGI is there for every other server. Both bound what they read: a body in
bytes and in time, before a handler sees any of it.
"""

from __future__ import annotations

import asyncio
import json
import logging
from time import perf_counter
from typing import TYPE_CHECKING, Any

from kubeauthn.server import limits, request_details
from kubeauthn.server.http_message import HeaderList, Request, Response

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from kubeauthn.server.http_message import Handler
    from kubeauthn.server.metrics import Cell, Distribution, Registry

_log = logging.getLogger("kubeauthn.server")

JSON = ("content-type", "application/json")
TEXT = ("content-type", "text/plain; charset=utf-8")
_WITHOUT_BODY = frozenset({"GET", "HEAD", "DELETE", "OPTIONS"})
_REASONS = {400: "BadRequest", 404: "NotFound", 405: "MethodNotAllowed", 408: "Timeout", 413: "RequestEntityTooLarge"}
_REASONS |= {415: "UnsupportedMediaType", 500: "InternalError", 503: "ServiceUnavailable"}
_OTHER = "other"
"""The path label of everything that is not in the table: whoever asks for nonsense must not make new time series."""


def failure(status: int, message: str, *headers: tuple[str, str]) -> Response:
    """In the form of a Kubernetes Status."""
    body = {
        "kind": "Status",
        "apiVersion": "v1",
        "metadata": {},
        "status": "Failure",
        "message": message,
        "reason": _REASONS.get(status, ""),
        "code": status,
    }
    return Response(status, [JSON, *headers], json.dumps(body).encode())


def wrong_method(*allowed: str) -> Response:
    return failure(405, f"expected {' or '.join(allowed)}", ("allow", ", ".join(allowed)))


class Application:
    """`routes` are the handlers by path. `start` and `stop` run in the worker's loop, before and after it serves."""

    def __init__(
        self,
        routes: Mapping[str, Handler],
        metrics: Registry,
        *,
        start: Callable[[asyncio.AbstractEventLoop], None] | None = None,
        stop: Callable[[asyncio.AbstractEventLoop], None] | None = None,
    ) -> None:
        self._routes = dict(routes)
        self._start = start
        self._stop = stop
        self._requests = metrics.counter(
            "kubeauthn_http_requests_total", "Requests answered, by path and status code.", ("path", "code")
        )
        self._latency = metrics.histogram(
            "kubeauthn_http_request_duration_seconds",
            "From the whole request to its response, by path and status code.",
            ("path", "code"),
        )
        self._bodies = BodyWatch()
        self._cells: dict[tuple[str, int], tuple[Cell, Distribution]] = {}

    # RSGI

    def __rsgi_init__(self, loop: asyncio.AbstractEventLoop) -> None:
        if self._start is not None:
            self._start(loop)

    def __rsgi_del__(self, loop: asyncio.AbstractEventLoop) -> None:
        if self._stop is not None:
            self._stop(loop)

    async def __rsgi__(self, scope: Any, protocol: Any) -> None:
        if scope.proto != "http":
            protocol.close(404)
            return
        method, path, headers = scope.method, scope.path, scope.headers
        handler = self._routes.get(path)
        if handler is None:
            response = self._unknown(path)
        else:
            body: bytes | Response = b""
            if method not in _WITHOUT_BODY:
                body = await self._bodies.read(protocol, headers)
            begun = perf_counter()
            if isinstance(body, Response):
                response = body
            else:
                query, client, scheme = scope.query_string, scope.client, scope.scheme
                response = _answer(handler, Request(method, path, query, headers, body, client, scheme))
                if not isinstance(response, Response):
                    response = await _awaited(response)
            self._count(path, response.status, perf_counter() - begun)
        if method == "HEAD" or not response.body:
            protocol.response_empty(response.status, response.headers)
        else:
            protocol.response_bytes(response.status, response.headers, response.body)

    # ASGI

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] == "lifespan":
            await self._lifespan(receive, send)
            return
        if scope["type"] != "http":
            await send({"type": "websocket.close", "code": 1000})
            return
        response = await self._asgi_response(scope, receive)
        headers = [(name.encode("latin-1"), value.encode("latin-1")) for name, value in response.headers]
        await send({"type": "http.response.start", "status": response.status, "headers": headers})
        body = b"" if scope["method"] == "HEAD" else response.body
        await send({"type": "http.response.body", "body": body})

    async def _asgi_response(self, scope: Any, receive: Any) -> Response:
        path = scope["path"]
        handler = self._routes.get(path)
        if handler is None:
            return self._unknown(path)
        pairs = [(name.decode("latin-1").lower(), value.decode("latin-1")) for name, value in scope["headers"]]
        headers = HeaderList(pairs)
        begun = perf_counter()
        body = b"" if scope["method"] in _WITHOUT_BODY else await _asgi_body(receive, headers)
        if isinstance(body, Response):
            response: Any = body
        else:
            peer = scope.get("client")
            client = f"{peer[0]}:{peer[1]}" if peer else ""
            query = scope.get("query_string", b"").decode("latin-1")
            request = Request(scope["method"], path, query, headers, body, client, scope.get("scheme", "http"))
            response = _answer(handler, request)
            if not isinstance(response, Response):
                response = await _awaited(response)
        self._count(path, response.status, perf_counter() - begun)
        return response  # type: ignore[no-any-return]

    async def _lifespan(self, receive: Any, send: Any) -> None:
        while True:
            message = await receive()
            if message["type"] == "lifespan.startup":
                await send({"type": "lifespan.startup.complete"})
            else:
                await send({"type": "lifespan.shutdown.complete"})
                return

    # Both

    def _unknown(self, path: str) -> Response:
        self._count(_OTHER, 404, 0.0)
        return failure(404, "there is nothing at this path")

    def _count(self, path: str, status: int, seconds: float) -> None:
        cells = self._cells.get((path, status))
        if cells is None:
            labels = (path, str(status))
            cells = self._requests.cell(*labels), self._latency.distribution(*labels)
            self._cells[path, status] = cells
        cells[0].value += 1
        cells[1].observe(seconds)


def _answer(handler: Handler, request: Request) -> Any:
    try:
        if request_details.wanted:
            request_details.note(request)
        return handler(request)
    except Exception as error:
        return _fault(error)


async def _awaited(response: Any) -> Response:
    try:
        answer: Response = await response
    except Exception as error:
        return _fault(error)
    return answer


def _fault(error: Exception) -> Response:
    """Nothing of it is told: the text of an error that nobody foresaw may quote anything."""
    from kubeauthn.server.decisions import place_only

    _log.error("a request failed: unexpected %s", type(error).__name__, exc_info=place_only(error))
    return failure(500, "internal error")


def _declared_length(headers: Any) -> int | Response | None:
    """Bytes that the body will have; None if it does not say."""
    declared = headers.get("content-length")
    if declared is None:
        return None
    if len(declared) > 19 or not declared.isascii() or not declared.isdigit():
        return failure(400, "content-length is no number")
    length = int(declared)
    return _too_large() if length > limits.BODY_BYTES else length


def _too_large() -> Response:
    return failure(413, f"expected a body of at most {limits.BODY_BYTES} bytes")


class BodyWatch:
    """Who reads a body for too long is stopped. One look a second at all of them costs less than a timer for each."""

    __slots__ = ("_late", "_looks", "_reading", "_sweeping")

    def __init__(self) -> None:
        self._looks = 0
        self._reading: dict[asyncio.Task[Any], int] = {}
        """Who reads, and how many looks there had been when it began."""
        self._late: set[asyncio.Task[Any]] = set()
        self._sweeping = False

    async def read(self, protocol: Any, headers: Any) -> bytes | Response:
        length = _declared_length(headers)
        if isinstance(length, Response):
            return length
        task = asyncio.current_task()
        assert task is not None  # noqa: S101  a coroutine of a server is always one
        self._reading[task] = self._looks
        if not self._sweeping:
            self._sweeping = True
            asyncio.get_running_loop().call_later(1.0, self._sweep)
        try:
            if length is not None:
                return await protocol()  # type: ignore[no-any-return]  # bytes, and no more than was declared
            return await _undeclared(protocol)
        except RuntimeError:  # what Granian's protocol raises when the client is gone
            return failure(400, "the body ended too early")
        except asyncio.CancelledError:
            if task not in self._late:
                raise
            task.uncancel()
            return _too_slow()
        finally:
            del self._reading[task]
            if self._late:
                self._late.discard(task)

    def _sweep(self) -> None:
        self._looks += 1
        for task, began in list(self._reading.items()):
            if self._looks - began > limits.BODY_SECONDS and task not in self._late:
                self._late.add(task)
                task.cancel()
        self._sweeping = bool(self._reading)
        if self._sweeping:
            asyncio.get_running_loop().call_later(1.0, self._sweep)


async def _undeclared(protocol: Any) -> bytes | Response:
    parts, size = [], 0
    async for part in protocol:
        size += len(part)
        if size > limits.BODY_BYTES:
            return _too_large()
        parts.append(part)
    return b"".join(parts)


def _too_slow() -> Response:
    return failure(408, f"the body did not come within {limits.BODY_SECONDS:g} seconds")


async def _asgi_body(receive: Any, headers: HeaderList) -> bytes | Response:
    length = _declared_length(headers)
    if isinstance(length, Response):
        return length
    parts, size = [], 0
    try:
        async with asyncio.timeout(limits.BODY_SECONDS):
            while True:
                message = await receive()
                if message["type"] == "http.disconnect":
                    return failure(400, "the body ended too early")
                part = message.get("body", b"")
                size += len(part)
                if size > limits.BODY_BYTES:
                    return _too_large()
                parts.append(part)
                if not message.get("more_body"):
                    return b"".join(parts)
    except TimeoutError:
        return _too_slow()
