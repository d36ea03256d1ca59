"""The time that an evaluation may take: what loops ask now and then, and functions that do much in one call."""

from __future__ import annotations

from collections.abc import Callable
from time import monotonic

from .errors import LimitError
from .limits import CLOCK_STRIDE

__all__ = ["NEVER", "look_at_clock", "new_tick"]

NEVER = float("inf")


def look_at_clock(deadline: float) -> None:
    """Raises after that time."""
    if monotonic() > deadline:
        raise LimitError("operation interrupted")


def new_tick(limit: int, seconds: float) -> Callable[[int, float], tuple[int, float]]:
    """The function that loops call now and then: raises at the limits, else says when to call again."""

    def tick(cost: int, deadline: float) -> tuple[int, float]:
        if cost > limit:
            raise LimitError("operation cancelled: actual cost limit exceeded")
        now = monotonic()
        if not deadline:
            deadline = now + seconds
        elif now > deadline:
            raise LimitError("operation interrupted")
        return min(limit, cost + CLOCK_STRIDE), deadline

    return tick
