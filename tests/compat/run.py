"""All columns, each in its own process with its own home and temporary folder, two at a time."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
AT_ONCE = 2
COLUMN_SECONDS = 90.0

Cells = dict[str, str]


class ColumnFailed(Exception):
    """A column could not be measured."""


def run_columns(names: Iterable[str]) -> dict[str, Cells]:
    """The cells of each column, by row."""
    names = list(names)
    with ThreadPoolExecutor(AT_ONCE) as pool:
        return dict(zip(names, pool.map(run_column, names), strict=True))


def run_column(name: str) -> Cells:
    with tempfile.TemporaryDirectory(prefix="kubeauthn-compat-") as made:
        folder = Path(made).resolve()
        home, temporary = folder / "home", folder / "tmp"
        home.mkdir()
        temporary.mkdir()
        output = _run_process(name, folder, {"HOME": str(home), "TMPDIR": str(temporary)})
        try:
            result = json.loads((folder / "cells.json").read_text())
        except FileNotFoundError:
            raise ColumnFailed(f"{name}:\n{output}") from None
        cells: Cells = result["cells"]
        for row, paths in result["left"].items():
            if paths:
                stays = any(Path(path).exists() for path in paths)
                cells[row] += ", never deleted" if stays else " until exit"
        return cells


def _run_process(name: str, folder: Path, environment: dict[str, str]) -> str:
    """What it printed. Nothing of the caller's environment decides, and no terminal is there."""
    with (folder / "output").open("wb+") as output:
        process = subprocess.Popen(
            [sys.executable, "-W", "ignore", "-m", "tests.compat.measure", name, str(folder)],
            cwd=ROOT,
            env={"PATH": os.environ.get("PATH", os.defpath), "LANG": "C.UTF-8", **environment},
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
        try:
            process.wait(COLUMN_SECONDS)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
            raise ColumnFailed(f"{name}: no result after {COLUMN_SECONDS:.0f} s") from None
        output.seek(0)
        return output.read().decode(errors="replace")
