"""Unmodified kubectl through the bridge, and what happens when either end dies."""

from __future__ import annotations

import json
import os
import signal
import ssl
import stat
import subprocess
import sys
import urllib.request
from contextlib import ExitStack
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from kubeauthn.testing import ApiServer
from tests.integration.proxy_parts import PLAIN, eventually
from tests.integration.signer_scene import SignerProgram

pytestmark = pytest.mark.needs("kubectl")

KUBEAUTHN = [sys.executable, "-m", "kubeauthn"]


class Home:
    def __init__(self, folder: Path, server: ApiServer) -> None:
        self.folder = folder
        self.server = server
        self.environ = {**os.environ, "XDG_STATE_HOME": str(folder / "state"), "KUBECONFIG": str(folder / "config")}

    def user(self, entry: dict[str, object]) -> None:
        self.server.write_kubeconfig(self.folder / "config", entry)

    def run(self, *command: str, **environ: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            command,
            env={**self.environ, **environ},
            capture_output=True,
            text=True,
            timeout=50,
            stdin=subprocess.DEVNULL,
        )

    def kubeauthn(self, *words: str) -> subprocess.CompletedProcess[str]:
        return self.run(*KUBEAUTHN, *words)

    def kubectl(self, *words: str) -> subprocess.CompletedProcess[str]:
        return self.kubeauthn("kubectl", "--idle", "60", "--", *words)

    def bridges(self) -> list[dict]:
        listed = self.kubeauthn("bridge", "list", "--output", "json")
        assert listed.returncode == 0, listed.stderr
        return json.loads(listed.stdout)["bridges"]


@pytest.fixture
def server():
    with ApiServer(tokens={"good": "jane"}) as started:
        yield started


@pytest.fixture
def home(server: ApiServer, tmp_path: Path):
    made = Home(tmp_path, server)
    made.user({"token": "good"})
    yield made
    made.kubeauthn("bridge", "stop", "--all")


def test_kubectl_through_the_bridge(home: Home, server: ApiServer):
    own = (home.folder / "config").read_bytes()
    for _ in range(2):
        ended = home.kubectl("get", "namespaces", "-o", "name")
        assert ended.returncode == 0, ended.stderr
        assert "namespace/default" in ended.stdout.split()
    assert {request.user for request in server.requests} == {"jane"}
    (bridge,) = home.bridges()
    assert bridge["running"]["accepted"] >= 2
    assert (home.folder / "config").read_bytes() == own
    assert home.kubectl("get", "pods", "no-such-pod").returncode == 1


def test_plain_kubectl_with_the_bridges_kubeconfig(home: Home, server: ApiServer):
    path = home.folder / "bridged"
    written = home.kubeauthn("bridge", "kubeconfig", "--write", str(path))
    assert written.returncode == 0, written.stderr
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert "good" not in path.read_text()
    assert "PRIVATE" not in path.read_text()
    ended = home.run("kubectl", "get", "namespaces", "-o", "name", KUBECONFIG=str(path))
    assert ended.returncode == 0, ended.stderr
    assert "namespace/default" in ended.stdout.split()
    # A crash, and a socket that is left behind: the next call starts another.
    pid = home.bridges()[0]["running"]["pid"]
    os.kill(pid, signal.SIGKILL)
    eventually(lambda: home.bridges()[0]["running"] is None, "the bridge's end")
    ended = home.run("kubectl", "get", "namespaces", "-o", "name", KUBECONFIG=str(path))
    assert ended.returncode == 0, ended.stderr
    assert home.bridges()[0]["running"]["pid"] != pid


def test_the_users_own_files_are_not_written_over(home: Home):
    own = home.folder / "config"
    other = home.folder / "other"
    other.write_text("precious")
    link = home.folder / "link"
    link.symlink_to(own)
    for path in (own, other, link):
        before = path.read_bytes()
        ended = home.kubeauthn("bridge", "kubeconfig", "--write", str(path))
        assert ended.returncode == 4
        assert path.read_bytes() == before


def test_many_commands_at_once_that_are_the_first_have_one_bridge(home: Home):
    """As `make -j` runs them: one port and one certificate, in the kubeconfigs of all."""
    program = (
        "import sys\nfrom kubeauthn._io.carrier import one_run\nfrom kubeauthn.plugins.bridge import definition\n"
        "print(flush=True)\nsys.stdin.readline()\n"
        "made = definition.define(None, {})\nprint(made.port, hash(made.certificate))"
    )
    environ = {**home.environ, "PYTHONHASHSEED": "0"}
    with ExitStack() as stack:
        commands = [
            stack.enter_context(
                subprocess.Popen(
                    [sys.executable, "-c", program],
                    env=environ,
                    stdin=subprocess.PIPE,
                    stdout=subprocess.PIPE,
                    text=True,
                )
            )
            for _ in range(10)
        ]
        for command in commands:
            assert command.stdout is not None
            assert command.stdout.readline() == "\n"
        for command in commands:
            assert command.stdin is not None
            command.stdin.write("\n")
            command.stdin.flush()
        assert len({command.communicate(timeout=50)[0] for command in commands}) == 1
    assert len(home.bridges()) == 1


def test_many_starts_at_once_make_one_bridge(home: Home):
    path = home.folder / "bridged"
    assert home.kubeauthn("bridge", "kubeconfig", "--write", str(path)).returncode == 0
    command = ["kubectl", "--kubeconfig", str(path), "get", "namespaces", "-o", "name"]
    running = [subprocess.Popen(command, env=home.environ, stdout=subprocess.DEVNULL) for _ in range(4)]
    assert [process.wait(50) for process in running] == [0] * 4
    assert len(home.bridges()) == 1


def test_only_its_own_certificate_opens_it(home: Home, server: ApiServer):
    assert home.kubectl("get", "namespaces").returncode == 0
    port = home.bridges()[0]["port"]
    before = len(server.requests)
    for leaf in (None, server.ca.issue_client("mallory")):
        context = ssl.create_default_context()
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
        if leaf is not None:
            leaf.load_into(context)
        with pytest.raises(OSError):  # noqa: PT011  the handshake's refusal has no text of its own
            urllib.request.urlopen(f"https://127.0.0.1:{port}/version", context=context, timeout=10)
    assert len(server.requests) == before


def test_a_401_renews_the_credential_once(home: Home, server: ApiServer):
    counter = home.folder / "runs"
    plugin = home.folder / "plugin"
    plugin.write_text(
        f"#!{sys.executable}\nimport json, pathlib\npath = pathlib.Path({str(counter)!r})\n"
        "runs = int(path.read_text()) + 1 if path.exists() else 1\npath.write_text(str(runs))\n"
        "print(json.dumps({'apiVersion': 'client.authentication.k8s.io/v1', 'kind': 'ExecCredential',"
        " 'status': {'token': f'token-{runs}'}}))\n"
    )
    plugin.chmod(0o755)
    server.accept_only("token-1", "jane")
    entry = {"apiVersion": "client.authentication.k8s.io/v1", "command": str(plugin), "interactiveMode": "Never"}
    home.user({"exec": entry})
    assert home.kubectl("get", "namespaces").returncode == 0
    assert counter.read_text() == "1"
    server.accept_only("token-2", "jane")
    ended = home.kubectl("get", "namespaces")
    assert ended.returncode == 0, ended.stderr
    assert counter.read_text() == "2"


def test_a_proxy_plugin_serves_kubectl_through_the_bridge_and_never_without(home: Home, server: ApiServer):
    plugin = home.folder / "proxy-plugin"
    plugin.write_text(f"#!{sys.executable}\n{PLAIN}")
    plugin.chmod(0o755)
    exec_entry = {
        "apiVersion": "client.authentication.k8s.io/v1beta1",
        "command": str(plugin),
        "interactiveMode": "Never",
        "provideClusterInfo": True,
    }
    switch = [{"name": "client.authentication.k8s.io/exec-proxy", "extension": {"enabled": True}}]
    home.user({"exec": exec_entry, "extensions": switch})
    plain = home.run("kubectl", "get", "namespaces")
    assert plain.returncode != 0
    assert "kubeauthn kubectl -- ARGS" in plain.stderr
    assert server.requests == []
    assert home.kubectl("get", "namespaces", "-o", "name").returncode == 0
    assert {request.user for request in server.requests} == {"jane"}


def test_an_external_signer_serves_kubectl_through_the_bridge(home: Home, server: ApiServer):
    signer = SignerProgram(home.folder / "token", server.ca)
    home.user(signer.user())
    ended = home.kubectl("get", "namespaces", "-o", "name")
    assert ended.returncode == 0, ended.stderr
    assert {request.user for request in server.requests} == {"jane"}


def test_a_plugin_that_fails_is_told_to_kubectl(home: Home, server: ApiServer):
    entry = {"apiVersion": "client.authentication.k8s.io/v1", "command": "/no/such/plugin", "interactiveMode": "Never"}
    home.user({"exec": entry})
    ended = home.kubectl("get", "namespaces")
    assert ended.returncode == 1
    assert "/no/such/plugin not found" in ended.stderr
    assert server.requests == []


def test_options_that_lead_past_the_bridge_are_refused(home: Home):
    ended = home.kubectl("get", "pods", "--context=other")
    assert ended.returncode == 2
    assert "--context would lead past the bridge" in ended.stderr
    assert " kubectl --context other -- get pods\n" in ended.stderr
    for short in (("-s", "https://other.test"), ("-s=https://other.test",), ("-shttps://other.test",)):
        ended = home.kubectl(*short, "get", "pods")
        assert ended.returncode == 2
        assert "--server would lead past the bridge" in ended.stderr
        assert " kubectl --server https://other.test -- get pods\n" in ended.stderr


def test_a_directory_that_others_may_write_to_is_refused(home: Home):
    state = home.folder / "state" / "kubeauthn" / "bridge"
    state.mkdir(parents=True)
    state.chmod(0o770)
    ended = home.kubectl("get", "pods")
    assert ended.returncode == 4
    assert "others may write to it" in ended.stderr
    state.chmod(0o700)


def test_its_certificate_is_not_used_for_longer_than_it_waits(home: Home):
    """A program that runs on would find nobody at the port, and only ask for a bridge when the certificate ends."""
    config = json.loads(home.kubeauthn("bridge", "kubeconfig", "--idle", "5").stdout)
    plugin = config["users"][0]["user"]["exec"]
    info = {"apiVersion": plugin["apiVersion"], "kind": "ExecCredential", "spec": {}}
    ended = home.run(plugin["command"], *plugin["args"], KUBERNETES_EXEC_INFO=json.dumps(info))
    assert ended.returncode == 0, ended.stderr
    ends = datetime.fromisoformat(json.loads(ended.stdout)["status"]["expirationTimestamp"])
    assert ends - datetime.now(UTC) <= timedelta(seconds=5)


def test_it_ends_when_nobody_is_there(home: Home):
    assert home.kubeauthn("kubectl", "--idle", "1", "--", "get", "namespaces").returncode == 0
    eventually(lambda: home.bridges()[0]["running"] is None, "the idle bridge's end")
