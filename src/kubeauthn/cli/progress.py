"""What is waited for, said while it lasts: one line on a terminal's standard error, taken back at the end.

Nothing is written where nobody looks, nor about a wait that is over before anybody wonders.
"""

from __future__ import annotations

import threading
import time
from contextlib import contextmanager

from kubeauthn.cli.world import terminal_width

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from kubeauthn.cli.world import World

AFTER = 1.0
_ERASE = "\r\x1b[K"


class Waiting:
    """One wait. `live` says whether it is drawn at all: where it is not, a caller may say a line now and then."""

    def __init__(self, world: World, what: str) -> None:
        self._world = world
        self._what = what
        self._began = time.monotonic()
        self._drawn = False
        self._lock = threading.Lock()
        self.live = world.stderr.isatty() and world.environ.get("TERM", "dumb") != "dumb"

    def so_far(self, text: str) -> None:
        """From now on `text` is said instead."""
        self._what = text

    def clear(self) -> None:
        """Before somebody else writes to the terminal; the next second draws it again."""
        with self._lock:
            if self._drawn:
                self._write(_ERASE)
            self._drawn = False

    def draw(self) -> None:
        with self._lock:
            line = f"waiting for {self._what} ({time.monotonic() - self._began:.0f} s)"
            room = (terminal_width(self._world.stderr) or 80) - 1  # a line that breaks could not be taken back
            self._write(_ERASE + (line if len(line) <= room else line[: room - 1] + "…"))
            self._drawn = True

    def _write(self, text: str) -> None:
        try:
            self._world.stderr.write(text)
            self._world.stderr.flush()
        except (OSError, ValueError):
            self.live = False  # the terminal is gone; what is waited for is not


@contextmanager
def waiting_for(world: World, what: str, *, after: float = AFTER) -> Iterator[Waiting]:
    """Drawn `after` seconds, and then once a second. `what` is ours, or escaped."""
    waiting = Waiting(world, what)
    if not waiting.live:
        yield waiting
        return
    over = threading.Event()

    def keep_drawing() -> None:
        pause = after
        while not over.wait(pause) and waiting.live:
            waiting.draw()
            pause = 1.0

    thread = threading.Thread(target=keep_drawing, name="progress", daemon=True)
    thread.start()
    before, world.waiting = world.waiting, waiting
    try:
        yield waiting
    finally:
        world.waiting = before
        over.set()
        thread.join()
        waiting.clear()
