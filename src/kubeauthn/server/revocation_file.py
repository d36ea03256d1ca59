"""Revocations from a file, read again when it changes. A file that cannot be read or is wrong changes nothing."""

from __future__ import annotations

import logging
import os
import threading
import time
from typing import TYPE_CHECKING

from kubeauthn._core.revocation import FILE_BYTES, RevocationList, read_list
from kubeauthn._io.files import Problem, read_text_or_problem
from kubeauthn.errors import EnvironmentFailure

if TYPE_CHECKING:
    from collections.abc import Callable

    from kubeauthn._core.revocation import TokenIdentity

    Signature = tuple[int, int, int, int] | None

_log = logging.getLogger("kubeauthn.server.revocation")

LOOK_SECONDS = 1.0
"""Between two looks at the file: a revocation takes effect within that."""
READ_AGAIN_SECONDS = 60.0
"""A file that seems unchanged is read again: not every file system tells."""


class FileRevocations:
    """A `RevocationSource`. Raises EnvironmentFailure at once for a file that is not right: a server must not start so.

    Later a wrong or missing file is complained about, and the last good list stays. A long list is read beside the
    requests, in a thread that lives as long as that takes.
    """

    def __init__(self, path: str, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._path = path
        self._clock = clock
        self._lock = threading.Lock()
        self._signature = _signature(path)
        self._list = _read(path)
        self._complaint = ""
        self._reading = False
        self._look_at = clock() + LOOK_SECONDS
        self._read_at = clock() + READ_AGAIN_SECONDS

    def reason_now(self, identity: TokenIdentity) -> str:
        if self._clock() >= self._look_at:
            self._look()
        return self._list.reason(identity)

    async def reason(self, identity: TokenIdentity) -> str:
        return self.reason_now(identity)

    async def close(self) -> None:
        """There is nothing to close."""

    @property
    def complaint(self) -> str:
        """Why the file as it is now does not count; "" if it does."""
        return self._complaint

    def _look(self) -> None:
        with self._lock:
            now = self._clock()
            if now < self._look_at or self._reading:
                return
            self._look_at = now + LOOK_SECONDS
            signature = _signature(self._path)
            if signature == self._signature and now < self._read_at:
                return
            self._read_at = now + READ_AGAIN_SECONDS
            self._reading = True
        threading.Thread(target=self._reread, args=(signature,), name="kubeauthn revocations", daemon=True).start()

    def _reread(self, signature: Signature) -> None:
        complaint = ""
        try:
            self._list = _read(self._path)
        except EnvironmentFailure as error:
            complaint = str(error)
        finally:
            # Also after a fault: the next change is looked at again, and this content is not complained about twice.
            self._signature = signature
            self._reading = False
        if complaint and complaint != self._complaint:
            _log.error("revocations stay as they were: %s", complaint)
        elif self._complaint and not complaint:
            _log.warning("revocations are read again: %d entries", len(self._list))
        self._complaint = complaint


def _signature(path: str) -> Signature:
    """What changes when the file does; through symbolic links, as a mounted ConfigMap swaps one."""
    try:
        status = os.stat(path)
    except (OSError, ValueError):
        return None
    return status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns


def _read(path: str) -> RevocationList:
    text = read_text_or_problem(path, FILE_BYTES, pipes=False)
    if isinstance(text, Problem):
        raise EnvironmentFailure(f"{path}: {text.reason}")
    try:
        return RevocationList(read_list(text))
    except ValueError as error:
        raise EnvironmentFailure(f"{path}: {error}") from None
