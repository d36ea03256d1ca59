"""What the wires of one event loop have to send.

A send wakes whoever waits for it, and on a busy machine that process takes our place at once. With many connections,
what is small goes out together, behind the turn of the loop that it was made in: the other side is woken once for
all of it. With few connections there is nothing to gain, and each is sent at once.
"""

from __future__ import annotations

import asyncio
from typing import Protocol
from weakref import WeakKeyDictionary

FEW_WIRES = 8
"""Four connections that are carried: each has a wire to the client and one to the server."""


class Sender(Protocol):
    def send_waiting(self) -> None: ...


class Outbox:
    __slots__ = ("__weakref__", "_loop", "_waiting", "wires")

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._waiting: list[Sender] = []
        self.wires = 0
        """How many are open."""

    @property
    def is_worthwhile(self) -> bool:
        return self.wires > FEW_WIRES

    def send_later(self, wire: Sender) -> None:
        if not self._waiting:
            self._loop.call_soon(self._send)
        self._waiting.append(wire)

    def _send(self) -> None:
        waiting, self._waiting = self._waiting, []
        for wire in waiting:
            wire.send_waiting()


_outboxes: WeakKeyDictionary[asyncio.AbstractEventLoop, Outbox] = WeakKeyDictionary()


def outbox_of(loop: asyncio.AbstractEventLoop) -> Outbox:
    outbox = _outboxes.get(loop)
    if outbox is None:
        outbox = _outboxes[loop] = Outbox(loop)
    return outbox
