"""A kubeauthn command in a process of its own, for the demo, and the end of all that it starts.

Its standard error is a pipe, which those that it starts have too: at the end of the pipe, the last of them is gone.
What was said there is told when the command failed. When it is interrupted it is not: a Python that is interrupted
while it starts prints a traceback, and the person who pressed Ctrl-C has no use for that.
"""

from __future__ import annotations

import signal
import subprocess
import sys
import threading

from kubeauthn.errors import EnvironmentFailure

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import IO

    from kubeauthn.cli.demo_webhook import Shield

COMMAND_SECONDS = 30.0
INTERRUPT_SECONDS = 10.0
SAID_BYTES = 1 << 14


class Command:
    """Run it once."""

    def __init__(self, words: tuple[object, ...], environment: Mapping[str, str], shield: Shield) -> None:
        self._words = words
        self._environment = environment
        self._shield = shield
        self._said = b""
        self._reader: threading.Thread | None = None

    def run(self) -> int:
        """Its exit code. The shield is held until the process is known, so that it can be ended."""
        process: subprocess.Popen[bytes] | None = None
        try:
            with self._shield():
                process = subprocess.Popen(
                    [sys.executable, "-P", "-m", "kubeauthn", *map(str, self._words)],
                    env=self._environment,
                    stdin=subprocess.DEVNULL,
                    stdout=subprocess.DEVNULL,
                    stderr=subprocess.PIPE,
                    process_group=0,  # Ctrl-C is for the demo, which passes it on
                )
                self._reader = threading.Thread(target=self._read, args=(process.stderr,), daemon=True)
                self._reader.start()
            return process.wait(COMMAND_SECONDS)
        except subprocess.TimeoutExpired:
            name = self._words[0]
            raise EnvironmentFailure(f"kubeauthn {name} has not ended after {COMMAND_SECONDS:g} seconds") from None
        finally:
            if process is not None:
                _interrupt(process)

    def all_gone(self, seconds: float) -> bool:
        """Whether it, and whatever it has started, has ended; it is waited for."""
        if self._reader is not None:
            self._reader.join(seconds)
        return self._reader is None or not self._reader.is_alive()

    def said(self) -> list[str]:
        """The last of what came on standard error, by lines."""
        return self._said.decode("utf-8", "replace").splitlines()

    def _read(self, stream: IO[bytes]) -> None:
        with stream:
            for line in iter(lambda: stream.readline(SAID_BYTES), b""):
                self._said = (self._said + line)[-SAID_BYTES:]


def _interrupt(process: subprocess.Popen[bytes]) -> None:
    """As Ctrl-C would: the command then ends what it has started itself."""
    if process.poll() is not None:
        return
    process.send_signal(signal.SIGINT)
    try:
        process.wait(INTERRUPT_SECONDS)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
