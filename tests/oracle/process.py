"""The oracle as a process: a case in, Kubernetes' answer out."""

from __future__ import annotations

import json
import os
import select
import subprocess
from pathlib import Path
from typing import Any

__all__ = ["Oracle", "OracleFault"]

LONGEST_ANSWER = 10.0
"""Some expressions take cel-go hours, and one is enough to wait for."""


class OracleFault(Exception):
    """The oracle has no answer: it ended, hung, or could not read the case."""


class Oracle:
    """One minor's oracle. Starts itself again after it was ended for want of an answer."""

    def __init__(self, program: Path) -> None:
        self._program = program
        self._process: subprocess.Popen[bytes] | None = None
        self.asked = 0
        self._processor_seconds = 0.0

    def __enter__(self) -> Oracle:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def versions(self) -> dict[str, str]:
        return self.ask({"versions": True})

    def ask(self, case: dict[str, Any]) -> dict[str, Any]:
        process = self._started()
        assert process.stdin is not None
        assert process.stdout is not None
        self.asked += 1
        try:
            process.stdin.write(json.dumps(case).encode() + b"\n")
            process.stdin.flush()
        except BrokenPipeError:
            self.close()
            raise OracleFault("the oracle ended") from None
        ready, _, _ = select.select([process.stdout], [], [], LONGEST_ANSWER)
        line = process.stdout.readline() if ready else b""
        if not line:
            self.close()
            raise OracleFault("no answer" if not ready else "the oracle ended")
        answer: dict[str, Any] = json.loads(line)
        if "oracleError" in answer:
            raise OracleFault(answer["oracleError"])
        return answer

    def processor_seconds(self) -> float:
        """What it has worked until now. Time on the clock says little on a machine that does other things, too."""
        if self._process is None:
            return self._processor_seconds
        fields = Path(f"/proc/{self._process.pid}/stat").read_text().rpartition(")")[2].split()
        return self._processor_seconds + sum(map(int, fields[11:13])) / os.sysconf("SC_CLK_TCK")

    def close(self) -> None:
        self._processor_seconds = self.processor_seconds()
        process, self._process = self._process, None
        if process is not None:
            process.kill()
            process.communicate()

    def _started(self) -> subprocess.Popen[bytes]:
        if self._process is None:
            self._process = subprocess.Popen([self._program], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        return self._process
