"""When the connections of an old certificate are closed. The moments in question are short, so they are played."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace

import pytest

from kubeauthn.client._httpx_connections import Connections


class Connection:
    def __init__(self, *, idle: bool) -> None:
        self.idle = idle
        self.closed = False

    def is_idle(self) -> bool:
        return self.idle and not self.closed

    def close(self) -> None:
        self.closed = True

    async def aclose(self) -> None:
        await asyncio.sleep(0)
        self.closed = True


def pool_of(*connections: Connection) -> Connections:
    return Connections(SimpleNamespace(_pool=SimpleNamespace(connections=list(connections))))


def close_idle(connections: Connections, colour: str) -> None:
    if colour == "sync":
        connections.close_idle()
    else:
        asyncio.run(connections.close_idle_async())


both_colours = pytest.mark.parametrize("colour", ["sync", "async"])


@both_colours
def test_idle_ones_are_closed_and_busy_ones_are_not(colour: str):
    idle, busy = Connection(idle=True), Connection(idle=False)
    close_idle(pool_of(idle, busy), colour)
    assert idle.closed
    assert not busy.closed


@both_colours
def test_nothing_is_closed_while_a_request_goes_out(colour: str):
    """The request may have been given this very connection, which is idle until the first byte is written."""
    given = Connection(idle=True)
    connections = pool_of(given)
    connections.take()
    close_idle(connections, colour)
    assert not given.closed
    connections.taken()
    close_idle(connections, colour)
    assert given.closed


@both_colours
def test_one_that_cannot_be_closed_does_not_keep_the_others(colour: str):
    class Broken(Connection):
        def close(self) -> None:
            raise OSError("broken")

        async def aclose(self) -> None:
            raise OSError("broken")

    other = Connection(idle=True)
    close_idle(pool_of(Broken(idle=True), other), colour)
    assert other.closed


def test_one_that_is_taken_while_another_is_being_closed_is_left_alone():
    class Slow(Connection):
        async def aclose(self) -> None:
            taken.idle = False
            await super().aclose()

    taken = Connection(idle=True)
    asyncio.run(pool_of(Slow(idle=True), taken).close_idle_async())
    assert not taken.closed
