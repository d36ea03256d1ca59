"""What a transcript cannot show: a reader that goes away, an interrupt, a stream that is read along, a terminal."""

from __future__ import annotations

import os
import pty
import select
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from kubeauthn.testing import ApiServer, ScriptedPlugin

PROGRAM = str(Path(sys.executable).with_name("kubeauthn"))
WATCH = "/api/v1/namespaces?watch=true&resourceVersion=0"
SECONDS = 20


@pytest.fixture
def server(own_environment: Path) -> Iterator[ApiServer]:
    with ApiServer(tokens={"s3cret": "jane"}) as server:
        server.write_kubeconfig(own_environment / ".kube" / "config", {"token": "s3cret"})
        yield server


def read_until(descriptor: int, wanted: bytes) -> bytes:
    """What comes until `wanted` is in it; an assertion if it never is."""
    seen = b""
    deadline = time.monotonic() + SECONDS
    while wanted not in seen:
        assert time.monotonic() < deadline, seen
        if select.select([descriptor], [], [], 0.1)[0]:
            try:
                chunk = os.read(descriptor, 65536)
            except OSError:  # a terminal whose other end is closed
                chunk = b""
            assert chunk, f"it ended: {seen!r}"
            seen += chunk
    return seen


def test_a_watch_is_printed_as_it_comes_and_an_interrupt_ends_it_quietly(server: ApiServer):
    with subprocess.Popen([PROGRAM, "raw", WATCH], stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        try:
            read_until(process.stdout.fileno(), b"kube-system")
            server.emit("namespaces", "born-later")
            read_until(process.stdout.fileno(), b"born-later")
            process.send_signal(signal.SIGINT)
            assert process.wait(SECONDS) == 130
            assert process.stderr.read() == b""
        finally:
            process.kill()


def test_a_reader_that_goes_away_is_no_error(server: ApiServer):
    with subprocess.Popen([PROGRAM, "raw", WATCH], stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        try:
            read_until(process.stdout.fileno(), b"kube-system")
            process.stdout.close()
            server.emit("namespaces", "nobody-reads-this")
            assert process.wait(SECONDS) == 141
            assert process.stderr.read() == b""
        finally:
            process.kill()


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="this system has no /dev/full")
def test_a_full_disk_is_an_error(server: ApiServer):
    with open("/dev/full", "wb") as full:
        result = subprocess.run([PROGRAM, "whoami"], stdout=full, stderr=subprocess.PIPE, timeout=SECONDS)
    assert (result.returncode, result.stderr) == (4, b"error: no space left on device\n")


def on_a_terminal(*command: str, **environment: str) -> tuple[int, bytes]:
    """Exit code and everything that came out, with a terminal on all three streams."""
    child, terminal = pty.openpty()
    try:
        process = subprocess.Popen(
            [PROGRAM, *command],
            stdin=terminal,
            stdout=terminal,
            stderr=terminal,
            env={**os.environ, "TERM": "xterm", "NO_COLOR": "", **environment},
            start_new_session=True,
        )
        os.close(terminal)
        seen = b""
        deadline = time.monotonic() + SECONDS
        while time.monotonic() < deadline:
            if not select.select([child], [], [], 0.1)[0]:
                continue
            try:
                chunk = os.read(child, 65536)
            except OSError:
                break
            if not chunk:
                break
            seen += chunk
        return process.wait(SECONDS), seen
    finally:
        os.close(child)


def test_secrets_on_a_terminal_come_with_a_warning(server: ApiServer):
    code, seen = on_a_terminal("credential", "--reveal")
    assert code == 0
    assert seen.startswith(b"warning: what follows is a secret, and this is a terminal\r\n")
    assert b"s3cret" in seen


def test_colour_is_for_terminals_and_can_be_turned_off(server: ApiServer):
    assert b"\x1b[32mok" in on_a_terminal("doctor")[1]
    assert b"\x1b" not in on_a_terminal("doctor", NO_COLOR="1")[1]
    assert b"\x1b" not in on_a_terminal("doctor", TERM="dumb")[1]


def test_a_plugin_that_needs_a_person_gets_the_terminal(server: ApiServer, own_environment: Path, tmp_path: Path):
    plugin = ScriptedPlugin(tmp_path / "plugin")
    plugin.reply(token="s3cret")
    server.write_kubeconfig(own_environment / ".kube" / "config", plugin.user(interactiveMode="Always"))
    code, seen = on_a_terminal("whoami")
    assert (code, b"jane" in seen) == (0, True), seen
    assert plugin.exec_info()["spec"] == {"interactive": True}

    # With the body on standard input there is no terminal left for it.
    code, seen = on_a_terminal("raw", "POST", "/api/v1/namespaces", "-f", "/dev/null")
    assert code == 1, seen  # an empty body is the server's to refuse
    runs = plugin.runs
    result = subprocess.run(
        [PROGRAM, "raw", "POST", "/api/v1/namespaces", "-f", "-"], input=b"{}", capture_output=True, timeout=SECONDS
    )
    assert result.returncode == 4
    assert b"cannot support interactive mode" in result.stderr
    assert plugin.runs == runs
