"""A WebSocket that is over when its token is: for who waits, and for who only sends."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from kubeauthn.server.websocket_expiry import UNAUTHORIZED, closing_at


class Wire:
    """The server's end: what it would deliver, and what it was sent."""

    def __init__(self, *incoming: str) -> None:
        self._incoming = [{"type": kind} for kind in incoming]
        self.sent: list[Any] = []

    async def receive(self) -> Any:
        if self._incoming:
            return self._incoming.pop(0)
        await asyncio.Event().wait()

    async def send(self, message: Any) -> None:
        self.sent.append(message)

    def kinds(self) -> list[str]:
        return [message["type"] for message in self.sent]


def test_who_waits_is_told_and_the_client_is_closed_once():
    wire = Wire("websocket.connect", "websocket.receive")

    async def run() -> list[Any]:
        receive, send = closing_at(0.05, wire.receive, wire.send)
        got = [await receive(), await receive()]
        await send({"type": "websocket.accept"})
        got += [await receive(), await receive()]
        with pytest.raises(OSError, match="expired"):
            await send({"type": "websocket.send"})
        return got

    got = [message["type"] for message in asyncio.run(run())]
    assert got == ["websocket.connect", "websocket.receive", "websocket.disconnect", "websocket.disconnect"]
    assert wire.kinds() == ["websocket.accept", "websocket.close"]
    assert wire.sent[-1]["code"] == UNAUTHORIZED


def test_who_only_sends_finds_it_closed():
    wire = Wire("websocket.connect")

    async def run() -> None:
        receive, send = closing_at(-1, wire.receive, wire.send)
        await receive()
        with pytest.raises(OSError, match="expired"):
            await send({"type": "websocket.send"})

    asyncio.run(run())
    assert wire.kinds() == ["websocket.close"]


def test_a_close_of_the_application_is_its_own():
    wire = Wire("websocket.connect")

    async def run() -> None:
        receive, send = closing_at(-1, wire.receive, wire.send)
        await receive()
        await send({"type": "websocket.close", "code": 1000})

    asyncio.run(run())
    assert wire.sent == [{"type": "websocket.close", "code": 1000}]
