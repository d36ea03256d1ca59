"""Lines appended to a file or to standard output by one thread, so that a slow disk does not hold up a request.

A file is made with mode 0600 and found by its name again after rotation: once a second, and when `reopen` is called.
Several processes may append to it: a line is one write. What cannot be written is counted and told with the next line.
"""

from __future__ import annotations

import asyncio
import logging
import os
import queue
import stat
import threading
import time
from concurrent.futures import Future
from contextlib import suppress
from typing import TYPE_CHECKING

from kubeauthn.errors import EnvironmentFailure

if TYPE_CHECKING:
    from collections.abc import Callable

_log = logging.getLogger("kubeauthn.server.audit")

WAITING_LINES = 10_000
"""Lines that wait to be written. More are lost, or refused where the log is required."""
WRITE_SECONDS = 5.0
"""How long a decision waits for its line, where the log is required."""
LOOK_SECONDS = 1.0
_STDOUT = 1
_FLAGS = os.O_WRONLY | os.O_APPEND | os.O_CREAT | getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_NOFOLLOW", 0)
# Not blocking: opening a pipe that nobody reads would wait for ever.
_FLAGS |= getattr(os, "O_NONBLOCK", 0)


class AuditFile:
    """`path` is a file's, or `-` for standard output. Raises EnvironmentFailure where it cannot be opened."""

    def __init__(self, path: str, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._path = path
        self._clock = clock
        self._lines: queue.Queue[tuple[bytes, Future[None] | None] | None] = queue.Queue(WAITING_LINES)
        self._descriptor = _STDOUT if path == "-" else _open(path)
        self._look_at = clock() + LOOK_SECONDS
        self._reopen = False
        self._torn = False
        self._lost = 0
        self._complained_at = float("-inf")
        self._lock = threading.Lock()
        self._thread: threading.Thread | None = None

    @property
    def lost(self) -> int:
        """Lines lost since one was last written."""
        return self._lost

    def tell(self, line: bytes) -> None:
        """Write it soon, or lose it."""
        self._started()
        try:
            self._lines.put_nowait((line, None))
        except queue.Full:
            self._lose("lines come faster than they can be written")

    async def write(self, line: bytes) -> None:
        """Returns when it is written. Raises EnvironmentFailure."""
        self._started()
        written: Future[None] = Future()
        try:
            self._lines.put_nowait((line, written))
        except queue.Full:
            raise EnvironmentFailure("the audit log is too slow") from None
        try:
            await asyncio.wait_for(asyncio.wrap_future(written), WRITE_SECONDS)
        except TimeoutError:
            raise EnvironmentFailure(f"the audit log was not written within {WRITE_SECONDS:g} s") from None

    def reopen(self) -> None:
        """Before the next line: the file was renamed. Safe in a signal handler."""
        self._reopen = True

    def close(self) -> None:
        """Writes what waits, and ends the thread."""
        if self._thread is not None:
            with suppress(queue.Full):  # nobody reads what it writes: waiting longer would not help
                self._lines.put(None, timeout=WRITE_SECONDS)
                self._thread.join(WRITE_SECONDS)
            self._thread = None
        if self._descriptor not in (_STDOUT, -1):
            os.close(self._descriptor)
            self._descriptor = -1

    def _started(self) -> None:
        # Only now: a process that forks its workers would not have the thread in them.
        if self._thread is None:
            with self._lock:
                if self._thread is None:
                    self._thread = threading.Thread(target=self._run, name="kubeauthn audit", daemon=True)
                    self._thread.start()

    def _run(self) -> None:
        while (entry := self._lines.get()) is not None:
            line, written = entry
            if written is not None and not written.set_running_or_notify_cancel():
                continue  # who asked for it has been told that it failed
            try:
                self._append(line)
            except OSError as error:
                reason = (error.strerror or type(error).__name__).lower()
                self._lose(reason)
                if written is not None:
                    written.set_exception(EnvironmentFailure(f"the audit log cannot be written: {reason}"))
            else:
                if written is not None:
                    written.set_result(None)

    def _append(self, line: bytes) -> None:
        self._find_again()
        lost = self._lost
        if lost:
            line = b'{"kind":"Lost","version":1,"lines":%d}\n' % lost + line
        if self._torn:
            line = b"\n" + line  # half a line stands there since the disk was full
        view = memoryview(line)
        while view:
            count = os.write(self._descriptor, view)
            self._torn = count < len(view)
            view = view[count:]
        self._lost -= lost

    def _find_again(self) -> None:
        if self._descriptor == _STDOUT:
            return
        now = self._clock()
        if now < self._look_at and not self._reopen:
            return
        self._look_at = now + LOOK_SECONDS
        try:
            same = os.path.samestat(os.stat(self._path, follow_symlinks=False), os.fstat(self._descriptor))
        except FileNotFoundError:
            same = False
        if not same or self._reopen:
            self._reopen = False
            try:
                fresh = _open(self._path)
            except EnvironmentFailure as error:
                raise OSError(0, str(error)) from None
            os.close(self._descriptor)
            self._descriptor, self._torn = fresh, False

    def _lose(self, reason: str) -> None:
        self._lost += 1
        now = self._clock()
        if now >= self._complained_at + 60.0:  # not for each line: the log may be on the same disk
            self._complained_at = now
            _log.error("audit lines are lost: %s", reason)


def _open(path: str) -> int:
    """Never through a symbolic link, and never what others could have put there to be written over."""
    try:
        descriptor = os.open(path, _FLAGS, 0o600)
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) and error.strerror else "is not a possible path"
        raise EnvironmentFailure(f"{path}: {reason.lower()}") from None
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise EnvironmentFailure(f"{path}: is not a regular file", hint="- is standard output")
    return descriptor
