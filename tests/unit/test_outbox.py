"""What many wires send together, and what they never hold back."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

import pytest

from kubeauthn._io.carrier.outbox import FEW_WIRES, outbox_of
from kubeauthn._io.carrier.wires import TlsWire
from tests.unit.test_wires import Above, Below, shaken

Scene = Callable[[TlsWire, Below, Above, TlsWire], Awaitable[None]]


def with_many_wires(scene: Scene) -> None:
    async def run() -> None:
        others = [shaken(Above()) for _ in range(FEW_WIRES // 2)]
        above = Above()
        client, below, server, _ = shaken(above)
        await asyncio.sleep(0)
        below.take()
        assert outbox_of(asyncio.get_running_loop()).wires == 2 * len(others) + 2
        await scene(client, below, above, server)

    asyncio.run(run())


def test_small_writes_of_one_turn_go_out_together_and_in_order():
    async def scene(client: TlsWire, below: Below, above: Above, server: TlsWire) -> None:
        client.write(b"one ")
        client.write(b"two ")
        assert below.written == b""
        await asyncio.sleep(0)
        server.came(below.take())
        client.write(b"three")
        await asyncio.sleep(0)
        server.came(below.take())
        assert b"".join(above.heard) == b"one two three"

    with_many_wires(scene)


def test_what_is_large_goes_at_once_and_behind_what_waited():
    async def scene(client: TlsWire, below: Below, above: Above, server: TlsWire) -> None:
        client.write(b"first ")
        client.write(b"x" * 100_000)
        sent = below.take()
        assert len(sent) > 100_000
        await asyncio.sleep(0)
        assert below.take() == b""
        server.came(sent)
        assert b"".join(above.heard) == b"first " + b"x" * 100_000

    with_many_wires(scene)


@pytest.mark.parametrize("end", ["close", "write_eof"])
def test_last_words_go_out_before_the_end(end: str):
    async def scene(client: TlsWire, below: Below, above: Above, server: TlsWire) -> None:
        client.write(b"last words")
        getattr(client, end)()
        server.came(below.take())
        assert above.heard == [b"last words", "ended"]

    with_many_wires(scene)


def test_a_wire_that_was_broken_off_sends_nothing_more():
    async def scene(client: TlsWire, below: Below, above: Above, server: TlsWire) -> None:
        client.write(b"never")
        client.abort()
        await asyncio.sleep(0)
        assert below.take() == b""

    with_many_wires(scene)


def test_a_wire_that_is_gone_is_counted_no_more():
    async def scene(client: TlsWire, below: Below, above: Above, server: TlsWire) -> None:
        outbox = outbox_of(asyncio.get_running_loop())
        before = outbox.wires
        client.abort()
        for _ in range(2):
            client.connection_lost(None)
        assert outbox.wires == before - 1

    with_many_wires(scene)


def test_with_few_wires_each_write_goes_at_once():
    async def run() -> None:
        above = Above()
        client, below, server, _ = shaken(above)
        client.write(b"now")
        server.came(below.take())
        assert above.heard == [b"now"]

    asyncio.run(run())
