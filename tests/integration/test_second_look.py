"""`scripts/second-look`, which continuous integration runs the suites with."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A folder with the script and nothing else."""
    (tmp_path / "scripts").mkdir()
    shutil.copy(ROOT / "scripts" / "second-look", tmp_path / "scripts")
    return tmp_path


def looked_at(project: Path, tests: str) -> subprocess.CompletedProcess[str]:
    (project / "test_it.py").write_text(tests)
    command = [project / "scripts" / "second-look", sys.executable, "-m", "pytest", "-q", "test_it.py"]
    return subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)


ONCE = """
from pathlib import Path

def test_that_always_passes():
    with open("runs", "a") as runs:
        runs.write("x")

def test_that_fails_once():
    first = not Path("was-here").exists()
    Path("was-here").touch()
    assert not first
"""


def test_a_test_that_fails_once_is_named_and_forgiven(project: Path) -> None:
    done = looked_at(project, ONCE)
    assert done.returncode == 0, done.stdout
    assert "passed alone, and not beside the others:\ntest_it.py::test_that_fails_once" in done.stdout
    assert (project / "runs").read_text() == "x"  # what had passed did not run again


def test_a_test_that_fails_twice_has_failed(project: Path) -> None:
    done = looked_at(project, "def test_no():\n    assert False\n")
    assert done.returncode == 1
    assert "failed again" in done.stdout


def test_more_failures_than_a_few_get_no_second_look(project: Path) -> None:
    tests = "".join(f"def test_{number}():\n    assert False\n" for number in range(4))
    done = looked_at(project, tests)
    assert done.returncode == 1
    assert "second look: none, 4 tests failed" in done.stdout


def test_what_is_no_test_gets_no_second_look(project: Path) -> None:
    done = looked_at(project, "this is not Python\n")
    assert done.returncode != 0
    assert "failed again" in done.stdout or "second look: none" in done.stdout


def test_failures_of_an_earlier_run_do_not_count(project: Path) -> None:
    looked_at(project, "def test_old():\n    assert False\n")
    done = subprocess.run([project / "scripts" / "second-look", "false"], capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert "second look: none, 0 tests failed" in done.stdout
