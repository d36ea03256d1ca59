"""Private keys in the temporary folder: those that are there, and those that were there for a moment."""

from __future__ import annotations

import os
import stat
import sys
import tempfile
from pathlib import Path
from types import TracebackType
from typing import Any, Self

MARK = b"PRIVATE KEY"

_watching: list[KeyFiles] = []


class KeyFiles:
    """Watches the temporary folder of this process. A file that is about to be deleted is looked at first."""

    def __init__(self) -> None:
        self._folder = Path(tempfile.gettempdir()).resolve()
        self._before = {str(path) for path in self._files()}
        self._modes: dict[str, int] = {}
        self._seen_by_looking = False

    def __enter__(self) -> Self:
        _watching.append(self)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        _watching.remove(self)

    def look(self) -> list[str]:
        """The key files that are there now."""
        found = [str(path) for path in self._files() if self.note(path)]
        self._seen_by_looking = self._seen_by_looking or bool(found)
        return found

    def note(self, path: Path) -> bool:
        """Whether this file holds a key and came while we watched."""
        try:
            if str(path) in self._before or MARK not in path.read_bytes():
                return False
            self._modes[str(path)] = stat.S_IMODE(path.stat().st_mode)
        except OSError:
            return False
        return True

    def note_below(self, path: Path) -> None:
        for each in (path, *path.rglob("*")) if path.is_dir() else (path,):
            if each.is_file() and each.is_relative_to(self._folder):
                self.note(each)

    def in_words(self) -> str:
        if not self._modes:
            return "no"
        kind = "world-readable file" if any(mode & 0o077 for mode in self._modes.values()) else "temporary file"
        return kind if self._seen_by_looking else f"{kind} for a moment"

    def _files(self) -> list[Path]:
        return [path for path in self._folder.rglob("*") if path.is_file()]


def _before_a_deletion(event: str, arguments: tuple[Any, ...]) -> None:
    if _watching and event in ("os.remove", "shutil.rmtree", "os.rename"):
        try:
            path = Path(os.fsdecode(arguments[0])).absolute()
        except TypeError:  # an open directory
            return
        for files in _watching:
            files.note_below(path)


# There is no taking it back, which is why it does nothing while nobody watches.
sys.addaudithook(_before_a_deletion)
