"""Revocations from a file, read again when it changes. A file that cannot be read or is wrong changes nothing."""

from __future__ import annotations

import logging
import os
import threading
import time
from contextlib import suppress
from typing import TYPE_CHECKING

from kubeauthn._core.revocation import FILE_BYTES, RevocationList, read_list
from kubeauthn._io.files import Problem, read_text_or_problem
from kubeauthn.errors import EnvironmentFailure

if TYPE_CHECKING:
    from kubeauthn._core.revocation import TokenIdentity

    Signature = tuple[int, int, int, int] | None

_log = logging.getLogger("kubeauthn.server.revocation")

_UNREAD = (-1, -1, -1, -1)
"""The signature of no file."""

LOOK_SECONDS = 0.5
"""Between two looks at the file. A change counts when two in a row find the same, so that takes a second: what somebody
is still writing may read as something shorter that is valid."""
RESTLESS_SECONDS = 2.0
"""A file that finds no rest, such as one that a script adds to again and again, is read this often. What it names then
is revoked; what it names no more is so only after a rest, because it may be half a list."""
READ_AGAIN_SECONDS = 60.0
"""A file that seems unchanged is read again: not every file system tells."""


class FileRevocations:
    """A `RevocationSource`. Raises EnvironmentFailure at once for a file that is not right: a server must not start so.

    Later a wrong, missing or empty file is complained about, and the last good list stays. A thread looks at the file
    beside the requests, whether there are any or not, until `close`. Sent to another process, it takes the last good
    list along: a worker that starts later begins with that.
    """

    def __init__(self, path: str, last_good: str | None = None) -> None:
        self._path = path
        self._seen = _signature(path)
        if last_good is None:
            self._read, self._text = self._seen, _text(path)
            self._list = _list_of(path, self._text)
        else:
            self._read, self._text = _UNREAD, last_good
            self._list = _list_of(path, last_good)
            self._add_more()
        self._read_at = time.monotonic()
        self._complaint = ""
        self._closed = threading.Event()
        try:
            threading.Thread(target=self._look_on, name="kubeauthn revocations", daemon=True).start()
        except RuntimeError:
            raise EnvironmentFailure(f"{path}: there is no thread to watch it") from None

    def __reduce__(self) -> tuple[type[FileRevocations], tuple[str, str]]:
        return type(self), (self._path, self._text)

    def reason_now(self, identity: TokenIdentity) -> str:
        return self._list.reason(identity)

    async def reason(self, identity: TokenIdentity) -> str:
        return self.reason_now(identity)

    async def close(self) -> None:
        self._closed.set()

    @property
    def complaint(self) -> str:
        """Why the file as it is now does not count; "" if it does."""
        return self._complaint

    def _look_on(self) -> None:
        rested_at = time.monotonic()
        while not self._closed.wait(LOOK_SECONDS):
            before, self._seen = self._seen, _signature(self._path)
            now = time.monotonic()
            if self._seen == before:
                rested_at = now
                if self._seen != self._read or now >= self._read_at + READ_AGAIN_SECONDS:
                    self._read_again(self._seen)
            elif now >= rested_at + RESTLESS_SECONDS:
                rested_at = now
                self._add_more()

    def _add_more(self) -> None:
        # Half a list may also be none: nobody is told of that before the file has come to rest.
        with suppress(Exception):
            self._list = self._list.with_more(_list_of(self._path, _text(self._path)))

    def _read_again(self, signature: Signature) -> None:
        complaint = ""
        try:
            text = _text(self._path)
            if not text.strip() and len(self._list):
                # What is left where a disk was full, or where somebody begins to write.
                raise EnvironmentFailure(
                    f"{self._path}: is empty, and `revocations: []` is what says that there are none"
                )
            self._list, self._text = _list_of(self._path, text), text
        except EnvironmentFailure as error:
            complaint = str(error)
        except Exception as error:  # whatever it is: it ends this attempt, and not the thread
            complaint = f"{self._path}: unexpected {type(error).__name__}"
        # Also after a fault: the next change is looked at again, and this content is not complained about twice.
        self._read, self._read_at = signature, time.monotonic()
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


def _text(path: str) -> str:
    text = read_text_or_problem(path, FILE_BYTES, pipes=False)
    if isinstance(text, Problem):
        raise EnvironmentFailure(f"{path}: {text.reason}")
    return text


def _list_of(path: str, text: str) -> RevocationList:
    try:
        return RevocationList(read_list(text))
    except ValueError as error:
        raise EnvironmentFailure(f"{path}: {error}") from None
