"""helm through the bridge: with its kubeconfig alone, and with the wrapper."""

from __future__ import annotations

import base64
import gzip
import json
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
    subprocess.run([program("kubectl"), "create", "-f", str(file)], check=True, capture_output=True, timeout=SECONDS)
    done = subprocess.run([helm, "list", "--output", "json"], capture_output=True, timeout=SECONDS)
    assert done.returncode == 0, done.stderr
    (listed,) = json.loads(done.stdout)
    assert (listed["name"], listed["chart"], listed["status"]) == ("web-shop", "shop-1.2.3", "deployed")


def test_helm_list_with_the_wrapper(server: ApiServer, tmp_path: Path):
    command = [sys.executable, "-m", "kubeauthn", "bridge", "run", "--kubeconfig", str(tmp_path / "own")]
    done = subprocess.run([*command, "--", program("helm"), "list", "-q"], capture_output=True, timeout=SECONDS)
    assert (done.returncode, done.stdout) == (0, b""), done.stderr
