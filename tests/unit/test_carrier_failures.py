"""Whatever fails on the way to a server, the client is answered: nobody waits for ever."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from kubeauthn._io.carrier.downstream import Downstream
from kubeauthn._io.carrier.plan import Plan
from kubeauthn._io.carrier.upstream import Upstream
from kubeauthn.errors import ProxyRefused, UpstreamError
from tests.unit.test_carrier_pressure import FakeWire


class Pool:
    """Its connection is one that answers 401, or there is none."""

    def __init__(self, failure: Exception | None) -> None:
        self.failure = failure
        self.opened = 0

    def take(self) -> None:
        return None

    async def open(self) -> Upstream:
        self.opened += 1
        if self.failure is not None:
            raise self.failure
        upstream = Upstream(self)  # type: ignore[arg-type]
        upstream.connected(FakeWire(upstream))  # type: ignore[arg-type]
        asyncio.get_running_loop().call_later(
            0.001, upstream.received, b"HTTP/1.1 401 Unauthorized\r\nContent-Length: 0\r\n\r\n"
        )
        return upstream

    def give_back(self, upstream: Upstream) -> None: ...


class Route:
    def __init__(self, pool: Pool) -> None:
        self._pool = pool

    def plan(self, asked: Any) -> Plan:
        return Plan(self._pool, b"/", renewable=True)  # type: ignore[arg-type]

    async def renewed(self, asked: Any, refused: Plan) -> Plan | None:
        raise RuntimeError("a secret")

    async def unreachable(self, asked: Any, failed: Plan, reason: str) -> Plan | None:
        raise RuntimeError("a secret")

    def answered(self, plan: Plan, status: int) -> None: ...


class Listening:
    def __init__(self, pool: Pool) -> None:
        self.route = Route(pool)

    def opened(self, connection: Downstream) -> None: ...
    def closed(self, connection: Downstream) -> None: ...


FAILURES = {
    "a renewal": (None, b"500 ", b"RuntimeError"),
    "another way": (UpstreamError("nobody is there"), b"500 ", b"RuntimeError"),
    "the dialling": (RuntimeError("a secret"), b"500 ", b"RuntimeError"),
    "a socket of somebody else": (ProxyRefused("belongs to user 7"), b"500 ", b"belongs to user 7"),
}


@pytest.mark.parametrize(("failure", "status", "said"), FAILURES.values(), ids=FAILURES)
def test_the_client_is_answered(failure: Exception | None, status: bytes, said: bytes):
    async def run() -> bytes:
        pool = Pool(failure)
        down = Downstream(Listening(pool))  # type: ignore[arg-type]
        wire = FakeWire(down)
        down.connected(wire)  # type: ignore[arg-type]
        down.received(b"GET / HTTP/1.1\r\nHost: a\r\n\r\n")
        for _ in range(200):
            if wire.written:
                break
            await asyncio.sleep(0.005)
        assert pool.opened == 1
        return wire.written

    answer = asyncio.run(run())
    assert answer.startswith(b"HTTP/1.1 " + status)
    assert said in answer
    assert b"secret" not in answer
