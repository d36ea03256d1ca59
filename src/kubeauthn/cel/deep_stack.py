"""Room for expressions that are nested deeply.

Parser, checker and generator are plain recursive functions; the grammar's limit of 250 levels can need more Python
frames than the interpreter's default allows. Python functions calling each other use no C stack since 3.11, so the
limit may be raised while such an expression is compiled.
"""

from __future__ import annotations

import sys
from threading import Lock

__all__ = ["DeepStack"]

_SHALLOW = 25
_FRAMES = 12_000

_lock = Lock()
_users = 0
_ordinary = 0


class DeepStack:
    """A context in which the given text can be compiled, however deep it is."""

    __slots__ = ("_needed",)

    def __init__(self, text: str) -> None:
        self._needed = _may_be_deep(text)

    def __enter__(self) -> None:
        global _users, _ordinary
        if not self._needed:
            return
        with _lock:
            if _users == 0:
                _ordinary = sys.getrecursionlimit()
                sys.setrecursionlimit(_ordinary + _FRAMES)
            _users += 1

    def __exit__(self, *_: object) -> None:
        global _users
        if not self._needed:
            return
        with _lock:
            _users -= 1
            if _users == 0:
                sys.setrecursionlimit(_ordinary)


def _may_be_deep(text: str) -> bool:
    """Anything that nests needs one of these characters for each level."""
    return sum(text.count(char) for char in "([{?.+-*/%<>=!&|") + text.count(" in ") > _SHALLOW
