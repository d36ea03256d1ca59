"""How many a listener lets in, and who counts."""

from __future__ import annotations

import asyncio
import socket
from contextlib import ExitStack, suppress
from typing import Any

import pytest

from kubeauthn._io.carrier import listener
from kubeauthn._io.carrier.one_run import OneRunAuthority, listening_context

SECONDS = 30


class Connection:
    aborted = False

    def abort(self) -> None:
        self.aborted = True


def made() -> Any:
    authority = OneRunAuthority("test")
    return listener.Listener(None, listening_context(authority.server(), authority.certificate))  # type: ignore[arg-type]


def test_one_connection_too_many_is_ended():
    async def run() -> None:
        listening = made()
        connections = [Connection() for _ in range(listener.CONNECTIONS + 1)]
        for connection in connections:
            listening.opened(connection)
        assert [connection.aborted for connection in connections] == [False] * listener.CONNECTIONS + [True]

    asyncio.run(run())


async def without_a_certificate(port: int) -> socket.socket:
    plain = socket.socket()
    plain.setblocking(False)
    await asyncio.get_running_loop().sock_connect(plain, ("127.0.0.1", port))
    return plain


async def until(listening: listener.Listener, count: int) -> None:
    while listening.shaking_hands != count:
        await asyncio.sleep(0.01)


def test_those_who_show_no_certificate_are_bounded_and_the_oldest_makes_room():
    async def run(stack: ExitStack) -> None:
        loop = asyncio.get_running_loop()
        listening = made()
        port = await listening.on_loopback()
        waiting = []
        for count in range(1, listener.SHAKING_HANDS + 1):
            waiting.append(stack.enter_context(await without_a_certificate(port)))
            await until(listening, count)
        stack.enter_context(await without_a_certificate(port))
        with suppress(ConnectionResetError):  # or an end: both say the same
            assert await loop.sock_recv(waiting[0], 1) == b""
        assert listening.shaking_hands == listener.SHAKING_HANDS
        with pytest.raises(BlockingIOError):
            waiting[1].recv(1)
        waiting[1].close()
        await until(listening, listener.SHAKING_HANDS - 1)
        stack.close()
        await until(listening, 0)
        listening.stop()

    with ExitStack() as stack:
        asyncio.run(asyncio.wait_for(run(stack), SECONDS))


def test_more_at_once_than_there_are_places():
    async def run(stack: ExitStack) -> None:
        listening = made()
        port = await listening.on_loopback()
        for _ in range(2 * listener.SHAKING_HANDS):  # the loop has not run in between: all are accepted in one turn
            stack.enter_context(socket.create_connection(("127.0.0.1", port), SECONDS))
        await until(listening, listener.SHAKING_HANDS)
        stack.close()
        await until(listening, 0)
        listening.stop()

    with ExitStack() as stack:
        asyncio.run(asyncio.wait_for(run(stack), SECONDS))


def test_who_never_got_in_does_not_keep_it_alive():
    async def run() -> None:
        listening = made()
        port = await listening.on_loopback()
        await asyncio.sleep(0.2)
        with await without_a_certificate(port):
            await until(listening, 1)
        await until(listening, 0)
        assert listening.idle_seconds() >= 0.2
        listening.stop()

    asyncio.run(asyncio.wait_for(run(), SECONDS))
