"""Waiting for something another thread does: polled, and never for ever."""

from __future__ import annotations

import asyncio
import time
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable

T = TypeVar("T")

POLL_SECONDS = 0.005


def wait_for(predicate: Callable[[], T], seconds: float = 5.0) -> T:
    """Call `predicate` until it returns something true, and return that; else `TimeoutError`."""
    deadline = time.monotonic() + seconds
    while not (value := predicate()):
        if time.monotonic() >= deadline:
            raise TimeoutError(f"what was waited for did not come in {seconds:g} s")
        time.sleep(POLL_SECONDS)
    return value


async def wait_for_async(predicate: Callable[[], T], seconds: float = 5.0) -> T:
    """The same without blocking the event loop."""
    deadline = time.monotonic() + seconds
    while not (value := predicate()):
        if time.monotonic() >= deadline:
            raise TimeoutError(f"what was waited for did not come in {seconds:g} s")
        await asyncio.sleep(POLL_SECONDS)
    return value
