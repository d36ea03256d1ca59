"""Nothing on a connection is taken for what it is not: no body for an answer, no rest of a message for a request."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from kubeauthn._io.carrier.plan import Asked, Plan
from kubeauthn._io.carrier.upstream import Upstream
from kubeauthn.errors import UpstreamError
from tests.unit.test_carrier_pressure import GET, FakePool, FakeWire, Scene, answer, running, settled

UPGRADE = b"GET /a HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n"
DELETE = b"DELETE /b HTTP/1.1\r\nHost: a\r\n\r\n"
SWITCHED = b"HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n"


class NobodyThere(FakePool):
    async def open(self) -> Upstream:
        raise UpstreamError("nobody is there")


class Refusing(Scene):
    """The server cannot be reached, so the carrier answers itself."""

    def __init__(self) -> None:
        super().__init__()
        self.pool = NobodyThere()

    async def unreachable(self, asked: Asked, failed: Plan, reason: str) -> None:
        return None


def test_a_refusal_of_head_has_no_body():
    """The client would read it as the beginning of its next answer."""

    async def run() -> bytes:
        scene = Refusing()
        scene.down.received(b"HEAD /a HTTP/1.1\r\nHost: a\r\n\r\n")
        await settled()
        assert not scene.wire.closed
        return scene.wire.written

    head, blank, body = asyncio.run(run()).partition(b"\r\n\r\n")
    assert head.startswith(b"HTTP/1.1 502 ")
    assert blank
    assert body == b""


def test_what_follows_an_upgrade_that_the_carrier_refused_is_not_a_request():
    async def run() -> FakeWire:
        scene = Refusing()
        scene.down.received(UPGRADE + DELETE)
        await settled()
        await settled()
        return scene.wire

    wire = asyncio.run(run())
    assert wire.written.count(b"HTTP/1.1 502 ") == 1
    assert b"Connection: close" in wire.written
    assert wire.closed


def test_what_comes_while_a_request_waits_is_read_behind_it():
    """The body of a waiting request looks like a request. It comes between the last answer and the next turn."""

    async def test(scene: Scene) -> None:
        scene.down.received(GET + b"POST /b HTTP/1.1\r\nHost: a\r\nContent-Length: %d\r\n\r\n" % len(DELETE))
        await scene.reached()
        scene.pool.upstream.received(answer(2))
        scene.down.received(DELETE)
        await settled()
        _, post, rest = scene.pool.wire.written.partition(b"POST /b ")
        assert post
        assert rest.endswith(b"\r\n\r\n" + DELETE)
        assert rest.startswith(b"HTTP/1.1\r\n")
        assert not scene.pool.idle  # it is the body: the answer is still to come

    running(test)


def test_a_server_that_switches_unasked_says_nothing_more():
    async def test(scene: Scene) -> None:
        scene.down.received(GET)
        await scene.reached()
        scene.pool.upstream.received(SWITCHED)
        assert scene.pool.wire.aborted
        scene.pool.upstream.received(b"HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\nforged")
        assert scene.wire.written.startswith(b"HTTP/1.1 502 ")
        assert b"forged" not in scene.wire.written

    running(test)


def test_the_rest_of_an_upload_is_not_waited_for_once_the_answer_is_whole():
    """The server takes no more. An orderly end would keep the connection, and what waits in it, for ever."""

    async def test(scene: Scene) -> None:
        scene.down.received(b"PUT /a HTTP/1.1\r\nHost: a\r\nContent-Length: 9000\r\n\r\n" + bytes(2000))
        await scene.reached()
        scene.pool.upstream.received(b"HTTP/1.1 413 Content Too Large\r\nContent-Length: 2\r\n\r\nno")
        assert scene.pool.wire.aborted
        assert scene.wire.written.endswith(b"no")
        assert b"Connection: close" in scene.wire.written

    running(test)


class Stale(FakePool):
    """Its first connection is one that was used before; the others are new."""

    def __init__(self) -> None:
        super().__init__()
        self.upstream.reused = True
        self.idle.append(self.upstream)
        self.fresh: list[tuple[Upstream, FakeWire]] = []

    async def open(self) -> Upstream:
        upstream = Upstream(self)  # type: ignore[arg-type]
        wire = FakeWire(upstream)
        upstream.connected(wire)  # type: ignore[arg-type]
        self.fresh.append((upstream, wire))
        return upstream


class Renewing(Scene):
    def __init__(self) -> None:
        super().__init__()
        self.pool: Stale = Stale()
        self.renewals = 0

    def plan(self, asked: Asked) -> Plan:
        return Plan(self.pool, asked.head.target, renewable=True)  # type: ignore[arg-type]

    async def renewed(self, asked: Any, refused: Plan) -> Plan:
        self.renewals += 1
        return self.plan(asked)


@pytest.mark.parametrize(
    "begun", [b"HTTP/1.1 2", b"HTTP/1.1 103 Early\r\n\r\n", b"nonsense\r\n\r\n"], ids=["a head", "1xx", "nonsense"]
)
def test_a_request_whose_answer_began_is_not_repeated(begun: bytes):
    async def run() -> None:
        scene = Renewing()
        scene.down.received(GET)
        scene.pool.upstream.received(begun)
        scene.pool.upstream.lost(None)
        await settled()
        assert scene.pool.fresh == []
        assert b"HTTP/1.1 502 " in scene.wire.written

    asyncio.run(run())


def test_a_connection_that_was_stale_does_not_cost_the_renewal():
    async def run() -> None:
        scene = Renewing()
        scene.down.received(GET)
        scene.pool.upstream.lost(None)
        await settled()
        (first, _) = scene.pool.fresh[0]
        first.received(b"HTTP/1.1 401 Unauthorized\r\nContent-Length: 0\r\n\r\n")
        await settled()
        assert scene.renewals == 1
        (second, _) = scene.pool.fresh[1]
        second.received(answer(2))
        assert scene.wire.written.startswith(b"HTTP/1.1 200 ")

    asyncio.run(run())
