"""What a person sees while a login is under way. On standard error, because standard output is the client's."""

from __future__ import annotations

import os
import sys
import time

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

_LINE_SECONDS = 30.0
"""Where nobody watches a line change, one is written this often."""


def say(line: str) -> None:
    """One line, of which a terminal obeys nothing: part of it may be the issuer's text."""
    shown = "".join(letter if letter.isprintable() else " " for letter in line[:1000])
    _write(f"{shown}\n")


class Countdown:
    """`waiting for the login, 2:41 left`: one line that changes on a terminal, a line now and then elsewhere."""

    def __init__(self, seconds: float, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._deadline = clock() + seconds
        self._on_terminal = _is_terminal()
        self._next = clock() + (0.0 if self._on_terminal else _LINE_SECONDS)
        self._drawn = False

    @property
    def left(self) -> float:
        return max(0.0, self._deadline - self._clock())

    def tick(self) -> None:
        now = self._clock()
        if now < self._next:
            return
        minutes, seconds = divmod(int(self.left + 0.5), 60)
        text = f"waiting for the login, {minutes}:{seconds:02d} left"
        if self._on_terminal:
            _write(f"\r{text} ")
            self._drawn = True
            self._next = now + 1.0
        else:
            _write(f"{text}\n")
            self._next = now + _LINE_SECONDS

    def clear(self) -> None:
        if self._drawn:
            _write("\r\x1b[K")
            self._drawn = False


def _write(text: str) -> None:
    if sys.stderr is None:
        return
    try:
        sys.stderr.write(text)
        sys.stderr.flush()
    except (OSError, ValueError):
        pass  # nobody listens


def _is_terminal() -> bool:
    try:
        return os.isatty(2) and os.environ.get("TERM", "dumb") != "dumb"
    except OSError:
        return False
