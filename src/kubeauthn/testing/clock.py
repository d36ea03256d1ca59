"""A clock that moves when it is told to."""

from __future__ import annotations

import math
from threading import Lock

from kubeauthn.errors import UsageError


class FakeClock:
    """Called, it returns unix seconds, like `time.time`. Safe to share between threads."""

    def __init__(self, now: float = 1_700_000_000.0) -> None:
        self._lock = Lock()
        self._now = _checked(now)

    def __call__(self) -> float:
        with self._lock:
            return self._now

    def advance(self, seconds: float) -> float:
        """Move forward and return the new time. To go back, say so with `set`."""
        if not seconds >= 0:
            raise UsageError(f"a clock advances by 0 seconds or more, not by {seconds}")
        with self._lock:
            self._now = _checked(self._now + seconds)
            return self._now

    def set(self, now: float) -> None:
        """Jump to a time, forward or back."""
        checked = _checked(now)
        with self._lock:
            self._now = checked

    def __repr__(self) -> str:
        return f"FakeClock({self()!r})"


def _checked(now: float) -> float:
    if not math.isfinite(now):
        raise UsageError(f"a clock shows a finite number of seconds, not {now}")
    return float(now)
