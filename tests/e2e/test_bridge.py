"""The newest kubectl, and helm, through the bridge: no wrapper, only its kubeconfig."""

from __future__ import annotations

import base64
import gzip
import json
import os
import pty
import select
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from kubeauthn.testing import ApiServer
from tests.peers import PROGRAMS, find

SECONDS = 60


@pytest.fixture
def server(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[ApiServer]:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.setenv("HOME", str(tmp_path))
    with ApiServer(tokens={"good": "jane"}) as running:
        own = running.write_kubeconfig(tmp_path / "own", {"token": "good"}, namespace="default")
        kubeauthn("bridge", "kubeconfig", "--kubeconfig", str(own), "--write", str(tmp_path / "bridged"))
        monkeypatch.setenv("KUBECONFIG", str(tmp_path / "bridged"))
        running.add_pod("web")
        yield running
        assert {request.user for request in running.requests} <= {"jane"}
        kubeauthn("bridge", "stop", "--all")


def program(name: str) -> str:
    found = find(name) if name in PROGRAMS else None
    if found is None:
        pytest.skip(f"{name} is not built: `make e2e` does it")
    return str(found)


def kubeauthn(*words: str) -> None:
    subprocess.run([sys.executable, "-m", "kubeauthn", *words], check=True, timeout=SECONDS, capture_output=True)


def kubectl(*words: str, stdin: bytes = b"") -> subprocess.CompletedProcess[bytes]:
    return subprocess.run([program("kubectl"), *words], input=stdin, capture_output=True, timeout=SECONDS)


def test_get(server: ApiServer):
    done = kubectl("get", "pods", "-o", "name")
    assert (done.stdout, done.returncode) == (b"pod/web\n", 0), done.stderr


def test_watch(server: ApiServer):
    command = [program("kubectl"), "get", "ns", "--watch", "-o", "name"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, bufsize=0) as watching:
        assert watching.stdout is not None
        try:
            server.wait_for(lambda: server.open_watches == 1, SECONDS)
            server.emit("namespaces", "seen")
            lines: list[bytes] = []
            while b"namespace/seen\n" not in lines:
                assert select.select([watching.stdout], [], [], SECONDS)[0], lines
                lines.append(watching.stdout.readline())
        finally:
            watching.terminate()


def test_exec_without_a_terminal(server: ApiServer):
    done = kubectl("exec", "-i", "web", "--", "cat", stdin=b"to and fro\n" * 50_000)
    assert done.returncode == 0, done.stderr
    assert done.stdout == b"to and fro\n" * 50_000
    assert len(kubectl("exec", "web", "--", "produce", "3000000").stdout) == 3_000_000
    failed = kubectl("exec", "web", "--", "fail", "7")
    assert (failed.returncode, failed.stdout) == (7, b"")
    assert b"told to fail" in failed.stderr


def test_exec_with_a_terminal(server: ApiServer):
    ours, theirs = pty.openpty()
    command = [program("kubectl"), "exec", "-it", "web", "--", "cat"]
    running = subprocess.Popen(command, stdin=theirs, stdout=theirs, stderr=theirs)
    os.close(theirs)
    try:
        server.wait_for(lambda: any(each.path.endswith("/exec") for each in server.requests), SECONDS)
        os.write(ours, b"typed")
        seen = b""
        while b"typed" not in seen:
            assert select.select([ours], [], [], SECONDS)[0], seen
            seen += os.read(ours, 4096)
        os.write(ours, b"\x04")
        assert running.wait(SECONDS) == 0
    finally:
        running.kill()
        running.wait()
        os.close(ours)


def test_port_forward(server: ApiServer):
    command = [program("kubectl"), "port-forward", "web", ":8080"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, bufsize=0) as forwarding:
        assert forwarding.stdout is not None
        try:
            assert select.select([forwarding.stdout], [], [], SECONDS)[0]
            port = int(forwarding.stdout.readline().decode().split("127.0.0.1:")[1].split(" ")[0])
            for _ in range(3):
                assert round_trip(port) == b"round trip"
        finally:
            forwarding.terminate()


def round_trip(port: int) -> bytes:
    received = b""
    with socket.create_connection(("127.0.0.1", port), SECONDS) as connection:
        connection.settimeout(SECONDS)
        connection.sendall(b"round trip")
        connection.shutdown(socket.SHUT_WR)
        while chunk := connection.recv(4096):
            received += chunk
    return received


def test_apply_of_a_megabyte(server: ApiServer, tmp_path: Path):
    file = tmp_path / "large.json"
    document = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "large", "namespace": "default"}}
    for letter in "xy":
        file.write_text(json.dumps(document | {"data": {"text": letter * 1_000_000}}))
        done = kubectl("apply", "--server-side", "-f", str(file))
        assert done.returncode == 0, done.stderr
        (stored,) = server.objects("configmaps")
        assert stored["data"]["text"] == letter * 1_000_000


def release(name: str) -> dict[str, object]:
    """As helm keeps it: base64 of gzip of JSON, and base64 once more, as every secret's data."""
    chart = {"metadata": {"name": "shop", "version": "1.2.3", "appVersion": "9", "apiVersion": "v2"}}
    status = {"status": "deployed", "last_deployed": "2026-01-02T03:04:05Z"}
    document = {"name": name, "namespace": "default", "version": 1, "info": status, "chart": chart}
    packed = base64.b64encode(gzip.compress(json.dumps(document).encode()))
    labels = {"owner": "helm", "name": name, "status": "deployed", "version": "1"}
    return {
        "apiVersion": "v1",
        "kind": "Secret",
        "type": "helm.sh/release.v1",
        "metadata": {"name": f"sh.helm.release.v1.{name}.v1", "namespace": "default", "labels": labels},
        "data": {"release": base64.b64encode(packed).decode()},
    }


def test_helm_list(server: ApiServer, tmp_path: Path):
    helm = program("helm")
    file = tmp_path / "release.json"
    file.write_text(json.dumps(release("web-shop")))
    assert kubectl("create", "-f", str(file)).returncode == 0
    done = subprocess.run([helm, "list", "--output", "json"], capture_output=True, timeout=SECONDS)
    assert done.returncode == 0, done.stderr
    (listed,) = json.loads(done.stdout)
    assert (listed["name"], listed["chart"], listed["status"]) == ("web-shop", "shop-1.2.3", "deployed")


def test_helm_list_with_the_wrapper(server: ApiServer, tmp_path: Path):
    command = [sys.executable, "-m", "kubeauthn", "bridge", "run", "--kubeconfig", str(tmp_path / "own")]
    done = subprocess.run([*command, "--", program("helm"), "list", "-q"], capture_output=True, timeout=SECONDS)
    assert (done.returncode, done.stdout) == (0, b""), done.stderr
