"""Every client we have an adapter for, with a real kube-apiserver at the other end."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import pytest

from kubeauthn.client import connect
from kubeauthn.testing import Issuer, ScriptedPlugin
from tests.e2e.cluster import Cluster
from tests.e2e.processes import poll
from tests.integration.adapters.conftest import found_drivers
from tests.integration.adapters.driver import Driver

Issuers = tuple[Issuer, Issuer]
NAMESPACES = "/api/v1/namespaces"


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "driver" in metafunc.fixturenames:
        metafunc.parametrize("driver", found_drivers(), ids=lambda found: found.name)


@pytest.fixture(scope="module")
def cluster(direct: Cluster, issuers: Issuers) -> Cluster:
    """The cluster that reads the configuration itself, where jane may read and write namespaces."""
    direct.grant("first:jane")
    direct.grant("robot")  # the role view is put together by a controller, and none runs here
    return direct


def token(issuers: Issuers, subject: str = "jane", seconds: float = 600.0) -> str:
    return issuers[0].token(subject, expires_in=seconds)


@pytest.fixture
def plugin(tmp_path: Path) -> ScriptedPlugin:
    return ScriptedPlugin(tmp_path / "bin" / "plugin")


def use(monkeypatch: pytest.MonkeyPatch, file: Path) -> None:
    monkeypatch.setenv("KUBECONFIG", str(file))


# -- each adapter ---------------------------------------------------------------------------------


def test_a_token_of_an_exec_plugin_lists(
    driver: Driver, cluster: Cluster, issuers: Issuers, plugin: ScriptedPlugin, monkeypatch: pytest.MonkeyPatch
):
    plugin.reply(token=token(issuers))
    use(monkeypatch, cluster.write_kubeconfig("exec", plugin.user()))
    with driver.session() as client:
        outcome = client.list_namespaces()
        again = client.list_namespaces()
    assert outcome.error is None
    assert again.error is None
    assert "kube-system" in outcome.names
    assert plugin.runs == 1


def test_a_token_that_the_server_refuses_is_replaced(
    driver: Driver, cluster: Cluster, issuers: Issuers, plugin: ScriptedPlugin, monkeypatch: pytest.MonkeyPatch
):
    plugin.reply(token=token(issuers, seconds=-60))
    use(monkeypatch, cluster.write_kubeconfig("exec", plugin.user()))
    with driver.session() as client:
        assert client.list_namespaces().status != 200
        plugin.reply(token=token(issuers))
        # a credential that was refused when it was fresh is not asked for again at once
        poll(lambda: "kube-system" in client.list_namespaces().names, 30, "the new token is taken", interval=0.2)


def test_a_certificate_of_an_exec_plugin_is_used(
    driver: Driver, cluster: Cluster, plugin: ScriptedPlugin, monkeypatch: pytest.MonkeyPatch
):
    leaf = cluster.ca.issue_client("robot")
    plugin.reply(certificate=leaf)
    use(monkeypatch, cluster.write_kubeconfig("exec", plugin.user()))
    with driver.session() as client:
        outcome = client.list_namespaces()
    assert outcome.error is None
    assert "kube-system" in outcome.names


def test_a_watch_goes_on_while_the_token_is_replaced(
    driver: Driver, cluster: Cluster, issuers: Issuers, plugin: ScriptedPlugin, monkeypatch: pytest.MonkeyPatch
):
    first_ends = time.time() + 3
    plugin.reply(token=token(issuers), expires_at=first_ends)
    use(monkeypatch, cluster.write_kubeconfig("exec", plugin.user()))
    name = f"watched-{os.getpid()}-{threading.get_native_id()}-{time.monotonic_ns()}"
    with driver.session() as client:
        watch = client.watch_namespaces()
        poll(lambda: watch.ended.is_set() or not watch.events.empty(), 20, "the watch shows what is there")
        assert watch.error is None
        plugin.reply(token=token(issuers, seconds=900))
        poll(lambda: time.time() > first_ends, 10, "the first token is over")
        assert client.list_namespaces().error is None
        assert plugin.runs >= 2
        cluster.kubectl("create", "namespace", name)
        poll(lambda: watch.next(20) == name, 30, "the watch shows what was made after the rotation", interval=0)


# -- connect --------------------------------------------------------------------------------------


def test_a_credential_that_stays_bad_ends_in_a_401(
    cluster: Cluster, plugin: ScriptedPlugin, monkeypatch: pytest.MonkeyPatch
):
    with connect_with(cluster, plugin, monkeypatch, token="not.a.token") as api:
        assert api.get(NAMESPACES).status_code == 401


def connect_with(cluster: Cluster, plugin: ScriptedPlugin, monkeypatch: pytest.MonkeyPatch, **reply: Any) -> Any:
    plugin.reply(**reply)
    use(monkeypatch, cluster.write_kubeconfig("exec", plugin.user()))
    return connect()


def test_a_large_list_comes_whole(cluster: Cluster, issuers: Issuers, monkeypatch: pytest.MonkeyPatch):
    use(monkeypatch, cluster.token_kubeconfig("large", token(issuers)))
    filling = "x" * 900_000
    with connect() as api:
        for number in range(6):
            body = {"metadata": {"name": f"large-{number}"}, "data": {"filling": filling}}
            assert api.post("/api/v1/namespaces/default/configmaps", json=body).status_code == 201
        listed = api.get("/api/v1/namespaces/default/configmaps").json()
        sizes = [
            len(item["data"]["filling"]) for item in listed["items"] if item["metadata"]["name"].startswith("large-")
        ]
        for number in range(6):
            api.delete(f"/api/v1/namespaces/default/configmaps/large-{number}")
    assert sizes == [len(filling)] * 6


def test_impersonation_reaches_the_server(cluster: Cluster, monkeypatch: pytest.MonkeyPatch):
    admin = cluster.ca.issue_client("admin", ["system:masters"]).kubeconfig_user()
    who = {**admin, "as": "joe", "as-uid": "u-7", "as-groups": ["blue"], "as-user-extra": {"example.com/why": ["test"]}}
    use(monkeypatch, cluster.write_kubeconfig("as", who))
    review = {"apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview"}
    with connect() as api:
        user = api.post("/apis/authentication.k8s.io/v1/selfsubjectreviews", json=review).json()["status"]["userInfo"]
    assert user["username"] == "joe"
    assert user["uid"] == "u-7"
    assert set(user["groups"]) == {"blue", "system:authenticated"}
    assert user["extra"]["example.com/why"] == ["test"]


def test_a_403_does_not_run_the_plugin_again(
    cluster: Cluster, issuers: Issuers, plugin: ScriptedPlugin, monkeypatch: pytest.MonkeyPatch
):
    with connect_with(cluster, plugin, monkeypatch, token=token(issuers, "nobody")) as api:
        assert api.get(NAMESPACES).status_code == 403
        assert api.get(NAMESPACES).status_code == 403
    assert plugin.runs == 1


# -- commands -------------------------------------------------------------------------------------


def kubeauthn(*arguments: str, kubeconfig: Path) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "KUBECONFIG": str(kubeconfig)}
    command = [sys.executable, "-m", "kubeauthn", *arguments]
    return subprocess.run(command, capture_output=True, text=True, timeout=60, env=environment, check=False)


def test_whoami_says_what_kubectl_says(cluster: Cluster, issuers: Issuers):
    file = cluster.token_kubeconfig("whoami", token(issuers))
    ours = kubeauthn("whoami", "--output", "json", kubeconfig=file)
    assert ours.returncode == 0, ours.stderr
    theirs = json.loads(cluster.kubectl("auth", "whoami", "-o", "json", kubeconfig=file).stdout)["status"]["userInfo"]
    assert theirs["username"] == "first:jane"
    assert theirs["username"] in ours.stdout


def test_raw_prints_what_the_server_answers(cluster: Cluster, issuers: Issuers):
    file = cluster.token_kubeconfig("raw", token(issuers))
    done = kubeauthn("raw", "/version", kubeconfig=file)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["gitVersion"].startswith("v1.")


# -- kubectl with a plugin written with the SDK ---------------------------------------------------

PLUGIN = """#!{python}
import os
from kubeauthn.plugin import credential

def answer(request):
    assert request.cluster is not None, "provideClusterInfo"
    return credential.Token(open(os.environ["TOKEN_FILE"]).read())

credential.run(answer)
"""


def test_kubectl_runs_a_plugin_written_with_the_sdk(cluster: Cluster, issuers: Issuers, tmp_path: Path):
    script = tmp_path / "sdk-plugin"
    script.write_text(PLUGIN.format(python=sys.executable))
    script.chmod(0o755)
    secret = tmp_path / "token"
    secret.write_text(token(issuers))
    entry = {
        "apiVersion": "client.authentication.k8s.io/v1",
        "command": str(script),
        "interactiveMode": "Never",
        "provideClusterInfo": True,
        "env": [{"name": "TOKEN_FILE", "value": str(secret)}],
    }
    file = cluster.write_kubeconfig("sdk", {"exec": entry})
    done = cluster.kubectl("auth", "whoami", "-o", "json", kubeconfig=file)
    assert json.loads(done.stdout)["status"]["userInfo"]["username"] == "first:jane"
    assert "kube-system" in cluster.kubectl("get", "namespaces", kubeconfig=file).stdout


def test_the_manifests_are_accepted_by_a_server_side_dry_run(cluster: Cluster):
    deploy = Path(__file__).resolve().parents[2] / "deploy"
    manifests = [file for file in sorted(deploy.rglob("*.yaml")) if _is_core_manifest(file)]
    if not manifests:
        pytest.skip("deploy/ has no manifests of built-in kinds")
    for file in manifests:
        done = cluster.kubectl("apply", "--dry-run=server", "-f", str(file), check=False)
        assert done.returncode == 0, f"{file.name}: {done.stderr}"


def _is_core_manifest(file: Path) -> bool:
    import yaml

    try:
        documents = [one for one in yaml.safe_load_all(file.read_text()) if isinstance(one, dict)]
    except yaml.YAMLError:
        return False  # a template
    groups = (
        "v1",
        "apps/v1",
        "policy/v1",
        "networking.k8s.io/v1",
        "rbac.authorization.k8s.io/v1",
        "batch/v1",
        "autoscaling/v2",
    )
    return bool(documents) and all(one.get("apiVersion") in groups and "kind" in one for one in documents)
