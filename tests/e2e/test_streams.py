"""exec, attach, port-forward and logs through the real kube-apiserver to their end: a stub kubelet behind Nodes.

By kubectl with an exec plugin, by kubectl through the bridge, and by the Python client's `kubernetes.stream`.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from kubernetes import client, stream

from kubeauthn.client import kubernetes as adapter
from kubeauthn.testing import Issuer, ScriptedPlugin
from tests.e2e.cluster import Cluster
from tests.e2e.kubelet import LOG_LINES, Kubelet
from tests.e2e.processes import poll
from tests.integration.stream_cases import CASES, Kubectl
from tests.peers import find

SECONDS = 60
PODS = {"by-spdy": [], "by-websocket": ["ExtendWebSocketsToKubelet"]}
"""A pod on a node of each kind: what the node's kubelet declares decides how it is asked."""


@pytest.fixture(scope="module")
def kubelet(direct: Cluster) -> Iterator[Kubelet]:
    with Kubelet(direct.ca) as running:
        direct.grant("first:streamer")
        for name, features in PODS.items():
            direct.post("/api/v1/nodes", running.node(name, features))
            spec = {"nodeName": name, "containers": [{"name": "main", "image": "none"}]}
            pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name}, "spec": spec}
            direct.post("/api/v1/namespaces/default/pods", pod)
            status = ("--subresource=status", "--type=merge", "-p", '{"status": {"phase": "Running"}}')
            direct.kubectl("patch", "pod", name, *status)
        yield running
        for name in PODS:
            direct.kubectl("delete", "--force", "--grace-period=0", "pod", name)
            direct.kubectl("delete", "node", name)


@pytest.fixture(params=PODS)
def pod(request: pytest.FixtureRequest, kubelet: Kubelet) -> Iterator[str]:
    kubelet.asked.clear()
    yield request.param
    commands = {protocol for _, path, protocol in kubelet.asked if path.startswith(("/exec/", "/attach/"))}
    assert commands <= {"websocket" if request.param == "by-websocket" else "spdy/3.1"}
    assert {name for name, _, _ in kubelet.asked} == {"kube-apiserver-kubelet-client"}


@pytest.fixture
def kubeconfig(direct: Cluster, issuers: tuple[Issuer, Issuer], tmp_path: Path) -> Path:
    plugin = ScriptedPlugin(tmp_path / "bin" / "plugin")
    plugin.reply(token=issuers[0].token("streamer", expires_in=600))
    return direct.write_kubeconfig("streams", plugin.user())


@pytest.fixture(params=["plugin", "bridge"])
def kubectl(
    request: pytest.FixtureRequest, kubeconfig: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[list[str]]:
    """The command, which asks the plugin itself or leaves that to the bridge."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.setenv("HOME", str(tmp_path))
    used = kubeconfig
    if request.param == "bridge":
        used = tmp_path / "bridged"
        kubeauthn("bridge", "kubeconfig", "--kubeconfig", str(kubeconfig), "--write", str(used))
    yield [str(find("kubectl")), "--kubeconfig", str(used)]
    if request.param == "bridge":
        kubeauthn("bridge", "stop", "--all")


def kubeauthn(*words: str) -> None:
    subprocess.run([sys.executable, "-m", "kubeauthn", *words], check=True, timeout=SECONDS, capture_output=True)


@pytest.mark.parametrize("case", CASES)
def test_a_stream(case: str, kubectl: list[str], pod: str, kubelet: Kubelet):
    CASES[case](Kubectl(kubectl, lambda: poll(lambda: bool(kubelet.asked), SECONDS, "the kubelet is asked")), pod)


def test_logs(kubectl: list[str], pod: str):
    def logs(*words: str) -> list[str]:
        command = [*kubectl, "logs", *words, pod]
        return subprocess.run(command, capture_output=True, timeout=SECONDS, check=True).stdout.decode().splitlines()

    assert logs() == LOG_LINES
    assert logs("--tail=3") == LOG_LINES[-3:]


# -- kubernetes.stream ----------------------------------------------------------------------------


@pytest.fixture
def core(kubeconfig: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    monkeypatch.setenv("KUBECONFIG", str(kubeconfig))
    with adapter.api_client() as api:
        yield client.CoreV1Api(api)


def test_kubernetes_stream_runs_a_command(core: Any, pod: str):
    flags = {"stdin": True, "stdout": True, "stderr": True, "tty": False, "_preload_content": False}
    running = stream.stream(core.connect_get_namespaced_pod_exec, pod, "default", command=["cat"], **flags)
    running.write_stdin("said")
    poll(lambda: running.read_stdout(timeout=1) == "said", SECONDS, "the command says it back", interval=0)
    running.close()
    failed = stream.stream(core.connect_get_namespaced_pod_exec, pod, "default", command=["fail", "7"], **flags)
    failed.run_forever(timeout=SECONDS)
    assert failed.returncode == 7
    assert "told to fail" in failed.read_stderr()


def test_kubernetes_stream_forwards_a_port(core: Any, pod: str):
    forward = stream.portforward(core.connect_get_namespaced_pod_portforward, pod, "default", ports="8080")
    connection = forward.socket(8080)
    connection.settimeout(SECONDS)
    connection.sendall(b"round trip")
    assert connection.recv(100) == b"round trip"
    connection.close()


def test_the_python_client_reads_logs(core: Any, pod: str):
    assert core.read_namespaced_pod_log(pod, "default").splitlines() == LOG_LINES
