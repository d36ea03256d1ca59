"""Kubernetes' own code as a peer: bench/peers, built once into the cache of the tests' peers, and asked line by line.

Without Go there is none: `started()` gives None, says so once, and the rows that need it are left out.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any

from tests.peers.programs import Program, go_version

PROGRAM = Program("bench-peer", "../../bench/peers")
LONGEST_BUILD = 30 * 60


@cache
def program() -> Path | None:
    """Where the built program is. The first call builds it, which takes minutes once."""
    if not go_version():
        print("      there is no Go here: rows beside Kubernetes' own code are left out", flush=True)
        return None
    target = PROGRAM.path()
    if os.access(target, os.X_OK):
        return target
    target.parent.mkdir(parents=True, exist_ok=True)
    print(f"      building {PROGRAM.name} with {go_version()}, once", flush=True)
    with tempfile.TemporaryDirectory(dir=target.parent) as scratch:
        made = Path(scratch) / PROGRAM.name
        command = [shutil.which("go") or "go", "build", "-trimpath", "-buildvcs=false", "-mod=readonly"]
        done = subprocess.run(
            [*command, "-o", str(made), "."],
            cwd=PROGRAM.directory,
            env={**os.environ, "CGO_ENABLED": "0"},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=LONGEST_BUILD,
            check=False,
        )
        if done.returncode:
            print(f"      {PROGRAM.name} could not be built: its rows are left out\n{done.stderr[-2000:]}", flush=True)
            return None
        made.replace(target)
    return target


class Peer:
    """A running program that takes orders."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self._process = process
        self.pid = process.pid

    def order(self, do: str, **fields: Any) -> dict[str, Any]:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps({"do": do, **fields}) + "\n")
        self._process.stdin.flush()
        line = self._process.stdout.readline()
        if not line:
            raise RuntimeError(f"the peer ended with status {self._process.wait()} over {do!r}")
        found: dict[str, Any] = json.loads(line)
        if "error" in found:
            raise RuntimeError(f"the peer could not {do}: {found['error']}")
        return found

    def cpu_per_call(self, name: str, calls: int) -> Callable[[], float]:
        """A reading: processor seconds for one run of what was prepared under the name."""
        return lambda: float(self.order("time", name=name, count=calls)["cpu"]) / calls

    def seconds_per_call(self, name: str, calls: int) -> Callable[[], float]:
        return lambda: float(self.order("time", name=name, count=calls)["seconds"]) / calls


@contextmanager
def started(cores: int = 1) -> Iterator[Peer | None]:
    """The program, allowed to compute on so many cores at a time; None where it cannot be had."""
    path = program()
    if path is None:
        yield None
        return
    environment = {**os.environ, "GOMAXPROCS": str(cores)}
    with subprocess.Popen(
        [str(path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment
    ) as process:
        try:
            yield Peer(process)
        finally:
            assert process.stdin is not None
            process.stdin.close()


def versions() -> dict[str, str]:
    """Of Go and of the modules; empty without."""
    with started() as peer:
        return {} if peer is None else peer.order("versions")
