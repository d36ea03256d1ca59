"""`make e2e` where there is no Go: it says so and leaves everything out; in CI that is a failure."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize(("variables", "status"), [({}, 0), ({"CI": "true"}, 1)])
def test_without_go_it_says_so(tmp_path: Path, variables: dict[str, str], status: int):
    environment = {"HOME": str(tmp_path), "PATH": str(tmp_path), **variables}
    done = subprocess.run(
        [sys.executable, "-m", "tests.e2e"], cwd=ROOT, env=environment, capture_output=True, text=True, timeout=60
    )
    assert "e2e: left out, there is no Go here" in done.stdout
    assert done.stdout.splitlines()[-1] == "0 passed, 0 failed"
    assert done.returncode == status
