"""Whoever asks `bridge run` or `kubectl` to end means the program that they run."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

from kubeauthn.testing import ApiServer
from tests.integration.proxy_parts import eventually
from tests.integration.test_bridge_kubectl import KUBEAUTHN, Home

STAYS = """
import os, signal, sys, time
number, folder = int(sys.argv[1]), sys.argv[2]
def ends(*_):
    os.mkdir(f"{folder}/heard")
    sys.exit(7)
signal.signal(number, ends)
open(f"{folder}/pid", "w").write(str(os.getpid()))
time.sleep(50)
"""


@pytest.fixture
def home(tmp_path: Path) -> Iterator[Home]:
    with ApiServer(tokens={"good": "jane"}) as server:
        made = Home(tmp_path, server)
        made.user({"token": "good"})
        yield made


@contextmanager
def running(home: Home, number: int, *before: str) -> Iterator[subprocess.Popen[bytes]]:
    """`bridge run` of a program that ends with 7 when it hears this signal."""
    command = [*before, *KUBEAUTHN, "bridge", "run", "--", sys.executable, "-c", STAYS, str(number), str(home.folder)]
    (home.folder / "temporary").mkdir()
    environ = {**home.environ, "TMPDIR": str(home.folder / "temporary")}
    pid = home.folder / "pid"
    with subprocess.Popen(command, env=environ, stdin=subprocess.DEVNULL) as started:
        try:
            eventually(lambda: pid.exists() and pid.read_text(), "the program")
            yield started
        finally:
            with suppress(ProcessLookupError):
                os.kill(int(pid.read_text()), signal.SIGKILL)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_the_program_is_asked_to_end_and_nothing_is_left(home: Home, number: signal.Signals):
    with running(home, number) as command:
        assert list((home.folder / "temporary").iterdir())
        command.send_signal(number)
        assert command.wait(20) == 7
    assert (home.folder / "heard").exists()
    assert list((home.folder / "temporary").iterdir()) == []


def test_what_is_ignored_stays_ignored(home: Home):
    """Under nohup."""
    with running(home, signal.SIGHUP, "sh", "-c", 'trap "" HUP; exec "$@"', "sh") as command:
        command.send_signal(signal.SIGHUP)
        command.send_signal(signal.SIGTERM)
        assert command.wait(20) == 128 + signal.SIGTERM
    assert not (home.folder / "heard").exists()
