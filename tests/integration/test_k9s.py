"""k9s at a terminal, unmodified, with the kubeconfig that the bridge wrote."""

from __future__ import annotations

import fcntl
import os
import pty
import select
import signal
import struct
import subprocess
import sys
import termios
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from kubeauthn.testing import ApiServer
from tests.peers.programs import find

SECONDS = 60
K9S = find("k9s")
pytestmark = pytest.mark.skipif(K9S is None, reason="k9s is not built: tests/peers/build.py")


@pytest.fixture
def server(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[ApiServer]:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.setenv("K9SCONFIG", str(tmp_path / "k9s"))
    monkeypatch.setenv("TERM", "xterm")
    # It asks a server of the world for its newest release: nobody is there.
    monkeypatch.setenv("HTTPS_PROXY", "http://127.0.0.1:9")
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    with ApiServer(tokens={"good": "jane"}) as running:
        own = running.write_kubeconfig(tmp_path / "own", {"token": "good"}, namespace="default")
        bridge("kubeconfig", "--kubeconfig", str(own), "--write", str(tmp_path / "bridged"))
        monkeypatch.setenv("KUBECONFIG", str(tmp_path / "bridged"))
        yield running
        bridge("stop", "--all")


def bridge(*words: str) -> None:
    command = [sys.executable, "-m", "kubeauthn", "bridge", *words]
    subprocess.run(command, check=True, timeout=SECONDS, capture_output=True)


class Screen:
    """A program at a terminal of its own, and all that it has drawn."""

    def __init__(self, *command: str) -> None:
        self.drawn = b""
        self.pid, self._terminal = pty.fork()
        if self.pid == 0:
            os.execv(command[0], command)  # noqa: S606  the child of a terminal's fork
        fcntl.ioctl(self._terminal, termios.TIOCSWINSZ, struct.pack("HHHH", 40, 150, 0, 0))

    def shows(self, text: bytes) -> bool:
        """Waits until it has been drawn."""
        end = time.monotonic() + SECONDS
        while text not in self.drawn and select.select([self._terminal], [], [], max(0, end - time.monotonic()))[0]:
            try:
                self.drawn += os.read(self._terminal, 65536)
            except OSError:  # it has ended
                break
        return text in self.drawn

    def close(self) -> None:
        os.kill(self.pid, signal.SIGKILL)
        os.waitpid(self.pid, 0)
        os.close(self._terminal)


def test_pods_are_listed_and_those_that_come_later_too(server: ApiServer):
    server.add_pod("web")
    screen = Screen(str(K9S), "--namespace", "default", "--command", "pods")
    try:
        assert screen.shows(b"web"), screen.drawn[-2000:]
        server.add_pod("came-later")
        assert screen.shows(b"came-later"), screen.drawn[-2000:]
    finally:
        screen.close()
    assert {request.user for request in server.requests} == {"jane"}
