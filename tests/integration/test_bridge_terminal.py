"""A plugin that asks a person, behind the bridge: the command has the terminal, the bridge gets the answer."""

from __future__ import annotations

import os
import pty
import select
import sys
from pathlib import Path

import pytest

from kubeauthn.testing import ApiServer, PluginDirectory
from tests.integration.proxy_parts import eventually
from tests.integration.test_bridge_kubectl import KUBEAUTHN, Home

SECONDS = 40
ASK = "from kubeauthn.client import connect; print('status', connect().get('/api/v1/namespaces').status_code)"
ASKING = """
printf 'PIN: ' >&2
read pin
printf 'x' >> {count}
printf '{{"apiVersion": "client.authentication.k8s.io/v1", "kind": "ExecCredential", '
printf '"status": {{"token": "%s"}}}}' "$pin"
"""


@pytest.fixture
def server():
    with ApiServer(tokens={"good": "jane", "better": "jane"}) as started:
        yield started


@pytest.fixture
def home(server: ApiServer, tmp_path: Path):
    plugin = PluginDirectory(tmp_path / "plugins").script("asking", ASKING.format(count=tmp_path / "count"))
    made = Home(tmp_path, server)
    entry = {"apiVersion": "client.authentication.k8s.io/v1", "command": str(plugin), "interactiveMode": "Always"}
    made.user({"exec": entry})
    yield made
    made.kubeauthn("bridge", "stop", "--all")


def at_a_terminal(home: Home, pin: bytes = b"") -> bytes:
    """What a person sees who runs a program through the bridge and types `pin` where it is asked for."""
    command = [*KUBEAUTHN, "bridge", "run", "--idle", "60", "--", sys.executable, "-c", ASK]
    pid, terminal = pty.fork()
    if pid == 0:
        os.execve(command[0], command, home.environ)  # noqa: S606  the child of a terminal's fork
    seen = b""
    try:
        while b"status" not in seen or not seen.endswith(b"\n"):
            assert select.select([terminal], [], [], SECONDS)[0], seen
            try:
                seen += os.read(terminal, 4096)
            except OSError:  # it has ended
                break
            if pin and seen.endswith(b"PIN: "):
                os.write(terminal, pin + b"\n")
                pin = b""
    finally:
        os.close(terminal)
        os.waitpid(pid, 0)
    return seen


def test_the_person_is_asked_once_and_the_bridge_goes_on_with_the_answer(home: Home, server: ApiServer):
    assert b"status 200" in at_a_terminal(home, b"good")
    again = at_a_terminal(home)
    assert b"PIN" not in again
    assert b"status 200" in again
    # Without a terminal, too: the bridge has the credential.
    assert home.kubeauthn("bridge", "run", "--", sys.executable, "-c", ASK).stdout == "status 200\n"
    assert (home.folder / "count").read_text() == "x"
    assert {request.user for request in server.requests} == {"jane"}


def test_an_answer_that_is_refused_is_not_kept(home: Home, server: ApiServer):
    at_a_terminal(home, b"good")
    server.revoke_token("good")
    refused = home.kubeauthn("bridge", "run", "--", sys.executable, "-c", ASK)
    assert refused.stdout != "status 200\n"
    eventually(lambda: not home.bridges()[0]["running"]["offered"], "the end of the credential")
    assert b"status 200" in at_a_terminal(home, b"better")
    assert (home.folder / "count").read_text() == "xx"


def test_nothing_of_it_is_on_the_disk(home: Home):
    at_a_terminal(home, b"good")
    for path in (home.folder / "state").rglob("*"):
        if path.is_file():
            assert "good" not in path.read_text()


@pytest.mark.parametrize(("value", "asked"), [("0", True), ("true", False)])
def test_the_variable_says_here_what_it_says_to_the_client(home: Home, value: str, asked: bool):
    """A plugin that may be a proxy is the bridge's to run; one that may not be is asked at the terminal."""
    command = str(home.folder / "plugins" / "asking")
    entry = {"apiVersion": "client.authentication.k8s.io/v1", "command": command, "interactiveMode": "IfAvailable"}
    switch = {"name": "client.authentication.k8s.io/exec-proxy", "extension": {"enabled": asked}}
    home.user({"exec": {**entry, "provideClusterInfo": True}, "extensions": [switch]})
    home.environ["KUBEAUTHN_EXEC_PROXY"] = value
    seen = at_a_terminal(home, b"good")
    assert (b"PIN" in seen) == asked
    assert (b"status 200" in seen) == asked
