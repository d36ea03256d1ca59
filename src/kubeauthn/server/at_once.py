"""Requests are worked on in the thread that brings them.

Granian parses requests in a thread of its own and hands them to the event loop's, twice for each request: once for its
head, once for its body. Each time another thread has to wake up and to get the interpreter's lock, which takes longer
than a remembered answer does. Our answers seldom wait for anything, so they need no loop: here the coroutine of a
request runs right where Granian hands it over. It may wait in two ways:

- for a part of its body: it goes on in the thread that brings the part
- with a bare yield, which is what `asyncio.sleep(0)` does: from then on it is an ordinary task of the event loop

So a coroutine that does nothing else before such a yield needs no running loop until then, and behaves the same under
a server that knows nothing of this. What it shares with the loop's thread must bear two threads. A context variable
that it sets is its own only from the setting to the next wait for its body, and in the task that it becomes.
"""

from __future__ import annotations

from asyncio import CancelledError
from contextvars import Context, copy_context
from functools import partial
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Callable, Coroutine

    Request = Coroutine[Any, None, None]

_OF_A_REQUEST = Context()
"""Granian gives it back with each part of a body; nothing runs in it."""


_TELL_SECONDS = 0.25


class AtOnce:
    """The event loop as Granian sees it: no more of one than Granian uses.

    `before_end` is called when a signal says that it is over, and returns how many seconds later Granian is told.
    """

    def __init__(self, loop: asyncio.AbstractEventLoop, *, before_end: Callable[[], float] = lambda: 0.0) -> None:
        self._loop = loop
        self._tasks: set[asyncio.Task[None]] = set()
        self._before_end = before_end
        self._end: Callable[[], None] | None = None
        self._serves = False

    def run_until_complete(self, work: Any) -> Any:
        """What Granian does when it has begun to serve. Told to end before, it would not hear it, nor end ever."""
        self._serves = True
        if self._end is not None:
            self._end_soon(self._end)
        return self._loop.run_until_complete(work)

    def add_signal_handler(self, number: int, callback: Callable[..., None], *arguments: Any) -> None:
        self._loop.add_signal_handler(number, self._told_to_end, partial(callback, *arguments))

    def _told_to_end(self, end: Callable[[], None]) -> None:
        if self._end is None:
            self._end = end
            if self._serves:
                self._end_soon(end)

    def _end_soon(self, end: Callable[[], None]) -> None:
        self._loop.call_later(self._before_end(), self._tell, end)

    def _tell(self, end: Callable[[], None]) -> None:
        """Again and again while the loop runs: what Granian is told before its own thread listens is lost on it."""
        end()
        self._loop.call_later(_TELL_SECONDS, self._tell, end)

    def call_soon_threadsafe(
        self, callback: Callable[..., None], *arguments: Any, context: Context | None = None
    ) -> None:
        """With a context it is a request or a part of its body, and done at once; all else is for the loop."""
        if context is None:
            self._loop.call_soon_threadsafe(callback, *arguments)
        else:
            callback(*arguments)

    def call_soon(self, callback: Callable[..., None], *arguments: Any, context: Context | None = None) -> None:
        """A part of a body that is no longer waited for, or that was there before anybody waited."""
        self._loop.call_soon_threadsafe(callback, *arguments)

    def create_task(self, request: Request) -> Request:
        self._go_on(request)
        return request

    def _go_on(self, request: Request, part: Any = None) -> None:
        """`part` is what it waited for, and hands over its own value or error."""
        try:
            ended = part is not None and part.cancelled()
            awaited = request.throw(CancelledError()) if ended else request.send(None)
        except StopIteration:
            return
        if awaited is None:
            self._loop.call_soon_threadsafe(self._adopt, request, copy_context())
        else:
            awaited.add_done_callback(partial(self._go_on, request), context=_OF_A_REQUEST)

    def _adopt(self, request: Request, context: Context) -> None:
        task = self._loop.create_task(request, context=context)
        self._tasks.add(task)  # the loop itself would let it go
        task.add_done_callback(self._tasks.discard)


class Behind:
    """An RSGI application whose own loop is the real one, whatever loop its server has.

    `when_served` is called as soon as the loop runs for the requests, which is when its server has read all it reads.
    """

    def __init__(
        self, application: Any, loop: asyncio.AbstractEventLoop, *, when_served: Callable[[], None] | None = None
    ) -> None:
        self._application = application
        self._loop = loop
        self._when_served = when_served
        self.__rsgi__ = application.__rsgi__

    def __rsgi_init__(self, loop: object) -> None:
        self._application.__rsgi_init__(self._loop)
        if self._when_served is not None:
            self._loop.call_soon(self._when_served)

    def __rsgi_del__(self, loop: object) -> None:
        self._application.__rsgi_del__(self._loop)
