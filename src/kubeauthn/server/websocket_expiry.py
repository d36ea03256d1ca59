"""A WebSocket that ends when its token does: a session of days on a token of minutes is none."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any

Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]

UNAUTHORIZED = 3000
"""The registered close code for a session whose credential no longer holds."""


def closing_at(seconds: float, receive: Receive, send: Send) -> tuple[Receive, Send]:
    """The pair, working for this long. Then the client is sent a close and the application is told of a disconnect.

    An application that waits for a message learns it at that moment, one that only sends at its next message, which
    fails with an OSError as it does when a client is gone.
    """
    loop = asyncio.get_running_loop()
    ends = loop.time() + seconds
    connected = False  # until the application was told so, an end looks like a refusal
    closed = False

    async def close() -> None:
        nonlocal closed
        if not closed:
            closed = True
            await send({"type": "websocket.close", "code": UNAUTHORIZED, "reason": "the token is expired"})

    async def timed_receive() -> Message:
        nonlocal connected, closed
        if not connected:
            connected = True
            return await receive()
        try:
            async with asyncio.timeout_at(ends):
                message = await receive()
        except TimeoutError:
            await close()
            return {"type": "websocket.disconnect", "code": UNAUTHORIZED, "reason": "the token is expired"}
        closed = closed or message["type"] == "websocket.disconnect"
        return message

    async def timed_send(message: Message) -> None:
        nonlocal closed
        if not closed and loop.time() >= ends and message["type"] != "websocket.close":
            await close()
        if closed:
            raise OSError("the websocket was closed because its token is expired")
        closed = message["type"] == "websocket.close"
        await send(message)

    return timed_receive, timed_send
