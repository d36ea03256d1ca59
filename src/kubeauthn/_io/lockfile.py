"""The lock that says a client is alive: held from before its proxy plugin starts until the client ends.

The proxy waits for the same lock, and when it gets it the client is gone. A lock belongs to the
open file, which a fork shares: so a forked child closes its copy, else the proxy would outlive
the client that it is for.
"""

from __future__ import annotations

import atexit
import contextlib
import os
import stat
import tempfile
import threading

from kubeauthn.errors import EnvironmentFailure

try:
    import fcntl
except ImportError:  # not a POSIX system: said when a lock is asked for
    fcntl = None  # type: ignore[assignment]

PREFIX = "kubeauthn-client-"
_NAME = "lock"
_LEFTOVERS = 64
"""So many directories of clients that were killed are looked at, at most, when a new one is made."""

_held: dict[int, ClientLock] = {}
# Re-entrant: the garbage collector may release a lock in the middle of taking another.
_lock = threading.RLock()


class ClientLock:
    """One held lock. `path` is what the plugin is told; `release` lets go of it and removes the file."""

    def __init__(self) -> None:
        if fcntl is None:
            raise EnvironmentFailure("a proxy plugin needs file locks", hint="see docs/platforms.md")
        place = _runtime_directory()
        _sweep(place)
        try:
            directory = tempfile.mkdtemp(prefix=PREFIX, dir=place)  # mode 0700
            self.path = os.path.join(directory, _NAME)
            descriptor = os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        except OSError as error:
            raise EnvironmentFailure(f"no lock file for a proxy plugin in {place}: {error.strerror}") from None
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        self._descriptor: int | None = descriptor
        with _lock:
            _held[id(self)] = self

    @property
    def held(self) -> bool:
        return self._descriptor is not None

    def release(self) -> None:
        """A second time it does nothing; nor in a forked child, whose lock this is not."""
        with _lock:
            _held.pop(id(self), None)
            descriptor, self._descriptor = self._descriptor, None
        if descriptor is None:
            return
        # Removed first: whoever finds the file can be sure that somebody holds it, or has just died.
        with contextlib.suppress(OSError):
            os.unlink(self.path)
            os.rmdir(os.path.dirname(self.path))
        os.close(descriptor)

    def _forget(self) -> None:
        if self._descriptor is not None:
            os.close(self._descriptor)  # closed, not unlocked: unlocking would unlock the parent's too
            self._descriptor = None


def _runtime_directory() -> str:
    """The user's own runtime directory where there is a proper one, else the one for temporary files."""
    place = os.environ.get("XDG_RUNTIME_DIR", "")
    if place.startswith("/"):
        with contextlib.suppress(OSError):
            found = os.stat(place)
            if found.st_uid == os.geteuid() and stat.S_ISDIR(found.st_mode) and not found.st_mode & 0o077:
                return place
    return tempfile.gettempdir()


def _sweep(place: str) -> None:
    """Remove what clients left that were killed: their locks can be had."""
    try:
        with os.scandir(place) as entries:
            names = [entry.path for entry in entries if entry.name.startswith(PREFIX)][:_LEFTOVERS]
    except OSError:
        return
    for directory in names:
        with contextlib.suppress(OSError):
            _sweep_one(directory)


def _sweep_one(directory: str) -> None:
    found = os.lstat(directory)
    if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.geteuid():
        return
    path = os.path.join(directory, _NAME)
    descriptor = os.open(path, os.O_RDWR | os.O_CLOEXEC | os.O_NOFOLLOW)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)  # BlockingIOError: it is in use
        if os.fstat(descriptor).st_mtime < _a_minute_ago():  # else it may be about to be locked
            os.unlink(path)
            os.rmdir(directory)
    finally:
        os.close(descriptor)


def _a_minute_ago() -> float:
    import time

    return time.time() - 60


@atexit.register
def _release_all() -> None:
    for lock in list(_held.values()):
        lock.release()


def _after_fork_in_child() -> None:
    global _lock
    _lock = threading.RLock()
    for lock in list(_held.values()):
        lock._forget()
    _held.clear()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork_in_child)
