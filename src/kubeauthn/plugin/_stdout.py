"""Standard output, kept for the one document that a client expects there."""

from __future__ import annotations

import os
import sys

from kubeauthn.errors import EnvironmentFailure

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

_END_SECONDS = 2.0


class GuardedStdout:
    """From here on everything that goes to file descriptor 1 comes out on standard error.

    By descriptor and not only by `sys.stdout`, so that C code and programs that the plugin starts are
    covered too. Only `send` reaches the real standard output, once. It is never put back: what is
    still in a buffer must not follow the document.
    """

    def __init__(self) -> None:
        try:
            self._real: int | None = _duplicate_above_standard(1)
            self._answers = False
        except OSError:
            raise EnvironmentFailure("standard output is closed: there is nobody to give a credential to") from None
        os.dup2(2, 1)
        if hasattr(os, "register_at_fork"):
            # A child that stays would keep the client waiting for the end of the output.
            os.register_at_fork(after_in_child=self.close)
        if hasattr(sys.stdout, "reconfigure"):
            # It was made for a pipe, and would hold back the question that a person is to answer.
            sys.stdout.reconfigure(line_buffering=True)

    def end_when_nobody_reads(self) -> None:
        """Whoever asked was killed: do not go on asking a person, or hold a token.

        By the pipe, whose other end went with them. A parent's end tells less: it may have been a shell's.
        """
        try:
            from select import poll
        except ImportError:
            return  # a system without it
        from _thread import start_new_thread

        if self._real is not None:
            poller = poll()
            poller.register(self._real, 0)  # the other end's going is always told
            start_new_thread(self._end_after, (poller.poll,))

    def _end_after(self, wait: Callable[[], object]) -> None:
        import signal
        from time import sleep

        wait()
        if not self._answers:
            os.kill(os.getpid(), signal.SIGINT)  # so that a terminal is put back as it was
            sleep(_END_SECONDS)
            os._exit(130)  # a module that does not answer

    def send(self, document: str) -> None:
        """Write the document and close."""
        self._answers = True
        if self._real is None:
            raise EnvironmentFailure("this is a forked child of the plugin: only the plugin itself answers the client")
        rest = memoryview(f"{document}\n".encode())
        try:
            while rest:
                rest = rest[os.write(self._real, rest) :]
            self.close()
        except OSError as error:
            raise EnvironmentFailure(f"standard output cannot be written: {error.strerror}") from None

    def close(self) -> None:
        if self._real is not None:
            os.close(self._real)
            self._real = None


def _duplicate_above_standard(descriptor: int) -> int:
    """A duplicate that children do not inherit, above 2.

    Where standard error is closed, the system would hand out 2 for the duplicate, and every message
    would go to the client. So what is closed gets the null device first.
    """
    copy = os.dup(descriptor)
    while copy <= 2:
        null = os.open(os.devnull, os.O_RDWR)
        os.dup2(null, copy)
        os.close(null)
        copy = os.dup(descriptor)
    return copy
