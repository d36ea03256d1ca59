"""One question at a time, whose answer all share who ask for it meanwhile."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Generic, TypeVar

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

Answer = TypeVar("Answer")


class SharedAnswer(Generic[Answer]):
    """Whoever asks while a question is under way shares the next one with all others who do: nobody is told of a time
    before he asked, and however many ask, there is one question under way and one that waits."""

    def __init__(self, ask: Callable[[], Awaitable[Answer]]) -> None:
        self._ask = ask
        self._under_way: asyncio.Task[Answer] | None = None
        self._next: asyncio.Task[Answer] | None = None

    async def get(self) -> Answer:
        if self._next is None:
            self._next = asyncio.ensure_future(self._asked_after(self._under_way))
            self._next.add_done_callback(_seen)
        # Shielded: one caller who goes away must not end it for the others.
        return await asyncio.shield(self._next)

    async def _asked_after(self, before: asyncio.Task[Answer] | None) -> Answer:
        if before is not None:
            await asyncio.wait([before])
        self._under_way, self._next = self._next, None
        return await self._ask()


def _seen(done: asyncio.Task[Answer]) -> None:
    """Its error is for those who wait; nobody may, by then."""
    if not done.cancelled():
        done.exception()
