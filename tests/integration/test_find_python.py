"""The script by which `make` finds the interpreter for its environment."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

SCRIPT = Path(__file__).parents[2] / "scripts" / "find-python"


def test_it_needs_no_home(tmp_path: Path) -> None:
    (tmp_path / "python3").symlink_to(sys.executable)
    # Neither HOME nor PYENV_ROOT, as in a container that sets none.
    environ = {"PATH": f"{tmp_path}{os.pathsep}{os.environ['PATH']}"}
    found = subprocess.run([SCRIPT, "oldest"], env=environ, capture_output=True, text=True, timeout=60)
    assert (found.returncode, found.stderr) == (0, "")
    assert os.access(found.stdout.strip(), os.X_OK)
