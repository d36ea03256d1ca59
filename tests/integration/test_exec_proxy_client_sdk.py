"""Our client with a proxy of our SDK, and the commands with both: the two ends together."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from kubeauthn.client import connect
from kubeauthn.client.exec_source import forget_shared_sources
from kubeauthn.testing import ApiServer, PluginDirectory, ProxyPlugin
from kubeauthn.testing._waiting import wait_for

PATH = "/api/v1/namespaces"
EXTENSIONS = [{"name": "client.authentication.k8s.io/exec-proxy", "extension": {"enabled": True}}]
HEADERS = """
from kubeauthn.plugin import proxy

def add(request):
    return proxy.Change({"Authorization": "Bearer from-the-proxy"})

proxy.run(add)
"""


@pytest.fixture(autouse=True)
def no_proxy_from_another_test() -> Iterator[None]:
    forget_shared_sources()
    yield
    forget_shared_sources()


@pytest.fixture
def server() -> Iterator[ApiServer]:
    with ApiServer(tokens={"from-the-proxy": "jane"}) as running:
        yield running


@pytest.fixture
def sdk(server: ApiServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    path = PluginDirectory(tmp_path / "plugins").python("headers-proxy", HEADERS)
    entry = {
        "apiVersion": "client.authentication.k8s.io/v1",
        "command": str(path),
        "interactiveMode": "Never",
        "provideClusterInfo": True,
    }
    config = server.write_kubeconfig(tmp_path / "config", {"exec": entry, "extensions": EXTENSIONS})
    monkeypatch.setenv("KUBECONFIG", str(config))
    return path


def kubeauthn(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [str(Path(sys.executable).parent / "kubeauthn"), *arguments],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=60,
    )


def test_requests_a_watch_and_an_upload_through_the_sdk(server: ApiServer, sdk: Path):
    with connect() as api:
        assert api.get(PATH).status_code == 200
        with api.stream("GET", PATH, params={"watch": "1"}, timeout=20) as watch:
            lines = watch.iter_lines()
            server.emit("namespaces", "seen")
            assert any("seen" in next(lines) for _ in range(10))
        body = {"metadata": {"name": "large"}, "data": {"text": "x" * 2_000_000}}
        assert api.post("/api/v1/namespaces/default/configmaps", json=body).status_code == 201
    assert {each.user for each in server.requests} == {"jane"}


def test_exec_of_the_official_client_through_the_sdk(server: ApiServer, sdk: Path):
    pytest.importorskip("kubernetes")
    from kubernetes import client
    from kubernetes.stream import stream

    from kubeauthn.client.kubernetes import api_client

    server.add_pod("web")
    core = client.CoreV1Api(api_client())
    answer = stream(
        core.connect_get_namespaced_pod_exec, "web", "default", command=["echo", "hello"], stdout=True, stdin=False
    )
    assert answer == "hello\n"


def test_whoami_and_raw(server: ApiServer, sdk: Path):
    whoami = kubeauthn("whoami")
    assert "jane" in whoami.stdout, whoami.stderr
    raw = kubeauthn("raw", "/version")
    assert json.loads(raw.stdout)["major"] == "1", raw.stderr


def test_credential_shows_the_proxy_and_reveals_nothing_of_it(
    server: ApiServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    plugin = ProxyPlugin(tmp_path / "proxy", upstream=server.ca.issue_client("jane"))
    monkeypatch.setenv("KUBECONFIG", str(server.write_kubeconfig(tmp_path / "config", plugin.user())))
    shown = kubeauthn("credential", "--output", "json")
    assert json.loads(shown.stdout)["proxy"] == plugin.url, shown.stderr
    wait_for(lambda: not plugin.alive, 5)
    revealed = kubeauthn("credential", "--reveal")
    assert revealed.returncode == 2
    assert "it opens a local proxy, not the server" in revealed.stderr
    assert "PRIVATE KEY" not in revealed.stdout + revealed.stderr


def test_doctor(server: ApiServer, sdk: Path):
    report = kubeauthn("doctor", "--online")
    assert "switched on: what the plugin starts may carry the requests" in report.stdout, report.stderr
    assert "jane" in report.stdout


def test_a_process_that_ends_leaves_no_proxy_of_the_sdk(server: ApiServer, sdk: Path):
    code = f"from kubeauthn.client import connect\nassert connect().get({PATH!r}).status_code == 200"
    assert subprocess.run([sys.executable, "-c", code], timeout=60).returncode == 0
    wait_for(lambda: not _processes_of(sdk), 5)


def _processes_of(path: Path) -> list[str]:
    found = []
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            if str(path) in Path(f"/proc/{pid}/cmdline").read_bytes().decode(errors="replace"):
                found.append(pid)
        except OSError:
            continue
    return found
