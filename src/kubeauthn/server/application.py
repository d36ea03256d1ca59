"""The application: a table of paths, and two interfaces to one `answer`.

RSGI is Granian's own and the faster one; ASGI is there for every other server. Both bound what they read: a body in
bytes and in time, before a handler sees any of it.
"""

from __future__ import annotations

import asyncio
import logging
from time import perf_counter
from typing import TYPE_CHECKING, Any

from kubeauthn.server import limits, request_details
from kubeauthn.server.body_watch import BodyWatch, declared_length, too_large, too_slow
from kubeauthn.server.failures import failure, too_many_headers
from kubeauthn.server.http_message import GivenScope, HeaderList, Request, Response

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from kubeauthn.server.http_message import Handler
    from kubeauthn.server.metrics import Cell, Distribution, Registry

_log = logging.getLogger("kubeauthn.server")

_WITHOUT_BODY = frozenset({"GET", "HEAD", "DELETE", "OPTIONS"})
_OTHER = "other"
"""The path label of everything that is not in the table: whoever asks for nonsense must not make new time series."""


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
        self._bodies.start(loop)
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
        elif len(headers) > limits.HEADERS:
            response = too_many_headers()
            self._count(path, response.status, 0.0)
        else:
            body: bytes | Response = b""
            if method not in _WITHOUT_BODY:
                body = await self._bodies.read(protocol, headers)
            begun = perf_counter()
            if isinstance(body, Response):
                response = body
            else:
                response = _answer(handler, Request(method, path, headers, body, scope))
                if not isinstance(response, Response):
                    body = b""  # nobody needs it any more, and who waits may wait long
                    await asyncio.sleep(0)  # from here on in the event loop (see at_once.py)
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
        if len(scope["headers"]) > limits.HEADERS:
            self._count(path, 431, 0.0)
            return too_many_headers()
        pairs = [(name.decode("latin-1").lower(), value.decode("latin-1")) for name, value in scope["headers"]]
        headers = HeaderList(pairs)
        begun = perf_counter()
        body = b"" if scope["method"] in _WITHOUT_BODY else await _asgi_body(receive, headers)
        if isinstance(body, Response):
            response: Any = body
        else:
            peer = scope.get("client")
            client = f"{peer[0]}:{peer[1]}" if peer else ""
            rest = GivenScope(scope.get("query_string", b"").decode("latin-1"), client)
            response = _answer(handler, Request(scope["method"], path, headers, body, rest))
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


async def _asgi_body(receive: Any, headers: HeaderList) -> bytes | Response:
    length = declared_length(headers)
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
                    return too_large()
                parts.append(part)
                if not message.get("more_body"):
                    return b"".join(parts)
    except TimeoutError:
        return too_slow()
