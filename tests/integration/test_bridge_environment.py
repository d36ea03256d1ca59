"""Programs with different environments behind one bridge: a plugin's identity may come from a variable."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

import pytest

from kubeauthn.plugins.bridge.environment import carried, differing, marks
from kubeauthn.plugins.bridge.route import LOOK_SECONDS
from kubeauthn.testing import ApiServer, PluginDirectory
from tests.integration.proxy_parts import eventually
from tests.integration.test_bridge_kubectl import KUBEAUTHN, Home

# No kubectl is needed here: this is what one does with the bridge's kubeconfig.
ASK = "from kubeauthn.client import connect; print(connect().get('/api/v1/namespaces').status_code)"
WATCH = """
from kubeauthn.client import connect
with connect().stream("GET", "/api/v1/namespaces?watch=1") as answer:
    print(answer.status_code, flush=True)
    input()
"""
PLUGIN = """
env > {seen}
printf '{{"apiVersion": "client.authentication.k8s.io/v1", "kind": "ExecCredential", '
printf '"status": {{"token": "%s"}}}}' "${{AWS_PROFILE:-two}}"
"""


@pytest.fixture
def server() -> Iterator[ApiServer]:
    with ApiServer(tokens={"one": "first", "two": "second"}) as started:
        yield started


@pytest.fixture
def home(server: ApiServer, tmp_path: Path) -> Iterator[Home]:
    script = PLUGIN.format(seen=tmp_path / "seen")
    plugin = PluginDirectory(tmp_path / "plugins").script("by-profile", script)
    made = Home(tmp_path, server)
    entry = {"apiVersion": "client.authentication.k8s.io/v1", "command": str(plugin), "interactiveMode": "Never"}
    made.user({"exec": entry})
    assert made.kubeauthn("bridge", "kubeconfig", "--write", str(tmp_path / "bridged")).returncode == 0
    yield made
    made.kubeauthn("bridge", "stop", "--all")


def ask(home: Home, profile: str, **environ: str) -> subprocess.CompletedProcess[str]:
    """As plain kubectl does, with the bridge's own kubeconfig."""
    path = str(home.folder / "bridged")
    return home.run(sys.executable, "-c", ASK, **{"KUBECONFIG": path, "AWS_PROFILE": profile, **environ})


@contextmanager
def watching(home: Home, profile: str) -> Iterator[subprocess.Popen[str]]:
    environ = {**home.environ, "KUBECONFIG": str(home.folder / "bridged"), "AWS_PROFILE": profile}
    pipe = subprocess.PIPE
    with subprocess.Popen([sys.executable, "-c", WATCH], env=environ, stdin=pipe, stdout=pipe, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "200\n"
        try:
            yield process
        finally:
            process.communicate("\n", timeout=50)


def asked(where: str, question: bytes) -> bytes:
    with socket.socket(socket.AF_UNIX) as asking:
        asking.settimeout(20)
        asking.connect(where)
        try:
            asking.sendall(question)
            return asking.recv(4096)
        except ConnectionError:  # it did not read on
            return b""


def users(server: ApiServer) -> list[str | None]:
    return [request.user for request in server.requests]


def test_one_environment_after_the_other_each_has_its_own_identity(home: Home, server: ApiServer):
    for profile in ("one", "two", "one"):
        ended = ask(home, profile)
        assert ended.stdout == "200\n", ended.stderr
    assert users(server) == ["first", "second", "first"]
    assert len(home.bridges()) == 1


def test_a_variable_that_only_one_has_counts_too(home: Home, server: ApiServer):
    home.environ.pop("AWS_PROFILE", None)
    plain = home.run(sys.executable, "-c", ASK, KUBECONFIG=str(home.folder / "bridged"))
    assert plain.stdout == "200\n", plain.stderr
    assert ask(home, "one").stdout == "200\n"
    assert users(server) == ["second", "first"]


def test_a_policy_that_forbids_the_plugin_holds_for_a_bridge_that_runs(home: Home, server: ApiServer):
    kuberc, plugin = home.folder / "kuberc", home.folder / "plugins" / "by-profile"

    def allow(*commands: object) -> None:
        """Plain tools run the bridge's own plugin, and mind the policy too."""
        entries = [{"command": str(command)} for command in (sys.executable, *commands)]
        policy = {"credentialPluginPolicy": "Allowlist", "credentialPluginAllowlist": entries}
        kuberc.write_text(json.dumps({"apiVersion": "kubectl.config.k8s.io/v1beta1", "kind": "Preference", **policy}))

    home.environ["KUBERC"] = str(kuberc)
    for commands, answer in ([plugin], "200\n"), ([], "500\n"), ([plugin], "200\n"):
        allow(*commands)
        time.sleep(LOOK_SECONDS)
        assert ask(home, "one").stdout == answer
    assert users(server) == ["first", "first"]
    assert len(home.bridges()) == 1


def test_a_bridge_in_use_serves_no_other_environment(home: Home, server: ApiServer):
    with watching(home, "one") as watch:
        refused = ask(home, "two")
        assert refused.returncode != 0
        assert "the bridge is in use from another environment; not the same: AWS_PROFILE" in refused.stderr
        assert "two" not in refused.stderr
        # The commands have a kubeconfig of their own, and so can have another bridge.
        command = [*KUBEAUTHN, "bridge", "run", "--", sys.executable, "-c", ASK]
        beside = home.run(*command, AWS_PROFILE="two")
        assert beside.stdout == "200\n", beside.stderr
        # Whoever has the same environment is served by the one in use.
        assert home.run(*command, AWS_PROFILE="one").stdout == "200\n"
        assert watch.poll() is None
    assert users(server) == ["first", "second", "first"]
    assert len(home.bridges()) == 2


BESIDE = [*KUBEAUTHN, "bridge", "run", "--idle", "3", "--", sys.executable, "-c"]


def test_nothing_is_left_of_a_bridge_that_was_beside_another(home: Home, server: ApiServer):
    with watching(home, "one"):
        assert home.run(*BESIDE, ASK, AWS_PROFILE="two").stdout == "200\n"
        eventually(lambda: len(home.bridges()) == 1, "nothing kept of the one beside it")
    assert users(server) == ["first", "second"]
    (left,) = home.bridges()
    assert left["running"]


def test_a_command_that_goes_on_after_its_bridge_takes_along_what_is_left_of_it(home: Home):
    with watching(home, "one"):
        ended = home.run(*BESIDE, f"{ASK}\nimport time\ntime.sleep(7)", AWS_PROFILE="two")
        assert ended.stdout == "200\n", ended.stderr
        assert len(home.bridges()) == 1


def test_a_bridge_beside_another_can_be_come_back_to_while_its_command_runs(home: Home, server: ApiServer):
    """A shell for one, in which nobody asks for anything for longer than the bridge stays."""
    twice = f"{ASK}\nimport os, time\ntime.sleep(7)\n{ASK}"
    with watching(home, "one"):
        ended = home.run(*BESIDE, twice, AWS_PROFILE="two")
        assert ended.stdout == "200\n200\n", ended.stderr
        eventually(lambda: len(home.bridges()) == 1, "nothing kept of the one beside it")
    assert users(server) == ["first", "second", "second"]


def test_another_window_is_not_another_environment(home: Home, server: ApiServer):
    assert ask(home, "one", TERM="xterm", TMUX_PANE="%1", PWD="/a").stdout == "200\n"
    (bridge,) = home.bridges()
    assert ask(home, "one", TERM="linux", TMUX_PANE="%2", PWD="/b", SSH_TTY="/dev/pts/9").stdout == "200\n"
    (same,) = home.bridges()
    assert same["running"]["pid"] == bridge["running"]["pid"]
    seen = dict(line.split("=", 1) for line in (home.folder / "seen").read_text().splitlines() if "=" in line)
    assert seen["AWS_PROFILE"] == "one"
    assert "TMUX_PANE" not in seen  # the first window's would be as wrong as the second's


def test_jobs_that_run_at_once_have_one_bridge(home: Home, server: ApiServer):
    """As GNU parallel starts them: if each had an environment of its own, all but the first would be refused."""
    with ThreadPoolExecutor(4) as jobs:
        asked = list(jobs.map(lambda number: ask(home, "one", PARALLEL_SEQ=str(number)), range(4)))
    assert [each.stdout for each in asked] == ["200\n"] * 4, [each.stderr for each in asked]
    assert set(users(server)) == {"first"}


def test_whoever_does_not_say_its_environment_gets_no_certificate(home: Home):
    assert ask(home, "one").stdout == "200\n"
    (bridge,) = home.bridges()
    path = home.folder / "state/kubeauthn/bridge" / bridge["name"] / "running.json"
    where = json.loads(path.read_text())["socket"]
    for question, answer in [
        (b"credential\n", b'{"error": "unknown question"}'),
        (b"credential []\n", b""),
        (b"credential {\n", b""),
        (b"credential " + b"x" * 400_000 + b"\n", b""),
    ]:
        assert asked(where, question) == answer


def test_a_credential_from_another_environment_is_not_taken(home: Home):
    """A person may take longer over a login than this environment's bridge stayed."""
    assert ask(home, "one").stdout == "200\n"
    (bridge,) = home.bridges()
    path = home.folder / "state/kubeauthn/bridge" / bridge["name"] / "running.json"
    where = json.loads(path.read_text())["socket"]
    given = {**home.environ, "AWS_PROFILE": "one"}
    credential = {"authorization": "Bearer two", "certificate": "", "key": "", "expires_at": None}
    for environ, told in [
        ({**given, "AWS_PROFILE": "two"}, {"differing": "AWS_PROFILE"}),
        (given, {"taken": True}),
    ]:
        offer = json.dumps({"credential": credential, "environment": marks(environ)})
        assert json.loads(asked(where, f"offer {offer}\n".encode())) == told
        assert home.bridges()[0]["running"]["offered"] is ("taken" in told)
    assert asked(where, f"offer {json.dumps(credential)}\n".encode()) == b""


def test_a_bridge_that_leaves_gives_no_certificate(home: Home):
    """It would open nothing by the time it is used, and kubectl does not ask again."""
    assert ask(home, "one").stdout == "200\n"
    (bridge,) = home.bridges()
    path = home.folder / "state/kubeauthn/bridge" / bridge["name"] / "running.json"
    where = json.loads(path.read_text())["socket"]
    question = f"credential {json.dumps(marks({**home.environ, 'AWS_PROFILE': 'one'}))}\n".encode()
    assert b"CERTIFICATE" in asked(where, question)
    with socket.socket(socket.AF_UNIX) as waiting:
        waiting.settimeout(10)
        waiting.connect(where)
        assert asked(where, b"stop\n") == b'{"stopping": true}'
        waiting.sendall(question)
        assert waiting.recv(1 << 16) in (b'{"leaving": true}', b"")


SHELLS = {
    "a prompt": {"PS1": "$ ", "PROMPT_COMMAND": "x", "LS_COLORS": "x", "HISTFILE": "/x"},
    "make": {"MAKEFLAGS": "-j", "MAKELEVEL": "1"},
    "a plugin of helm": {"HELM_PLUGIN_NAME": "diff", "HELM_NAMESPACE": "x"},
    "direnv's notes": {"DIRENV_DIFF": "x", "DIRENV_DIR": "-/x"},
    "a job of many": {"PARALLEL_SEQ": "7", "PARALLEL_JOBSLOT": "2", "PYTEST_XDIST_WORKER": "gw1", "TRACEPARENT": "0"},
    "a command of sudo": {"SUDO_COMMAND": "/usr/bin/kubectl get pods"},
    "a provider of terraform": {"PLUGIN_CLIENT_CERT": "x"},
    "a prompt that notes its terminal": {"_P9K_TTY": "/dev/pts/3", "P9K_TTY": "old", "ATUIN_HISTORY_ID": "x"},
    "another terminal": {"KITTY_PID": "1", "ZELLIJ": "0", "STARSHIP_SESSION_KEY": "x", "VSCODE_IPC_HOOK_CLI": "/x"},
}


@pytest.mark.parametrize("case", SHELLS)
def test_what_no_plugin_goes_by_is_not_compared(case: str):
    assert differing(marks({"AWS_PROFILE": "a"}), marks({"AWS_PROFILE": "a", **SHELLS[case]})) == []


@pytest.mark.parametrize(
    "name", ["HOME", "PATH", "SSH_AUTH_SOCK", "DISPLAY", "HTTPS_PROXY", "AWS_PROFILE", "SUDO_USER", "anything"]
)
def test_what_a_plugin_may_go_by_is_compared(name: str):
    assert differing(marks({name: "a"}), marks({name: "b"})) == [name]
    assert differing(marks({name: "a"}), marks({})) == [name]


def test_a_policy_is_found_from_where_the_bridge_stands(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.chdir(tmp_path)
    here = {"KUBERC": str(tmp_path / "kuberc")}
    assert carried({"KUBERC": "kuberc"}) == here
    assert marks({"KUBERC": "./kuberc"}) == marks(here)
    for as_it_is in ("off", ""):
        assert carried({"KUBERC": as_it_is}) == {"KUBERC": as_it_is}


def test_what_is_compared_is_what_a_bridge_gets():
    assert carried(
        {"AWS_PROFILE": "a", "PWD": "/", "HELM_KUBETOKEN": "t", "KUBECONFIG": "k", "SSH_AUTH_SOCK": "s"}
    ) == {
        "AWS_PROFILE": "a",
        "SSH_AUTH_SOCK": "s",
    }
    assert carried(os.environ).get("PATH") == os.environ.get("PATH")
