"""Ctrl-C in a terminal while `kubeauthn` is only being loaded, and while Python ends: no traceback at either end."""

from __future__ import annotations

import os
import pty
import select
import signal
import subprocess
import sys
import time
import tomllib
from pathlib import Path

import pytest

SCRIPTS = tomllib.loads((Path(__file__).parents[2] / "pyproject.toml").read_text())["project"]["scripts"]
PATIENCE = 60.0
HERE = b"here it is\r\n"
STOPS = """
import atexit, fcntl, os, sys, termios, time

fcntl.ioctl(0, termios.TIOCSCTTY, 0)  # so that Ctrl-C, typed there, is a signal for us


def stop():
    os.write(1, b"here it is\\n")
    time.sleep({seconds})


class Stop:
    def find_spec(self, name, path=None, target=None):
        if name == {name!r}:
            stop()


class Lost:
    def __del__(self):  # an exception that is raised here is printed, and lost
        stop()


class StopWhereExceptionsAreLost:
    def find_spec(self, name, path=None, target=None):
        if name == {name!r}:
            Lost()


if {name!r} == "the end":
    atexit.register(stop)
else:
    sys.meta_path.insert(0, StopWhereExceptionsAreLost() if {lost} else Stop())
"""


class Terminal:
    """A program in a terminal of its own, which says when it has come to a certain place, and waits there."""

    def __init__(self, command: list[str], folder: Path, place: str, *, lost: bool = False) -> None:
        (folder / "sitecustomize.py").write_text(STOPS.format(name=place, seconds=PATIENCE, lost=lost))
        search = (str(folder), os.environ.get("PYTHONPATH", ""))
        self._keyboard, screen = pty.openpty()
        self.shown = b""
        self.process = subprocess.Popen(
            command,
            stdin=screen,
            stdout=screen,
            stderr=screen,
            start_new_session=True,
            env={**os.environ, "PYTHONPATH": os.pathsep.join(part for part in search if part)},
        )
        os.close(screen)

    def wait_for_place(self) -> None:
        ends = time.monotonic() + PATIENCE
        while HERE not in self.shown:
            assert time.monotonic() < ends, self.shown
            assert self._read(), self.shown

    def press_ctrl_c(self) -> int:
        """The exit code. What is on the screen after it is kept, too."""
        os.write(self._keyboard, b"\x03")
        code = self.process.wait(PATIENCE / 2)
        while self._read():
            pass
        return code

    def _read(self) -> bool:
        try:
            more = os.read(self._keyboard, 4096) if select.select([self._keyboard], [], [], 1.0)[0] else b""
        except OSError:  # how a terminal ends
            return False
        self.shown += more
        return bool(more) or self.process.poll() is None

    def close(self) -> None:
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()
        os.close(self._keyboard)


def interrupted(command: list[str], folder: Path, place: str, *, lost: bool = False) -> tuple[int, str]:
    terminal = Terminal(command, folder, place, lost=lost)
    try:
        terminal.wait_for_place()
        code = terminal.press_ctrl_c()
        return code, terminal.shown.partition(HERE)[2].decode().replace("^C", "").strip()
    finally:
        terminal.close()


def started(script: str) -> list[str]:
    """As the installed script does it."""
    module, _, function = SCRIPTS[script].partition(":")
    return [sys.executable, "-c", f"import sys; from {module} import {function}; sys.exit({function}())"]


@pytest.mark.parametrize("script", ["kubeauthn", "kubectl-authn"])
@pytest.mark.parametrize(
    "place", ["kubeauthn.cli.main", "kubeauthn.errors", "kubeauthn.cli.arguments", "kubeauthn.cli.schema"]
)
def test_while_it_is_loaded(script: str, place: str, tmp_path: Path):
    assert interrupted([*started(script), "schema"], tmp_path, place) == (130, "")


def test_as_a_module(tmp_path: Path):
    assert interrupted([sys.executable, "-m", "kubeauthn", "schema"], tmp_path, "kubeauthn.errors") == (130, "")


def test_where_python_would_lose_it(tmp_path: Path):
    """In a destructor or a weak reference's function, of which there are some in every import."""
    command = [*started("kubeauthn"), "schema"]
    assert interrupted(command, tmp_path, "kubeauthn.cli.arguments", lost=True) == (130, "")


def test_while_the_command_runs_it_can_clear_up(tmp_path: Path):
    """`playground` catches it to close its socket, and calls that a success: so an exception has reached it."""
    command = [*started("kubeauthn"), "playground", "--port", "0", "--no-browser"]
    terminal = Terminal(command, tmp_path, "no such module")
    try:
        while b"Ctrl-C ends it" not in terminal.shown:
            assert terminal._read(), terminal.shown
        time.sleep(0.3)  # from its last word to its waiting
        assert terminal.press_ctrl_c() == 0
        assert b"Traceback" not in terminal.shown
    finally:
        terminal.close()


def test_while_python_ends(tmp_path: Path):
    """Everything is done then, and the signal ends what is left."""
    assert interrupted([*started("kubeauthn"), "--version"], tmp_path, "the end") == (-signal.SIGINT, "")


def test_a_job_in_the_background_goes_on():
    """Whoever started it has told it to ignore Ctrl-C, and that stays so."""
    ignoring = "import signal, subprocess, sys; signal.signal(signal.SIGINT, signal.SIG_IGN)\n"
    ignoring += "sys.exit(subprocess.run(sys.argv[1:]).returncode)"
    probe = "import signal; from kubeauthn.cli.entry import main; main(); "
    probe += "print(signal.getsignal(signal.SIGINT) is signal.SIG_IGN)"
    command = [sys.executable, "-c", ignoring, sys.executable, "-c", probe, "--version"]
    result = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE)
    assert (result.returncode, result.stdout.splitlines()[-1]) == (0, "True"), result
