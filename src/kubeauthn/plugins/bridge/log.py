"""What a bridge tells beside its answers: a file of its warnings, which does not grow without end."""

from __future__ import annotations

import logging
import os

from kubeauthn.plugins.bridge.complaints import Complaints

LOG_BYTES = 1 << 20
"""A client that asks again and again while its server is away has a line written each time, for weeks."""


def log_to(path: str) -> None:
    """Everything that this process warns of, from now on; what was there is from another run."""
    handler = BoundedLog(path)
    handler.addFilter(Complaints())
    handler.setFormatter(logging.Formatter("%(asctime)s %(message)s"))
    logger = logging.getLogger("kubeauthn")
    logger.addHandler(handler)
    logger.setLevel(logging.WARNING)


class BoundedLog(logging.StreamHandler):  # type: ignore[type-arg]  # at run time it takes none
    """The older half goes when there is too much."""

    def __init__(self, path: str, most: int = LOG_BYTES) -> None:
        self._most = most
        self._descriptor = os.open(path, os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
        super().__init__(os.fdopen(self._descriptor, "a", buffering=1))

    def emit(self, record: logging.LogRecord) -> None:
        super().emit(record)
        try:
            if (size := os.fstat(self._descriptor).st_size) > self._most:
                self._drop_older(size)
        except OSError:
            self.handleError(record)

    def _drop_older(self, size: int) -> None:
        newer = os.pread(self._descriptor, self._most // 2, size - self._most // 2).partition(b"\n")[2]
        os.ftruncate(self._descriptor, 0)
        os.write(self._descriptor, newer)
