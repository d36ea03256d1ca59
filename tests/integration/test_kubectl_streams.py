"""Old and new kubectl, straight and through the bridge: reads, watches, and what takes a connection over."""

from __future__ import annotations

import json
import os
import select
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from kubeauthn.testing import ApiServer
from tests.integration.stream_cases import CASES, Kubectl
from tests.peers.programs import find

pytestmark = pytest.mark.needs("kubectl")

SECONDS = 30
NEWEST = find("kubectl")
"""Built from its released module; it speaks WebSocket where the packaged one speaks SPDY."""


@pytest.fixture(params=["packaged", "newest"], autouse=True)
def kubectl_in_path(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    if request.param == "packaged":
        return
    if NEWEST is None:
        pytest.skip("the newest kubectl is not built: tests/peers/build.py")
    monkeypatch.setenv("PATH", os.pathsep.join((str(NEWEST.parent), os.environ["PATH"])))


@pytest.fixture(params=["straight", "bridge"])
def server(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[ApiServer]:
    with ApiServer(tokens={"good": "jane"}) as running:
        path = running.write_kubeconfig(tmp_path / "config", {"token": "good"}, namespace="default")
        monkeypatch.setenv("HOME", str(tmp_path))
        monkeypatch.setenv("KUBECONFIG", str(path))
        running.add_pod("web")
        if request.param == "straight":
            yield running
        else:
            monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
            kubeauthn("bridge", "kubeconfig", "--write", str(tmp_path / "bridged"))
            monkeypatch.setenv("KUBECONFIG", str(tmp_path / "bridged"))
            yield running
            kubeauthn("bridge", "stop", "--all")
        assert {each.user for each in running.requests} == {"jane"}


def kubeauthn(*words: str) -> None:
    subprocess.run([sys.executable, "-m", "kubeauthn", *words], check=True, timeout=SECONDS, capture_output=True)


def kubectl(*arguments: str) -> subprocess.CompletedProcess[bytes]:
    return subprocess.run(["kubectl", *arguments], capture_output=True, timeout=SECONDS)


def test_get(server: ApiServer):
    done = kubectl("get", "pods", "-o", "name")
    assert (done.stdout, done.returncode) == (b"pod/web\n", 0), done.stderr


def test_watch(server: ApiServer):
    command = ["kubectl", "get", "ns", "--watch", "-o", "name"]
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


@pytest.mark.parametrize("case", CASES)
def test_a_stream(case: str, server: ApiServer):
    def asked() -> None:
        server.wait_for(lambda: any(each.path.endswith("/exec") for each in server.requests), SECONDS)

    CASES[case](Kubectl(["kubectl"], asked), "web")


def test_apply_creates_and_changes_an_object_of_a_megabyte(server: ApiServer, tmp_path: Path):
    file = tmp_path / "large.json"
    document = {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": "large", "namespace": "default"},
        "data": {"text": "x" * 1_000_000},
    }
    file.write_text(json.dumps(document))
    done = kubectl("create", "-f", str(file))
    assert done.returncode == 0, done.stderr
    (stored,) = server.objects("configmaps")
    assert len(stored["data"]["text"]) == 1_000_000
    file.write_text(json.dumps(document | {"data": {"text": "y" * 1_000_000}}))
    done = kubectl("apply", "--server-side", "--force-conflicts", "-f", str(file))
    assert done.returncode == 0, done.stderr
    assert set(server.objects("configmaps")[0]["data"]["text"]) == {"y"}
    small = document | {"data": {"text": "z"}}
    small["metadata"] = {"name": "small", "namespace": "default"}
    file.write_text(json.dumps(small))
    for _ in range(2):
        done = kubectl("apply", "-f", str(file))
        assert done.returncode == 0, done.stderr
