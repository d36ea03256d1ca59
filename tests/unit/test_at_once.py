"""Requests that run where they are handed over, and the reading of their bodies."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import Callable, Coroutine, Iterator
from contextvars import Context, ContextVar
from typing import Any

import pytest

from kubeauthn.server import limits
from kubeauthn.server.at_once import AtOnce, Behind
from kubeauthn.server.body_watch import BodyWatch
from kubeauthn.server.http_message import HeaderList, Response

colour: ContextVar[str] = ContextVar("colour", default="none")


class Part:
    """A part of a body that is still to come, as Granian has it: it goes through the loop that the server gave it."""

    def __init__(self, loop: AtOnce) -> None:
        self._loop = loop
        self._waiting: tuple[Callable[[Part], None], Context] | None = None
        self._result: bytes | Exception | None = None
        self._cancelled = False

    def __await__(self) -> Iterator[Any]:
        while self._result is None:
            yield self
        if isinstance(self._result, Exception):
            raise self._result
        return self._result

    def add_done_callback(self, callback: Callable[[Part], None], *, context: Context) -> None:
        self._waiting = callback, context

    def cancelled(self) -> bool:
        return self._cancelled

    def comes(self, result: bytes | Exception) -> None:
        self._result = result
        assert self._waiting is not None
        self._loop.call_soon_threadsafe(self._waiting[0], self, context=self._waiting[1])

    def cancel(self) -> None:
        self._cancelled = True
        assert self._waiting is not None
        self._loop.call_soon(self._waiting[0], self, context=self._waiting[1])


class Protocol:
    """Of one request: all of its body in one part, or part by part."""

    def __init__(self, *parts: Part) -> None:
        self._parts = list(parts)

    def __call__(self) -> Part:
        return self._parts.pop(0)

    def __aiter__(self) -> Protocol:
        return self

    def __anext__(self) -> Part:
        if not self._parts:
            raise StopAsyncIteration
        return self._parts.pop(0)


@pytest.fixture
def loop() -> Iterator[asyncio.AbstractEventLoop]:
    made = asyncio.new_event_loop()
    yield made
    made.close()


def begun(loop: asyncio.AbstractEventLoop) -> tuple[AtOnce, list[object], Callable[[Coroutine[Any, Any, Any]], None]]:
    """A loop, the list of what came of the requests, and what hands a request over."""
    at_once, results = AtOnce(loop), list[object]()

    async def noted(work: Coroutine[Any, Any, Any]) -> None:
        try:
            results.append(await work)
        except BaseException as error:
            results.append(error)

    return (
        at_once,
        results,
        lambda work: at_once.call_soon_threadsafe(at_once.create_task, noted(work), context=Context()),
    )


def turned(loop: asyncio.AbstractEventLoop, times: int = 5) -> None:
    async def turns() -> None:
        for _ in range(times):
            await asyncio.sleep(0)

    loop.run_until_complete(turns())


def test_a_request_is_answered_without_a_turn_of_the_loop(loop: asyncio.AbstractEventLoop):
    at_once, results, hand_over = begun(loop)
    part = Part(at_once)

    async def answer() -> bytes:
        return await part  # type: ignore[no-any-return]

    hand_over(answer())
    assert results == []
    part.comes(b"body")
    assert results == [b"body"]


def test_what_a_part_raises_is_raised_where_it_is_waited_for(loop: asyncio.AbstractEventLoop):
    at_once, results, hand_over = begun(loop)
    part = Part(at_once)

    async def answer() -> bytes:
        with pytest.raises(RuntimeError, match="gone"):
            await part
        return b"told"

    hand_over(answer())
    part.comes(RuntimeError("gone"))
    assert results == [b"told"]


def test_after_a_bare_yield_it_is_a_task_of_the_loop_with_its_own_context(loop: asyncio.AbstractEventLoop):
    _, results, hand_over = begun(loop)

    async def answer(name: str) -> tuple[bool, str]:
        colour.set(name)
        await asyncio.sleep(0)
        before = asyncio.current_task() is not None and asyncio.get_running_loop() is loop
        await asyncio.sleep(0.001)
        return before, colour.get()

    for name in ("red", "blue"):
        hand_over(answer(name))
    assert results == []
    loop.run_until_complete(asyncio.sleep(0.05))
    assert sorted(map(str, results)) == sorted(map(str, [(True, "red"), (True, "blue")]))


def test_what_is_no_request_waits_for_the_loop(loop: asyncio.AbstractEventLoop):
    at_once, called = AtOnce(loop), list[int]()
    at_once.call_soon_threadsafe(called.append, 1)
    assert called == []
    turned(loop)
    assert called == [1]


def test_an_application_starts_and_ends_with_the_real_loop(loop: asyncio.AbstractEventLoop):
    seen: list[object] = []

    class Application:
        async def __rsgi__(self, scope: Any, protocol: Any) -> None:
            """Not asked here."""

        def __rsgi_init__(self, given: object) -> None:
            seen.append(given)

        __rsgi_del__ = __rsgi_init__

    behind = Behind(Application(), loop)
    behind.__rsgi_init__(AtOnce(loop))
    behind.__rsgi_del__(AtOnce(loop))
    assert seen == [loop, loop]


# Bodies


def read(watch: BodyWatch, protocol: Protocol, **headers: str) -> Coroutine[Any, Any, bytes | Response]:
    return watch.read(protocol, HeaderList([(name.replace("_", "-"), value) for name, value in headers.items()]))


def status_of(result: object) -> int:
    assert isinstance(result, Response)
    return result.status


def test_a_body_in_one_part_and_in_many(loop: asyncio.AbstractEventLoop):
    at_once, results, hand_over = begun(loop)
    watch = BodyWatch()
    parts = [Part(at_once) for _ in range(3)]
    hand_over(read(watch, Protocol(parts[0]), content_length="5"))
    parts[0].comes(b"whole")
    hand_over(read(watch, Protocol(*parts[1:])))
    parts[1].comes(b"in ")
    parts[2].comes(b"two")
    assert results == [b"whole", b"in two"]


@pytest.mark.parametrize("declared", [{"content_length": "9"}, {}])
def test_a_body_that_takes_too_long_is_not_waited_for(loop: asyncio.AbstractEventLoop, declared: dict[str, str]):
    at_once, results, hand_over = begun(loop)
    watch = BodyWatch()
    slow, late = Part(at_once), Part(at_once)
    hand_over(read(watch, Protocol(slow), **declared))
    for look in range(int(limits.BODY_SECONDS) + 1):
        assert results == []
        if look == 5:
            hand_over(read(watch, Protocol(late), **declared))
        watch.look()
    turned(loop)
    assert [status_of(result) for result in results] == [408]  # and the other one has still some time
    late.comes(b"")
    assert results[1:] == [b""]


def test_a_body_without_an_end_is_not_kept(loop: asyncio.AbstractEventLoop):
    at_once, results, hand_over = begun(loop)
    parts = [Part(at_once) for _ in range(3)]
    hand_over(read(BodyWatch(), Protocol(*parts)))
    for part in parts[:2]:
        part.comes(b" " * (limits.BODY_BYTES // 2 + 1))
    assert [status_of(result) for result in results] == [413]


def test_large_bodies_have_one_bound_together_and_small_ones_are_not_kept_out(
    loop: asyncio.AbstractEventLoop, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(limits, "BODIES_BYTES", 20_000)
    at_once, results, hand_over = begun(loop)
    watch = BodyWatch()
    first, second, small, end, third = (Part(at_once) for _ in range(5))
    hand_over(read(watch, Protocol(first, end), content_length="15000"))
    first.comes(b"1" * 15_000)
    hand_over(read(watch, Protocol(second)))
    second.comes(b"2" * 5_001)
    assert [status_of(result) for result in results] == [429]
    hand_over(read(watch, Protocol(small), content_length="8000"))
    small.comes(b"s" * 8_000)
    end.comes(RuntimeError("gone"))  # what ends makes room, however it ends
    hand_over(read(watch, Protocol(third)))
    third.comes(b"3" * 20_000)
    assert [one if isinstance(one, bytes) else one.status for one in results[1:]] == [b"s" * 8_000, 400, b"3" * 20_000]


def test_a_client_that_is_gone(loop: asyncio.AbstractEventLoop):
    at_once, results, hand_over = begun(loop)
    part = Part(at_once)
    hand_over(read(BodyWatch(), Protocol(part), content_length="9"))
    part.comes(RuntimeError("stream"))
    assert [status_of(result) for result in results] == [400]


def test_an_end_that_is_not_ours_is_not_taken_for_a_slow_body(loop: asyncio.AbstractEventLoop):
    at_once, results, hand_over = begun(loop)
    part = Part(at_once)
    hand_over(read(BodyWatch(), Protocol(part), content_length="9"))
    part.cancel()
    turned(loop)
    assert [type(result) for result in results] == [asyncio.CancelledError]


def test_an_end_that_is_told_before_anybody_is_served_is_not_lost() -> None:
    loop = asyncio.new_event_loop()
    at_once, told = AtOnce(loop), []
    at_once.add_signal_handler(signal.SIGUSR1, told.append, "end")
    try:
        os.kill(os.getpid(), signal.SIGUSR1)
        loop.run_until_complete(asyncio.sleep(0.05))  # while the application starts, Granian is not there yet
        assert told == []
        at_once.run_until_complete(asyncio.sleep(0.05))
        assert told == ["end"]
    finally:
        loop.remove_signal_handler(signal.SIGUSR1)
        loop.close()
