"""Files that are looked at now and then: has one changed, and has it come to rest?

What is compared is where the path leads, so the symlinks that a mounted ConfigMap or Secret swaps count as a change. A
file that somebody is still writing may read as something shorter that is valid; so a change counts only when two looks
in a row find the same.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    Look = tuple[tuple[int, int, int, int] | None, ...]


class WatchedFiles:
    def __init__(self, paths: Sequence[str]) -> None:
        self._paths = tuple(paths)
        self._settled = self._last = self.look()
        self.at_rest = True
        """Whether the last look that `changed` took found what the one before it did."""

    def look(self) -> Look:
        return tuple(_state(path) for path in self._paths)

    def changed(self) -> bool:
        """True once for each change, when it has come to rest."""
        before, self._last = self._last, self.look()
        self.at_rest = self._last == before
        if not self.at_rest or self._last == self._settled or None in self._last:
            return False
        self._settled = self._last
        return True

    def moved_on(self) -> bool:
        """Is there something newer than the last change that was told?"""
        return self.look() != self._settled


def _state(path: str) -> tuple[int, int, int, int] | None:
    try:
        found = os.stat(path)
    except OSError:
        return None
    return found.st_dev, found.st_ino, found.st_mtime_ns, found.st_size
