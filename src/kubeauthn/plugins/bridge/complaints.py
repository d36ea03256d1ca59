"""What the programs that a bridge runs print on standard error: the last line goes into the bridge's log.

The bridge has no terminal, so their reason for a failure would be lost. A line may quote anything: what is long enough
to be a token is left out, and nothing is kept but the end of it.
"""

from __future__ import annotations

import logging
import os
import select
import threading

KEPT_BYTES = 4096
LINE_CHARACTERS = 300
TOKEN_CHARACTERS = 24
"""So many of a token's alphabet in a row, with a digit among them, are taken for a secret."""
_ALPHABET = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_.~+=%")


class Complaints(logging.Filter):
    """Takes the place of this process's standard error. As a filter it adds the last line to a record, once."""

    def __init__(self) -> None:
        super().__init__()
        self._readable, writable = os.pipe()
        os.set_blocking(self._readable, False)
        os.dup2(writable, 2)
        os.close(writable)
        self._lock = threading.Lock()
        self._kept = b""
        threading.Thread(target=self._read_on, name="complaints", daemon=True).start()

    def filter(self, record: logging.LogRecord) -> bool:
        line = self.take()
        if line:
            # Without arguments nothing in the text is taken for a place to put one.
            record.msg, record.args = f"{record.getMessage()}; last on standard error: {line}", None
        return True

    def take(self) -> str:
        """The last line that was printed since the last time; empty where there is none."""
        with self._lock:
            self._drain()
            kept, self._kept = self._kept, b""
        return last_line(kept)

    def _read_on(self) -> None:
        # A program whose standard error nobody reads stops when the pipe is full.
        poller = select.poll()
        poller.register(self._readable, select.POLLIN)
        while True:
            poller.poll()
            with self._lock:
                self._drain()

    def _drain(self) -> None:
        try:
            piece = os.read(self._readable, 65536)  # one read: whoever prints without end must not keep the log waiting
        except BlockingIOError:
            return
        self._kept = (self._kept + piece)[-KEPT_BYTES:]


def last_line(printed: bytes) -> str:
    """The last that is not blank, bounded, and without what looks like a secret. A hint alone would not say of what."""
    lines = [line.strip() for line in printed.decode("utf-8", "replace").splitlines() if line.strip()]
    shown = without_secrets("; ".join(lines[-2:] if lines and lines[-1].startswith("hint: ") else lines[-1:]))
    if len(shown) > LINE_CHARACTERS:
        shown = shown[:LINE_CHARACTERS] + "…"
    return "".join(each if each.isprintable() else each.encode("unicode_escape").decode() for each in shown)


def without_secrets(line: str) -> str:
    found, run = [], ""
    for character in [*line, ""]:
        if character and character in _ALPHABET:
            run += character
            continue
        secret = len(run) >= TOKEN_CHARACTERS and any(each.isdigit() for each in run)
        found += ["(left out)" if secret else run, character]
        run = ""
    return "".join(found)
