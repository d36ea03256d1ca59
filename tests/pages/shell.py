"""A bash that runs one command after the other, as a reader's terminal does."""

from __future__ import annotations

import os
import selectors
import shlex
import signal
import subprocess
import time
from pathlib import Path

SECONDS = 40
"""For one command. None should take a quarter of it."""


class Shell:
    """One bash, with one command after the other."""

    def __init__(self, folder: Path, environ: dict[str, str]) -> None:
        self._folder = folder
        self._process = subprocess.Popen(
            ["bash", "--norc", "--noprofile"],
            cwd=folder,
            env=environ,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
        self._seen = ""

    def start(self, command: str, end: str = "") -> None:
        assert self._process.stdin is not None
        line = f"eval {shlex.quote(command)} </dev/null\n{end}\n"
        self._seen = ""
        self._process.stdin.write(line.encode())
        self._process.stdin.flush()

    def run(self, command: str) -> tuple[str, int]:
        """What it printed, and its exit code."""
        mark = f"--{os.urandom(8).hex()}--"
        self.start(command, f"echo {mark} $?")
        self.read_until(lambda seen: mark in seen and seen.endswith("\n"))
        printed, _, code = self._seen.partition(mark)
        return printed, int(code)

    def read_until(self, enough) -> str:
        assert self._process.stdout is not None
        end = time.monotonic() + SECONDS
        with selectors.DefaultSelector() as selector:
            selector.register(self._process.stdout, selectors.EVENT_READ)
            while not enough(self._seen):
                assert time.monotonic() < end, f"not what was expected within {SECONDS} s:\n{self._seen}"
                if selector.select(0.2):
                    piece = os.read(self._process.stdout.fileno(), 65536)
                    assert piece, f"the shell ended:\n{self._seen}"
                    self._seen += piece.decode(errors="replace")
        return self._seen

    def end(self) -> None:
        """As Ctrl-C and closing the window do, and then for certain."""
        for number, seconds in ((signal.SIGINT, 5), (signal.SIGTERM, 5), (signal.SIGKILL, 5)):
            try:
                os.killpg(self._process.pid, number)
            except ProcessLookupError:
                break
            if number == signal.SIGINT and self._process.stdin is not None:
                self._process.stdin.close()
            try:
                self._process.wait(seconds)
            except subprocess.TimeoutExpired:
                continue
        self._process.wait(5)
        if self._process.stdout is not None:
            self._process.stdout.close()
