"""A full run of the benchmarks takes most of an hour: which scenario it has come to is said when that begins."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def test_a_scenario_is_named_before_its_first_figure(tmp_path: Path):
    command = [sys.executable, "-m", "bench", "--quick", "--only", "kubeconfig", "--only", "startup"]
    environment = {**os.environ, "PATH": str(tmp_path)}  # no Go there, so nothing is built first
    with subprocess.Popen(command, cwd=ROOT, env=environment, stdout=subprocess.PIPE) as running:
        try:
            assert running.stdout is not None
            begins = next(line for line in running.stdout if b"kubeconfig" in line)
            assert running.poll() is None, "it is said while it is measured, not at the end"
        finally:
            running.terminate()
    assert begins == b"      kubeconfig begins, 1 of 2\n"
