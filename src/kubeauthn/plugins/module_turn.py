"""Signers of one PKCS#11 module take turns: nobody looks for a token while another process logs in to it.

SoftHSM empties its token's file at every login, and fills it again after it let go of its own lock. Who reads it in
between finds no token, half of one, or at its own login an error that looks like a refused PIN. The lock here is on the
module's file, which every process opens anyway: nothing is left behind. It is a courtesy. Who cannot have it in time
goes on without it: a program that holds it must not stop others. Everybody who can read the module can hold it, so
who waited in vain does not wait at the next turn, and a whole signature is not late by more than one such wait.
"""

from __future__ import annotations

import errno
import os
from contextlib import contextmanager

try:
    import fcntl
except ImportError:  # not a POSIX system
    fcntl = None  # type: ignore[assignment]

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

_MOST_SECONDS = 2.0
_PAUSE_SECONDS = 0.002
_PATIENCE_SECONDS = 60.0
"""After a wait in vain, so long no turn is waited for: an agent lives on, and whoever was in the way may be gone."""
_HELD_BY_ANOTHER = (errno.EWOULDBLOCK, errno.EACCES)
"""Any other answer is no lock that will be free: a file system without them, or one that wants the file writable."""
_in_vain: dict[str, float] = {}


@contextmanager
def module_turn(path: str, *, alone: bool = False) -> Iterator[None]:
    """Together with others who look, or `alone`, to log in."""
    descriptor = _locked(path, alone)
    try:
        yield
    finally:
        if descriptor is not None:
            os.close(descriptor)


def _locked(path: str, alone: bool) -> int | None:
    if fcntl is None:
        return None
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return None  # who loads it says why
    how = fcntl.LOCK_EX if alone else fcntl.LOCK_SH
    try:
        if _tried(descriptor, how) or _waited(path, descriptor, how):
            return descriptor
    except OSError:
        pass  # there are no such locks here
    os.close(descriptor)
    return None


def _waited(path: str, descriptor: int, how: int) -> bool:
    from time import monotonic, sleep

    begun = monotonic()
    if begun - _in_vain.get(path, -_PATIENCE_SECONDS) < _PATIENCE_SECONDS:
        return False
    while monotonic() - begun < _MOST_SECONDS:
        sleep(_PAUSE_SECONDS)
        if _tried(descriptor, how):
            return True
    _in_vain[path] = monotonic()
    return False


def _tried(descriptor: int, how: int) -> bool:
    try:
        fcntl.flock(descriptor, how | fcntl.LOCK_NB)
    except OSError as error:
        if error.errno in _HELD_BY_ANOTHER:
            return False
        raise
    return True
