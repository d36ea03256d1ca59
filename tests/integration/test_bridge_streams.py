"""Watch, exec and port-forward of kubectl through the bridge: SPDY and, with the newest one, WebSocket."""

from __future__ import annotations

import os
import select
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from kubeauthn.testing import ApiServer
from tests.integration.proxy_parts import eventually
from tests.peers.programs import find

pytestmark = pytest.mark.needs("kubectl")

SECONDS = 30
NEWEST = find("kubectl")


@pytest.fixture(params=["packaged", "newest"])
def server(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    if request.param == "newest":
        if NEWEST is None:
            pytest.skip("the newest kubectl is not built: tests/peers/build.py")
        monkeypatch.setenv("PATH", os.pathsep.join((str(NEWEST.parent), os.environ["PATH"])))
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    with ApiServer(tokens={"good": "jane"}) as running:
        own = running.write_kubeconfig(tmp_path / "own", {"token": "good"}, namespace="default")
        path = tmp_path / "bridged"
        kubeauthn("bridge", "kubeconfig", "--kubeconfig", str(own), "--write", str(path))
        monkeypatch.setenv("KUBECONFIG", str(path))
        running.add_pod("web")
        yield running
        kubeauthn("bridge", "stop", "--all")


def kubeauthn(*words: str) -> None:
    subprocess.run([sys.executable, "-m", "kubeauthn", *words], check=True, timeout=SECONDS, capture_output=True)


def kubectl(*words: str, stdin: bytes = b"") -> subprocess.CompletedProcess[bytes]:
    return subprocess.run(["kubectl", *words], input=stdin, capture_output=True, timeout=SECONDS)


def test_watch(server: ApiServer):
    command = ["kubectl", "get", "ns", "--watch", "-o", "name"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, bufsize=0) as watching:
        assert watching.stdout is not None
        try:
            eventually(lambda: server.open_watches == 1, "the watch", SECONDS)
            server.emit("namespaces", "seen")
            lines: list[bytes] = []
            while b"namespace/seen\n" not in lines:
                assert select.select([watching.stdout], [], [], SECONDS)[0], lines
                lines.append(watching.stdout.readline())
        finally:
            watching.terminate()


def test_exec(server: ApiServer):
    done = kubectl("exec", "-i", "web", "--", "cat", stdin=b"to and fro\n" * 50_000)
    assert done.returncode == 0, done.stderr
    assert done.stdout == b"to and fro\n" * 50_000
    assert kubectl("exec", "web", "--", "fail", "7").returncode == 7
    assert {request.user for request in server.requests} == {"jane"}


def test_port_forward(server: ApiServer):
    command = ["kubectl", "port-forward", "pod/web", ":8080", "--address", "127.0.0.1"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, bufsize=0) as forwarding:
        assert forwarding.stdout is not None
        try:
            assert select.select([forwarding.stdout], [], [], SECONDS)[0]
            said = forwarding.stdout.readline()
            port = int(said.split(b":")[1].split(b" ")[0])
            with socket.create_connection(("127.0.0.1", port), SECONDS) as connection:
                connection.settimeout(SECONDS)
                connection.sendall(b"ping")
                assert connection.recv(100)
        finally:
            forwarding.terminate()
