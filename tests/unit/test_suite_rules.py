"""What the suite promises: no network in unit tests, no sight of the user's files, nothing left out silently."""

from __future__ import annotations

import asyncio
import os
import socket
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


@pytest.mark.parametrize("family", [socket.AF_INET, socket.AF_INET6])
@pytest.mark.parametrize("method", ["connect", "connect_ex", "bind"])
def test_unit_tests_cannot_reach_the_network(family: socket.AddressFamily, method: str):
    address = ("127.0.0.1", 0) if family == socket.AF_INET else ("::1", 0)
    with socket.socket(family) as sock, pytest.raises(AssertionError, match=f"a unit test called socket.{method}"):
        getattr(sock, method)(address)


def test_unit_tests_cannot_look_up_a_name():
    with pytest.raises(AssertionError, match="asked for the address"):
        socket.create_connection(("localhost", 1), timeout=1)


def test_unit_tests_may_still_run_an_event_loop():
    assert asyncio.run(asyncio.sleep(0, "done")) == "done"


def test_home_is_empty_and_not_the_users(own_environment: Path):
    assert Path.home() == own_environment
    assert not list(own_environment.iterdir())


@pytest.mark.parametrize("name", ["KUBECONFIG", "KUBERC", "HTTPS_PROXY", "https_proxy", "NO_PROXY"])
def test_the_users_environment_does_not_decide(name: str):
    assert name not in os.environ


A_TEST_OF_CTRL_C = """
import signal, subprocess, sys

def test_what_a_child_inherits():
    program = "import signal; print(signal.getsignal(signal.SIGINT) is signal.default_int_handler)"
    assert subprocess.run([sys.executable, "-c", program], capture_output=True, check=True).stdout == b"True\\n"
"""


def test_ctrl_c_reaches_what_a_test_starts_also_where_it_was_ignored(tmp_path: Path):
    """As it is for `make test &` in a script, and below nohup."""
    (tmp_path / "test_it.py").write_text(A_TEST_OF_CTRL_C)
    (tmp_path / "pytest.ini").write_text("[pytest]\n")
    pytest_command = [sys.executable, "-m", "pytest", "-p", "tests.conftest", "-p", "no:cacheprovider", "-q", "."]
    result = subprocess.run(
        ["/bin/sh", "-c", 'trap "" INT; exec "$@"', "-", *pytest_command],
        cwd=tmp_path,
        env={"PATH": os.environ["PATH"], "PYTHONPATH": str(ROOT), "PYTHONDONTWRITEBYTECODE": "1"},
        capture_output=True,
        text=True,
        timeout=50,
    )
    assert result.returncode == 0, result.stdout


# -- needs ----------------------------------------------------------------------------------------

A_TEST_THAT_NEEDS = """
import pytest

@pytest.mark.needs({part!r})
def test_something():
    pass
"""


def run_pytest(folder: Path, part: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """Runs a test that needs `part` on a machine that has no program at all."""
    (folder / "test_it.py").write_text(A_TEST_THAT_NEEDS.format(part=part))
    (folder / "pytest.ini").write_text("[pytest]\nmarkers =\n    needs: part\n")
    env = {"PATH": str(folder), "PYTHONPATH": str(ROOT), "PYTHONDONTWRITEBYTECODE": "1", **environment}
    command = [sys.executable, "-m", "pytest", "-p", "tests.conftest", "-p", "no:cacheprovider", "-q", "."]
    return subprocess.run(command, cwd=folder, env=env, capture_output=True, text=True, timeout=50)


def test_a_test_whose_part_is_missing_is_left_out_and_the_end_says_so(tmp_path: Path):
    result = run_pytest(tmp_path, "softhsm2-util")
    assert result.returncode == 0, result.stdout
    assert "1 skipped" in result.stdout
    assert "softhsm2-util: 1 test (Debian package softhsm2)" in result.stdout
    assert "make system-packages" in result.stdout


def test_in_ci_a_test_that_is_left_out_is_a_failure(tmp_path: Path):
    result = run_pytest(tmp_path, "softhsm2-util", CI="true")
    assert result.returncode == 1, result.stdout
    assert "needs softhsm2-util, which is not installed" in result.stdout


def test_a_part_that_nobody_knows_is_a_mistake(tmp_path: Path):
    result = run_pytest(tmp_path, "sotfhsm")
    assert result.returncode == 4, result.stdout
    assert "needs('sotfhsm'): expected parts named in system-parts.txt: kubectl," in result.stderr
