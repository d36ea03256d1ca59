"""`kubeauthn playground` as a process of its own, for tests: started, and ended by its id."""

from __future__ import annotations

import os
import signal
import subprocess
import sys


class PlaygroundProcess:
    """Use it as a context manager. `said` is what it printed first."""

    def __init__(self, *arguments: str, **environment: str) -> None:
        command = [sys.executable, "-m", "kubeauthn", "playground", *arguments]
        environ = {**os.environ, "PYTHONUNBUFFERED": "1", **environment}
        pipe = subprocess.PIPE
        self.process = subprocess.Popen(
            command, stdout=pipe, stderr=pipe, stdin=subprocess.DEVNULL, text=True, env=environ
        )
        assert self.process.stdout is not None
        self.said = self.process.stdout.readline() + self.process.stdout.readline()

    @property
    def port(self) -> int:
        return int(self.said.partition("127.0.0.1:")[2].partition("/")[0])

    def end(self) -> tuple[int, str]:
        self.process.send_signal(signal.SIGINT)
        out, err = self.process.communicate(timeout=50)
        return self.process.returncode, self.said + out + err

    def __enter__(self) -> PlaygroundProcess:
        return self

    def __exit__(self, *_: object) -> None:
        if self.process.poll() is None:
            self.process.kill()
        self.process.communicate()
