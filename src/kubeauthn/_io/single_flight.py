"""One of many processes does the work, and those that came meanwhile share what becomes of it.

A lock file beside the result. Who waited for the lock looks whether the result is there now. A failure is told to those
who were waiting, and to nobody who comes later: twenty commands that need a login open one browser, and when the person
closes it there are not nineteen more to close.
"""

from __future__ import annotations

import os
import stat
import time

from kubeauthn.errors import CredentialError, EnvironmentFailure

try:
    import fcntl
except ImportError:  # not a POSIX system: said when a lock is asked for
    fcntl = None  # type: ignore[assignment]

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from types import TracebackType

    from kubeauthn._io.private_store import PrivateStore

SUFFIX = ".lock"
_TICK_SECONDS = 0.05
_TOLD_AFTER_SECONDS = 1.0
_NOTE_BYTES = 64


class SingleFlight:
    """A lock for one name of a store. Use it as a context manager.

    `waited` says whether somebody else held it, and so may have done the work. Should the work within the block fail,
    those who wait are told. Raises CredentialError where the other's work failed or took longer than `seconds`.
    """

    def __init__(
        self, store: PrivateStore, name: str, *, seconds: float, waiting: Callable[[], None] | None = None
    ) -> None:
        self._store = store
        self._name = f"{name}{SUFFIX}"
        self._seconds = seconds
        self._waiting = waiting
        self._descriptor = -1
        self.waited = False

    def __enter__(self) -> SingleFlight:
        if fcntl is None:
            raise EnvironmentFailure("file locks are needed to keep credentials", hint="see docs/platforms.md")
        begun = time.monotonic()
        deadline, tell_at = begun + self._seconds, begun + _TOLD_AFTER_SECONDS
        while not self._try():
            self.waited = True
            now = time.monotonic()
            if now >= deadline:
                raise CredentialError(
                    f"another process has been getting this credential for over {self._seconds:.0f} s",
                    hint="finish or end the login that is under way, then try again",
                )
            if self._waiting is not None and now >= tell_at:
                self._waiting()
                self._waiting = None
            time.sleep(_TICK_SECONDS)
        if self.waited and self._failed_at() > begun:
            self._release()
            raise CredentialError(
                "another process was getting this credential, and it did not succeed",
                hint="its own message says why; the next attempt is made anew",
            )
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            os.ftruncate(self._descriptor, 0)
            if kind is not None:
                os.pwrite(self._descriptor, f"{time.monotonic():.6f}".encode(), 0)
        except OSError:
            pass  # a full disk: the others then try for themselves
        finally:
            self._release()

    def remove(self) -> None:
        """Within the block: the lock file itself, with which nobody is left alone (see `_try`)."""
        self._store.remove(self._name)

    def _try(self) -> bool:
        directory = self._store.directory()
        flags = os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | getattr(os, "O_NOFOLLOW", 0)
        try:
            descriptor = os.open(self._name, flags, 0o600, dir_fd=directory)
        except OSError as error:
            reason = (error.strerror or "unusable").lower()
            raise EnvironmentFailure(f"{self._store.path}: no lock can be had: {reason}") from None
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            held = os.fstat(descriptor)
            if not stat.S_ISREG(held.st_mode) or held.st_uid != os.geteuid():
                raise EnvironmentFailure(f"{self._store.path}: the lock file is not ours")
            # It may have been removed after it was opened: then another file has the name, and another the lock.
            there = os.stat(self._name, dir_fd=directory, follow_symlinks=False)
            if (there.st_dev, there.st_ino) == (held.st_dev, held.st_ino):
                self._descriptor = descriptor
                return True
        except (BlockingIOError, FileNotFoundError):
            pass
        except BaseException:
            os.close(descriptor)
            raise
        os.close(descriptor)
        return False

    def _failed_at(self) -> float:
        """When the last work failed, by the monotonic clock, which all processes share; 0 if it did not."""
        try:
            return float(os.pread(self._descriptor, _NOTE_BYTES, 0) or b"0")
        except (OSError, ValueError):
            return 0.0

    def _release(self) -> None:
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1
