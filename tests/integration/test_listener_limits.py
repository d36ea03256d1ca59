"""How many a listener lets in, and who counts."""

from __future__ import annotations

import asyncio
import os
import socket
import subprocess
import sys
from contextlib import ExitStack, suppress
from subprocess import PIPE
from typing import Any

import pytest

from kubeauthn._io.carrier import door, listener
from kubeauthn._io.carrier.one_run import OneRunAuthority, listening_context

SECONDS = 30
OTHER_USER = 65534
root_only = pytest.mark.skipif(os.geteuid() != 0, reason="needs root to become another user")


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


CROWD = """
import encodings.idna, os, resource, socket, sys  # all while it can still be read
os.setgid({user}); os.setuid({user})
resource.setrlimit(resource.RLIMIT_NOFILE, (1024, 1024))
held = []
for _ in range(600):
    held.append(socket.socket())
    try:
        held[-1].connect(("127.0.0.1", int(sys.argv[1])))
    except ConnectionError:
        pass  # turned away at once
print(flush=True)
def is_open(each):
    each.setblocking(False)
    try:
        return bool(each.recv(1))
    except BlockingIOError:
        return True
    except OSError:
        return False
while sys.stdin.readline():
    print(sum(map(is_open, held)), flush=True)
"""


async def crowd_at(port: int, stack: ExitStack) -> subprocess.Popen[bytes]:
    command = [sys.executable, "-c", CROWD.format(user=OTHER_USER), str(port)]
    crowd = stack.enter_context(subprocess.Popen(command, stdin=PIPE, stdout=PIPE))
    assert crowd.stdout is not None
    assert await asyncio.to_thread(crowd.stdout.readline) == b"\n"
    return crowd


async def left_of(crowd: subprocess.Popen[bytes]) -> bytes:
    """How many of its connections still stand."""
    assert crowd.stdin is not None
    assert crowd.stdout is not None
    crowd.stdin.write(b"\n")
    crowd.stdin.flush()
    return await asyncio.to_thread(crowd.stdout.readline)


@root_only
def test_in_a_crowd_other_users_are_turned_away_and_this_users_oldest_stays():
    async def run(stack: ExitStack) -> int:
        listening = made()
        port = await listening.on_loopback()
        mine = stack.enter_context(await without_a_certificate(port))
        await until(listening, 1)
        crowd = await crowd_at(port, stack)
        late = stack.enter_context(await without_a_certificate(port))
        told = await left_of(crowd)
        assert crowd.stdin is not None
        crowd.stdin.close()
        for own in (mine, late):
            with pytest.raises(BlockingIOError):
                own.recv(1)
        stack.close()
        await until(listening, 0)
        listening.stop()
        return int(told)

    with ExitStack() as stack:
        assert 0 < asyncio.run(asyncio.wait_for(run(stack), SECONDS)) <= 3 * door.CROWD


@root_only
def test_this_users_own_stay_when_all_places_are_taken(monkeypatch: pytest.MonkeyPatch):
    """As it is where the first of a crowd came in, be it over minutes, before it was one."""
    monkeypatch.setattr(door, "is_this_users", lambda *_: None)

    async def run(stack: ExitStack) -> None:
        listening = made()
        port = await listening.on_loopback()
        mine = stack.enter_context(await without_a_certificate(port))
        await until(listening, 1)
        crowd = await crowd_at(port, stack)
        while int(await left_of(crowd)) >= listener.SHAKING_HANDS:
            await asyncio.sleep(0.05)
        assert listening.shaking_hands == listener.SHAKING_HANDS
        with pytest.raises(BlockingIOError):
            mine.recv(1)
        assert crowd.stdin is not None
        crowd.stdin.close()
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
