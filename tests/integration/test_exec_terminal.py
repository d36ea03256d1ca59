"""Plugins that talk to a person, on a real (pseudo) terminal."""

from __future__ import annotations

import os
import pty
import select
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from kubeauthn._core import execwire
from kubeauthn.testing.plugins import PluginDirectory

ASKS = """\
printf 'Password: ' >&2
read password || { echo 'no answer' >&2; exit 5; }
test "$password" = hunter2 || exit 6
echo '{"apiVersion":"client.authentication.k8s.io/v1","kind":"ExecCredential","status":{"token":"t"}}'
"""

PROGRAM = f"""\
import sys
from kubeauthn._core.kubeconfig.model import Cluster, ExecConfig
from kubeauthn.client.exec_source import ExecOptions, ExecPlugin
config = ExecConfig(sys.argv[1], {execwire.V1!r}, interactive_mode=sys.argv[2])
options = ExecOptions(seconds=float(sys.argv[3]), stdin_taken=sys.argv[4] if len(sys.argv) > 4 else None)
try:
    ExecPlugin(config, Cluster(server="https://127.0.0.1"), options).make_credential()
    print("got it")
except Exception as error:
    print(type(error).__name__, error)
"""


class Terminal:
    def __init__(self, process: subprocess.Popen[bytes], master: int) -> None:
        self.process = process
        self._master = master
        self.seen = ""

    def type(self, text: str) -> None:
        os.write(self._master, text.encode())

    def wait_for(self, text: str, seconds: float = 10.0) -> None:
        deadline = time.monotonic() + seconds
        while text not in self.seen:
            assert time.monotonic() < deadline, f"{text!r} did not appear in {self.seen!r}"
            if select.select([self._master], [], [], 0.1)[0]:
                try:
                    self.seen += os.read(self._master, 4096).decode()
                except OSError:  # the other end is closed
                    assert text in self.seen, self.seen
                    return


@contextmanager
def on_a_terminal(*arguments: str) -> Iterator[Terminal]:
    master, slave = pty.openpty()
    process = subprocess.Popen(
        [sys.executable, "-c", PROGRAM, *arguments],
        stdin=slave,
        stdout=slave,
        stderr=slave,
        start_new_session=True,
        # Make it the controlling terminal, as a shell's child has it.
        preexec_fn=lambda: os.close(os.open(os.ttyname(0), os.O_RDWR)),
    )
    os.close(slave)
    try:
        yield Terminal(process, master)
    finally:
        process.kill()
        process.wait()
        os.close(master)


@pytest.fixture
def asks(tmp_path: Path) -> str:
    return str(PluginDirectory(tmp_path / "plugins").script("asks", ASKS))


@pytest.mark.parametrize("mode", ["IfAvailable", "Always"])
def test_prompt_and_answer_go_through_the_terminal(asks: str, mode: str) -> None:
    with on_a_terminal(asks, mode, "30") as terminal:
        terminal.wait_for("Password: ")
        terminal.type("hunter2\n")
        terminal.wait_for("got it")


def test_a_person_may_take_longer_than_the_time_limit(asks: str) -> None:
    with on_a_terminal(asks, "IfAvailable", "0.2") as terminal:
        terminal.wait_for("Password: ")
        time.sleep(0.6)
        terminal.type("hunter2\n")
        terminal.wait_for("got it")


def test_never_does_not_get_the_terminal(asks: str) -> None:
    with on_a_terminal(asks, "Never", "30") as terminal:
        terminal.wait_for("exit code 5")
        assert "PluginFailed" in terminal.seen


def test_if_available_leaves_a_taken_standard_input_alone(asks: str) -> None:
    with on_a_terminal(asks, "IfAvailable", "30", "used by -f -") as terminal:
        terminal.wait_for("exit code 5")


def test_always_says_why_standard_input_is_not_free(asks: str) -> None:
    with on_a_terminal(asks, "Always", "30", "used by -f -") as terminal:
        terminal.wait_for("standard input is unavailable: used by -f -")


def test_a_plugin_without_a_person_cannot_wait_on_the_terminal_behind_our_back(tmp_path: Path) -> None:
    """It opens /dev/tty: outside our session that fails at once, instead of stopping until the time limit."""
    sneaky = PluginDirectory(tmp_path / "plugins").script("sneaky", "read answer </dev/tty || exit 8\n")
    with on_a_terminal(str(sneaky), "Never", "20") as terminal:
        terminal.wait_for("PluginFailed", seconds=5)


def test_ctrl_c_ends_plugin_and_program(asks: str, tmp_path: Path) -> None:
    with on_a_terminal(asks, "IfAvailable", "30") as terminal:
        terminal.wait_for("Password: ")
        terminal.type("\x03")
        assert terminal.process.wait(40) in (-signal.SIGINT, 130, 1)
