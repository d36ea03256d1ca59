"""Programs started for a test: their output in a file, their end by their own process id."""

from __future__ import annotations

import signal
import socket
import subprocess
import time
from collections.abc import Callable, Sequence
from pathlib import Path

__all__ = ["Running", "free_port", "poll"]


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def poll(met: Callable[[], bool], seconds: float, what: str, interval: float = 0.1) -> None:
    """Wait until something is met, and no longer than this."""
    ends = time.monotonic() + seconds
    while not met():
        if time.monotonic() > ends:
            raise AssertionError(f"not within {seconds} s: {what}")
        time.sleep(interval)


class Running:
    """One program. What it prints goes to a file, of which the end is shown when it dies early."""

    def __init__(self, command: Sequence[str | Path], log: Path, environment: dict[str, str] | None = None) -> None:
        self.log = log
        with log.open("ab") as output:
            self._process = subprocess.Popen(
                [str(part) for part in command], stdin=subprocess.DEVNULL, stdout=output, stderr=output, env=environment
            )

    @property
    def pid(self) -> int:
        return self._process.pid

    def check_alive(self) -> None:
        if self._process.poll() is not None:
            tail = self.log.read_text(errors="replace")[-3000:]
            raise AssertionError(f"ended with status {self._process.returncode}:\n{tail}")

    def signal(self, number: signal.Signals) -> None:
        self._process.send_signal(number)

    def stop(self, seconds: float = 10.0) -> None:
        if self._process.poll() is None:
            self._process.terminate()
            try:
                self._process.wait(seconds)
            except subprocess.TimeoutExpired:
                self._process.kill()
                self._process.wait()
