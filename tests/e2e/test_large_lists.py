"""Five thousand objects, whole and by pages, through each way to read them."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from kubernetes import client

from kubeauthn.client import connect
from kubeauthn.client import kubernetes as adapter
from kubeauthn.testing import Issuer, ScriptedPlugin
from tests.e2e.cluster import Cluster
from tests.peers import find

OBJECTS = 5_000
PATH = "/api/v1/namespaces/many/configmaps"
SECONDS = 120


@pytest.fixture(scope="module")
def many(direct: Cluster) -> Iterator[Cluster]:
    direct.grant("first:reader")
    direct.kubectl("create", "namespace", "many")
    ends = range(0, OBJECTS, OBJECTS // 4)

    def fill(first: int) -> None:
        administrator = direct.connection()
        for number in range(first, first + OBJECTS // 4):
            body = json.dumps({"metadata": {"name": f"c-{number:04}"}, "data": {"number": str(number)}})
            administrator.request("POST", PATH, body, {"Content-Type": "application/json"})
            answer = administrator.getresponse()
            answer.read()
            assert answer.status == 201
        administrator.close()

    with ThreadPoolExecutor(len(ends)) as pool:
        list(pool.map(fill, ends))
    yield direct
    direct.kubectl("delete", "--raw", f"{PATH}?propagationPolicy=Background")


@pytest.fixture
def kubeconfig(many: Cluster, issuers: tuple[Issuer, Issuer], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    plugin = ScriptedPlugin(tmp_path / "bin" / "plugin")
    plugin.reply(token=issuers[0].token("reader", expires_in=600))
    file = many.write_kubeconfig("many", plugin.user())
    monkeypatch.setenv("KUBECONFIG", str(file))
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    return file


def numbers(items: list[dict[str, Any]]) -> list[int]:
    return sorted(int(item["data"]["number"]) for item in items)


@pytest.mark.usefixtures("kubeconfig")
def test_connect_reads_all_at_once_and_by_pages():
    with connect() as api:
        assert numbers(api.get(PATH).json()["items"]) == list(range(OBJECTS))
        items: list[dict[str, Any]] = []
        query = {"limit": "500"}
        while True:
            page = api.get(PATH, params=query).json()
            items += page["items"]
            if not page["metadata"].get("continue"):
                break
            query["continue"] = page["metadata"]["continue"]
    assert numbers(items) == list(range(OBJECTS))


@pytest.mark.usefixtures("kubeconfig")
def test_the_python_client_reads_pages():
    with adapter.api_client() as api:
        core = client.CoreV1Api(api)
        seen, token = [], None
        while token != "":
            page = core.list_namespaced_config_map("many", limit=1000, _continue=token)
            seen += [int(item.data["number"]) for item in page.items]
            token = page.metadata._continue or ""
    assert sorted(seen) == list(range(OBJECTS))


@pytest.mark.parametrize("command", ["kubectl", "bridge", "raw"])
def test_a_program_reads_all(kubeconfig: Path, command: str, monkeypatch: pytest.MonkeyPatch):
    program = find("kubectl")
    assert program is not None
    monkeypatch.setenv("PATH", f"{program.parent}:{os.environ['PATH']}")
    kubeauthn = [sys.executable, "-m", "kubeauthn"]
    get = ["get", "configmaps", "-n", "many", "-o", "name"]
    argv = {
        "kubectl": ["kubectl", *get],
        "bridge": [*kubeauthn, "kubectl", "--", *get],
        "raw": [*kubeauthn, "raw", PATH],
    }
    try:
        done = subprocess.run(argv[command], capture_output=True, text=True, timeout=SECONDS)
    finally:
        if command == "bridge":
            subprocess.run([*kubeauthn, "bridge", "stop", "--all"], check=True, capture_output=True, timeout=SECONDS)
    assert done.returncode == 0, done.stderr
    if command == "raw":
        assert numbers(json.loads(done.stdout)["items"]) == list(range(OBJECTS))
    else:
        assert len(set(done.stdout.split())) == OBJECTS
