"""Who may be read and who must wait, between two connections that are not there."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

from kubeauthn._io.carrier.downstream import LINGER_LONGEST_SECONDS, LINGER_SECONDS, Downstream
from kubeauthn._io.carrier.exchange import HELD_BYTES
from kubeauthn._io.carrier.plan import Asked, Plan
from kubeauthn._io.carrier.upstream import Upstream

ROOM = 1000


class FakeWire:
    """Takes what is written, and says at once when it is too much."""

    def __init__(self, end: Any) -> None:
        self.end = end
        self.written = b""
        self.waiting = 0
        self.paused = self.closed = self.aborted = False

    def write(self, data: bytes | memoryview) -> None:
        self.written += data
        full_before = self.waiting > ROOM
        self.waiting += len(data)
        if self.waiting > ROOM and not full_before:
            self.end.hold()

    def drained(self) -> None:
        self.waiting = 0
        self.end.go_on()

    def pause_reading(self) -> None:
        self.paused = True

    def resume_reading(self) -> None:
        self.paused = False

    def write_eof(self) -> None: ...
    def close(self) -> None:
        self.closed = True

    def abort(self) -> None:
        self.closed = self.aborted = True


class FakePool:
    """Hands out one connection when it is told to, and again whenever it was given back."""

    def __init__(self) -> None:
        self.reached = asyncio.Event()
        self.upstream = Upstream(self)  # type: ignore[arg-type]
        self.wire = FakeWire(self.upstream)
        self.upstream.connected(self.wire)
        self.idle: list[Upstream] = []

    def take(self) -> Upstream | None:
        return self.idle.pop() if self.idle else None

    async def open(self) -> Upstream:
        await self.reached.wait()
        return self.upstream

    def give_back(self, upstream: Upstream) -> None:
        self.idle.append(upstream)


class Scene:
    def __init__(self) -> None:
        self.pool = FakePool()
        listener = SimpleNamespace(route=self, opened=lambda _: None, closed=lambda _: None)
        self.down = Downstream(listener)  # type: ignore[arg-type]
        self.wire = FakeWire(self.down)
        self.down.connected(self.wire)

    def plan(self, asked: Asked) -> Plan:
        return Plan(self.pool, asked.head.target)  # type: ignore[arg-type]

    def answered(self, plan: Plan, status: int) -> None: ...

    async def reached(self) -> None:
        self.pool.reached.set()
        await settled()


async def settled() -> None:
    for _ in range(5):
        await asyncio.sleep(0)


def running(test: Callable[[Scene], Any]) -> None:
    async def run() -> None:
        await test(Scene())

    asyncio.run(run())


GET = b"GET /a HTTP/1.1\r\nHost: a\r\n\r\n"


def answer(size: int) -> bytes:
    return b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % size + bytes(size)


def test_a_body_that_came_early_and_fills_the_servers_connection_keeps_the_client_waiting():
    async def test(scene: Scene) -> None:
        scene.down.received(b"PUT /a HTTP/1.1\r\nHost: a\r\nContent-Length: 9000000\r\n\r\n")
        scene.down.received(memoryview(bytes(HELD_BYTES + 1)))
        assert scene.wire.paused
        await scene.reached()
        assert scene.pool.wire.waiting > ROOM
        assert scene.wire.paused
        scene.pool.wire.drained()
        assert not scene.wire.paused

    running(test)


def test_the_servers_connection_is_read_again_after_an_answer_that_the_client_does_not_take():
    async def test(scene: Scene) -> None:
        scene.down.received(GET)
        await scene.reached()
        scene.pool.upstream.received(answer(2 * ROOM))
        assert scene.pool.idle == [scene.pool.upstream]
        assert not scene.pool.wire.paused

    running(test)


def test_a_client_that_does_not_take_its_answer_gets_no_other():
    async def test(scene: Scene) -> None:
        scene.down.received(GET + GET)
        await scene.reached()
        scene.pool.upstream.received(answer(2 * ROOM))
        await settled()
        assert scene.wire.paused
        assert scene.pool.wire.written.count(b"GET") == 1
        scene.wire.drained()
        await settled()
        assert not scene.wire.paused
        assert scene.pool.wire.written.count(b"GET") == 2

    running(test)


def test_a_connection_that_still_has_to_send_is_not_used_again():
    """The server answered without reading: what waits there would be in front of the next request."""

    async def test(scene: Scene) -> None:
        scene.down.received(b"PUT /a HTTP/1.1\r\nHost: a\r\nContent-Length: 5000\r\n\r\n" + bytes(5000))
        await scene.reached()
        scene.pool.upstream.received(answer(2))
        assert scene.pool.idle == []
        assert scene.pool.wire.closed
        assert scene.wire.written.endswith(bytes(2))

    running(test)


def test_what_is_kept_of_a_body_is_a_copy():
    """What comes is a view of a buffer that all connections share."""

    async def test(scene: Scene) -> None:
        shared = bytearray(b"first")
        scene.down.received(b"PUT /a HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\n")
        scene.down.received(memoryview(shared))
        shared[:] = b"other"
        await scene.reached()
        assert scene.pool.wire.written.endswith(b"\r\n\r\nfirst")

    running(test)


class JumpingLoop(asyncio.SelectorEventLoop):
    """Its clock goes on by itself, and by what a test adds."""

    ahead = 0.0

    def time(self) -> float:
        return super().time() + self.ahead


def test_a_client_that_never_stops_sending_is_parted_from():
    """It has its answer, and is listened to for as long as it goes on, but not for ever."""
    loop = JumpingLoop()

    async def seconds_heard(silent_after: float) -> float:
        scene = Scene()
        scene.down.received(b"no request\r\n\r\n")
        assert scene.wire.written.startswith(b"HTTP/1.1 400")
        began = loop.time()
        while not scene.wire.closed:
            if loop.time() - began < silent_after:
                scene.down.received(b"more")
            loop.ahead += 0.5
            await asyncio.sleep(0)
            await asyncio.sleep(0)
            assert loop.time() - began < 100
        return loop.time() - began

    try:
        assert LINGER_SECONDS <= loop.run_until_complete(seconds_heard(0)) < LINGER_SECONDS + 2
        assert 10 < loop.run_until_complete(seconds_heard(10)) < 10 + 2 * LINGER_SECONDS + 1
        assert LINGER_LONGEST_SECONDS <= loop.run_until_complete(seconds_heard(100)) < LINGER_LONGEST_SECONDS + 4
    finally:
        loop.close()
