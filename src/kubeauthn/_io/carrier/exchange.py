"""One request and its answer, between a client's connection and a server's."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable
from typing import TYPE_CHECKING

from kubeauthn._core import http1
from kubeauthn._core.http1_bodies import ChunkedBody, body_of
from kubeauthn._io.carrier.plan import Plan
from kubeauthn.errors import HttpMessageError, KubeauthnError, UpstreamError

if TYPE_CHECKING:
    from kubeauthn._io.carrier.downstream import Downstream
    from kubeauthn._io.carrier.plan import Route
    from kubeauthn._io.carrier.upstream import Upstream

HELD_BYTES = 256 * 1024
"""Of a body that comes before the server's connection is there; then the client waits."""
REPLAY_BYTES = 256 * 1024
"""Of a body that is kept in case the request is to be sent again."""
INFORMED = 32
"""Interim answers (1xx) to one request. Each is passed on, so without a bound they would be an answer without end."""

_SAFE_TO_REPEAT = frozenset({b"GET", b"HEAD", b"OPTIONS", b"PUT", b"DELETE"})
_CONTINUE = b"HTTP/1.1 100 Continue\r\n\r\n"
_EXPECT = frozenset({b"expect"})


class Exchange:
    __slots__ = (
        "_body",
        "_collected",
        "_down",
        "_held",
        "_informed",
        "_limit",
        "_plan",
        "_redirected",
        "_renewed",
        "_repeated",
        "_replay",
        "_route",
        "_size",
        "_started",
        "_task",
        "_told_to_continue",
        "_tunnel_ends",
        "_upstream",
        "_withheld",
        "head",
        "method",
        "over",
        "request_complete",
    )

    def __init__(self, down: Downstream, head: http1.RequestHead, route: Route) -> None:
        self._down = down
        self._route = route
        self.head = head
        self.method = head.method
        self._body = body_of(head)
        self.request_complete = self._body is None
        self._held: list[bytes] = []
        self._size = 0
        self._replay: list[bytes] | None = []
        self._limit = 0
        self._collected: asyncio.Future[None] | None = None
        self._told_to_continue = False
        self._plan: Plan | None = None
        self._upstream: Upstream | None = None
        self._task: asyncio.Task[None] | None = None
        self._started = False
        self._repeated = self._renewed = self._redirected = False
        self._withheld: bytes | None = None
        self._informed = 0
        self._tunnel_ends = 0
        self.over = False

    # the request

    def start(self) -> None:
        """The head is here, and what came with it has been fed."""
        try:
            plan = self._route.plan(self)
        except Exception as error:
            self._refuse(error)
            return
        if isinstance(plan, Plan):
            self._send(plan)
        else:
            self._task = asyncio.ensure_future(self._when_planned(plan))

    def feed(self, data: bytes | memoryview) -> int:
        """Body bytes from the client; how many were taken."""
        body = self._body
        if body is None or self.request_complete:
            return 0
        taken = body.feed(data)
        piece = data if taken == len(data) else data[:taken]
        self.request_complete = body.done
        self._size += taken
        if self._replay is not None:
            if self._size > REPLAY_BYTES:
                self._replay = None
            else:
                self._replay.append(bytes(piece))
        if self._upstream is not None:
            self._upstream.write(piece)
        else:
            self._held.append(bytes(piece))
            self._bound_held()
        return taken

    async def body(self, limit: int) -> bytes:
        """For the route: the whole body, without the chunks around it."""
        self._limit = limit
        if self._size > limit or self.head.length > limit:
            raise _too_large(limit)
        if not self.request_complete:
            if self.head.expects_continue() and not self._told_to_continue:
                self._told_to_continue = True
                self._down.write(_CONTINUE)
            self._collected = asyncio.get_running_loop().create_future()
            self._down.resume_reading()
            await self._collected
        whole = b"".join(self._held)
        if not isinstance(self._body, ChunkedBody):
            return whole
        reader = ChunkedBody(keep=True)
        reader.feed(whole)
        return b"".join(reader.payload or ())

    def _bound_held(self) -> None:
        if self._collected is not None and not self._collected.done():
            if self._size > self._limit:
                self._collected.set_exception(_too_large(self._limit))
            elif self.request_complete:
                self._collected.set_result(None)
        elif self._size > HELD_BYTES:
            self._down.pause_reading()

    async def _when_planned(self, awaited: Awaitable[Plan]) -> None:
        try:
            plan = await awaited
        except asyncio.CancelledError:
            raise
        except Exception as error:
            self._refuse(error)
            return
        self._task = None
        self._send(plan)

    def _send(self, plan: Plan) -> None:
        if self.over:
            return
        self._plan = plan
        upstream = plan.pool.take()
        if upstream is None:
            self._task = asyncio.ensure_future(self._dial(plan))
        else:
            self._begin(plan, upstream)

    async def _dial(self, plan: Plan) -> None:
        try:
            upstream = await plan.pool.open()
        except UpstreamError as error:
            await self._dial_elsewhere(plan, error)
            return
        except Exception as error:  # whatever it is, the client must not wait for ever
            self._refuse(error)
            return
        self._task = None
        if self.over:
            upstream.close()
        else:
            self._begin(plan, upstream)

    async def _dial_elsewhere(self, failed: Plan, error: UpstreamError) -> None:
        try:
            plan = None if self._redirected else await self._route.unreachable(self, failed, str(error))
        except Exception as second:
            self._refuse(second)
            return
        if plan is None:
            self._refuse(error)
        elif not self.over:
            self._redirected = True
            self._plan = plan
            await self._dial(plan)

    def _begin(self, plan: Plan, upstream: Upstream) -> None:
        self._upstream = upstream
        without = plan.without | _EXPECT if self._told_to_continue else plan.without
        data = http1.render_request(self.head, plan.target, without, plan.added)
        if self._held:
            data += b"".join(self._held)
            self._held.clear()
        upstream.begin(self, data)
        if not self.request_complete:
            self.release_client()

    # the answer

    def informed(self, head: http1.ResponseHead) -> None:
        """100 Continue and its like."""
        self._informed += 1
        if self._informed > INFORMED:
            raise HttpMessageError(f"more than {INFORMED} interim answers", status=502)
        if head.status != 100 or not self._told_to_continue:
            self._down.write(http1.render_response(head))

    def withhold(self, head: http1.ResponseHead, data: bytes) -> bool:
        """A 401 is not passed on before a renewed credential was tried, where the request can be sent again."""
        plan = self._plan
        if head.status != 401 or plan is None or not plan.renewable or self._renewed or not self._can_repeat():
            return False
        self._renewed = True
        self._withheld = data
        assert self._upstream is not None  # noqa: S101  it is who asks
        self._upstream.pause_reading()
        self._task = asyncio.ensure_future(self._renew(plan))
        return True

    async def _renew(self, plan: Plan) -> None:
        try:
            renewed = await self._route.renewed(self, plan)
        except KubeauthnError:
            renewed = None
        except Exception as error:
            self._withheld = None
            self._refuse(error)
            return
        self._task = None
        upstream, data = self._upstream, self._withheld
        self._withheld = None
        if self.over or upstream is None:
            return
        if renewed is None or upstream.closed:
            upstream.go_on_with(self, data or b"")
            self.release_server()
            return
        upstream.close()
        self._send_again(renewed)

    def _send_again(self, plan: Plan) -> None:
        self._upstream = None
        self._held = list(self._replay or ())
        self._send(plan)

    def _can_repeat(self) -> bool:
        return self.method in _SAFE_TO_REPEAT and self.request_complete and self._replay is not None

    def response_head(self, head: http1.ResponseHead) -> bytes:
        self._started = True
        if self._plan is not None:
            self._route.answered(self._plan, head.status)
        if head.body == http1.UNTIL_CLOSE or not self.request_complete:
            self._down.closing = True
        return http1.render_response(head, close=self._down.closing)

    def pass_down(self, data: bytes | memoryview) -> None:
        self._down.write(data)

    def response_ended(self, upstream: Upstream | None) -> None:
        """`upstream` is given where it can serve another request."""
        self.over = True
        self._upstream = None
        if upstream is not None:
            upstream.release()
        self._down.exchange_ended()

    def upstream_failed(self, error: UpstreamError) -> None:
        upstream, self._upstream = self._upstream, None
        if self.over:
            return
        if self._tunnel_ends or self._started:
            self.over = True
            self._down.abort()  # the client must see that this was not the end
            return
        if self._task is not None and self._withheld is not None:
            self._task.cancel()
        plan = self._plan
        stale = upstream is not None and upstream.reused and not upstream.answered
        if stale and plan is not None and not self._repeated and self._can_repeat():
            # The server closed an idle connection just when it was taken. Nothing was answered, and nothing changes.
            self._repeated = True
            self._held = list(self._replay or ())
            self._task = asyncio.ensure_future(self._dial(plan))
            return
        self._refuse(error)

    # after 101: bytes both ways, each direction with its own end

    def switched(self, head: http1.ResponseHead, data: bytes) -> None:
        if not self.head.upgrade:
            raise HttpMessageError("it switches protocols unasked", status=502)
        self._started = True
        self._tunnel_ends = 2
        if self._plan is not None:
            self._route.answered(self._plan, 101)
        self._down.write(http1.render_response(head) + data)
        self._down.tunnel()

    def tunnelled_down(self, data: bytes | memoryview) -> None:
        self._down.write(data)

    def tunnelled_up(self, data: bytes | memoryview) -> None:
        if self._upstream is not None:
            self._upstream.write(data)

    def tunnel_ended_down(self) -> None:
        self._down.write_eof()
        self._one_way_ended()

    def tunnel_ended_up(self) -> None:
        if self._upstream is not None:
            self._upstream.write_eof()
        self._one_way_ended()

    def _one_way_ended(self) -> None:
        self._tunnel_ends -= 1
        if self._tunnel_ends <= 0:
            self.over = True
            upstream, self._upstream = self._upstream, None
            if upstream is not None:
                upstream.close()
            self._down.close()

    # back-pressure, both ways

    def hold_client(self) -> None:
        self._down.pause_reading()

    def release_client(self) -> None:
        if self._upstream is None or not self._upstream.held:
            self._down.resume_reading()

    def hold_server(self) -> None:
        if self._upstream is not None:
            self._upstream.pause_reading()

    def release_server(self) -> None:
        if self._upstream is not None and self._withheld is None and not self._down.held:
            self._upstream.resume_reading()

    # the end

    def client_gone(self) -> None:
        self.over = True
        if self._task is not None:
            self._task.cancel()
        upstream, self._upstream = self._upstream, None
        if upstream is not None:
            upstream.abort()

    def _refuse(self, error: Exception) -> None:
        self._task = None
        if self.over:
            return
        self.over = True
        upstream, self._upstream = self._upstream, None
        if upstream is not None:
            upstream.abort()
        self._down.refuse(error, started=self._started, complete=self.request_complete)

    def malformed(self, error: HttpMessageError) -> None:
        """What follows the head is no body. The server's connection ends without having seen a whole request."""
        if self._task is not None:
            self._task.cancel()
        self.request_complete = False
        self._refuse(error)


def _too_large(limit: int) -> HttpMessageError:
    return HttpMessageError(f"the body is larger than {limit} bytes, and all of it is needed first", status=413)
