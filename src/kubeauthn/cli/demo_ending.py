"""How the demo is interrupted: at any moment, once, and never between starting a process and knowing of it.

Ctrl-C, a request to end and a terminal that is gone all clear up in the same way. An impatient second Ctrl-C must
not interrupt the clearing up, or something would be left behind.
"""

from __future__ import annotations

import signal
import threading
import time
from contextlib import contextmanager

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from types import FrameType
    from typing import Any, Self

DEAF_SECONDS = 5.0
"""How long the first interruption has to get through before another is heard, in case that it was lost on the way."""


class Ending:
    """Use it as a context manager around everything."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._before: dict[int, Any] = {}
        self._heard_at: float | None = None
        self._waiting = 0
        self._shielded = False
        self._clearing = False

    def __enter__(self) -> Self:
        if threading.current_thread() is threading.main_thread():
            for name in ("SIGINT", "SIGTERM", "SIGHUP"):
                number = getattr(signal, name, None)
                if number is not None and signal.getsignal(number) not in (signal.SIG_IGN, None):
                    self._before[number] = signal.signal(number, self.hear)
        return self

    def __exit__(self, *_: object) -> None:
        # The program is about to end: a third Ctrl-C would only bring a traceback of the interpreter's own ending.
        ending = self._heard_at is not None
        for number, handler in self._before.items():
            signal.signal(number, signal.SIG_IGN if ending else handler)

    def hear(self, number: int, frame: FrameType | None = None) -> None:
        now = self._clock()
        if self._clearing or (self._heard_at is not None and now < self._heard_at + DEAF_SECONDS):
            return
        self._heard_at = now
        if self._shielded:
            self._waiting = number
            return
        _interrupt(number)

    @contextmanager
    def shield(self) -> Iterator[None]:
        """What happens meanwhile is heard at the end: for the moment in which a process is started."""
        self._shielded = True
        try:
            yield
        finally:
            self._shielded = False
            number, self._waiting = self._waiting, 0
        if number:
            _interrupt(number)

    @contextmanager
    def deaf_afterwards(self) -> Iterator[None]:
        """The innermost: when it is left, the clearing up begins."""
        try:
            yield
        finally:
            self._clearing = True


def _interrupt(number: int) -> None:
    if number == signal.SIGINT:
        raise KeyboardInterrupt
    raise SystemExit(128 + number)
