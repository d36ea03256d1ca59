"""The test API server is good enough for real clients: kubectl and the Kubernetes libraries."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys

import pytest

from kubeauthn.testing import ApiServer, ScriptedPlugin


@pytest.fixture
def server():
    with ApiServer(tokens={"good": "jane"}) as running:
        yield running


@pytest.fixture
def kubeconfig(server, tmp_path) -> str:
    return str(server.write_kubeconfig(tmp_path / "config", user={"token": "good"}))


class Kubectl:
    def __init__(self, kubeconfig: str) -> None:
        self.kubeconfig = kubeconfig

    def __call__(self, *arguments: str, text: str | None = None) -> subprocess.CompletedProcess[str]:
        command = ["kubectl", "--kubeconfig", self.kubeconfig, *arguments]
        return subprocess.run(command, input=text, capture_output=True, text=True, timeout=50)


@pytest.mark.needs("kubectl")
def test_kubectl_reads_and_writes(server, kubeconfig):
    kubectl = Kubectl(kubeconfig)
    assert json.loads(kubectl("get", "--raw", "/version").stdout)["major"] == "1"
    assert kubectl("get", "namespaces").stdout.split()[2::2] == ["default", "kube-system"]
    items = json.loads(kubectl("get", "ns", "-o", "json").stdout)["items"]
    assert [item["metadata"]["name"] for item in items] == ["default", "kube-system"]
    config_map = '{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"y"},"data":{"k":"v"}}'
    assert kubectl("apply", "-f", "-", "--validate=false", text=config_map).stdout == "configmap/y created\n"
    assert kubectl("label", "cm", "y", "a=b").returncode == 0
    assert kubectl("get", "cm", "-l", "a=b", "-o", "name").stdout == "configmap/y\n"
    assert kubectl("delete", "cm", "y").returncode == 0
    missing = kubectl("get", "ns", "nope")
    assert missing.stderr == 'Error from server (NotFound): namespaces "nope" not found\n'
    assert {request.user for request in server.requests} == {"jane"}


@pytest.mark.needs("kubectl")
def test_kubectl_asks_who_it_is(server, kubeconfig):
    kubectl = Kubectl(kubeconfig)
    review = json.loads(kubectl("auth", "whoami", "-o", "json").stdout)
    assert review["status"]["userInfo"]["username"] == "jane"
    other = json.loads(kubectl("--as=bob", "--as-group=g", "auth", "whoami", "-o", "json").stdout)
    assert other["status"]["userInfo"] == {"username": "bob", "groups": ["g", "system:authenticated"]}
    assert kubectl("auth", "can-i", "list", "pods").stdout == "yes\n"


@pytest.mark.needs("kubectl")
def test_kubectl_runs_the_scripted_plugin(server, tmp_path):
    plugin = ScriptedPlugin(tmp_path)
    leaf = server.ca.issue_client("cert-user")
    plugin.reply(token="good", certificate=leaf, expires_in=60)
    entry = plugin.user(provideClusterInfo=True, env=[{"name": "GREETING", "value": "hello"}])
    kubectl = Kubectl(str(server.write_kubeconfig(tmp_path / "config", user=entry)))
    assert kubectl("get", "--raw", "/version").returncode == 0
    assert plugin.runs >= 1  # some builds of kubectl ask for the server's version first, in a process of its own
    assert plugin.environment()["GREETING"] == "hello"
    assert plugin.exec_info()["spec"]["cluster"]["server"] == server.url
    seen = {(request.user, request.token, request.certificate_serial) for request in server.requests}
    assert seen == {("cert-user", "good", leaf.serial)}
    server.requests.clear()
    plugin.fail(3)
    assert kubectl("get", "--raw", "/version").returncode != 0
    assert server.requests == []


@pytest.mark.needs("kubectl")
def test_kubectl_sees_401_and_403(server, kubeconfig):
    kubectl = Kubectl(kubeconfig)
    server.forbidden()
    assert "(Forbidden)" in kubectl("get", "--raw", "/version").stderr
    server.forbidden(0)
    server.unauthorized()
    assert "Unauthorized" in kubectl("get", "--raw", "/version").stderr


def test_kubernetes(server, kubeconfig):
    kubernetes = pytest.importorskip("kubernetes")
    with kubernetes.config.new_client_from_config(kubeconfig) as api:
        core = kubernetes.client.CoreV1Api(api)
        assert [item.metadata.name for item in core.list_namespace().items] == ["default", "kube-system"]
        core.create_namespaced_config_map("default", {"metadata": {"name": "one"}, "data": {"a": "b"}})
        assert core.patch_namespaced_config_map("one", "default", {"data": {"c": "d"}}).data == {"a": "b", "c": "d"}
        core.delete_namespaced_config_map("one", "default")
        events = kubernetes.watch.Watch().stream(core.list_namespace, timeout_seconds=1)
        assert [(event["type"], event["object"].metadata.name) for event in events] == [
            ("ADDED", "default"),
            ("ADDED", "kube-system"),
        ]
        review = kubernetes.client.AuthenticationV1Api(api).create_self_subject_review({})
        assert review.status.user_info.username == "jane"


def test_kubernetes_asyncio(server, kubeconfig):
    library = pytest.importorskip("kubernetes_asyncio")

    async def scenario() -> list[str]:
        async with await library.config.new_client_from_config(kubeconfig) as api:
            core = library.client.CoreV1Api(api)
            assert len((await core.list_namespace()).items) == 2
            watch = library.watch.Watch()
            return [event["type"] async for event in watch.stream(core.list_namespace, timeout_seconds=1)]

    assert asyncio.run(scenario()) == ["ADDED", "ADDED"]


@pytest.mark.filterwarnings("ignore:unclosed:ResourceWarning")  # its client cannot be closed
def test_lightkube(server, kubeconfig):
    lightkube = pytest.importorskip("lightkube")
    from lightkube.models.meta_v1 import ObjectMeta
    from lightkube.resources.core_v1 import ConfigMap, Namespace

    client = lightkube.Client(config=lightkube.KubeConfig.from_file(kubeconfig))
    assert [item.metadata.name for item in client.list(Namespace)] == ["default", "kube-system"]
    config_map = ConfigMap(metadata=ObjectMeta(name="one", namespace="default"), data={"a": "b"})
    assert client.apply(config_map, field_manager="test").data == {"a": "b"}
    with pytest.raises(lightkube.ApiError, match='namespaces "nope" not found'):
        client.get(Namespace, "nope")


def test_kr8s(server, kubeconfig):
    pytest.importorskip("kr8s")
    import kr8s.asyncio
    from kr8s.asyncio.objects import ConfigMap

    async def scenario() -> None:
        api = await kr8s.asyncio.api(kubeconfig=kubeconfig)
        assert await api.whoami() == "jane"
        assert [item.name async for item in api.get("namespaces")] == ["default", "kube-system"]
        resource = {"metadata": {"name": "one", "namespace": "default"}, "data": {"a": "b"}}
        config_map = await ConfigMap(resource, api=api)
        await config_map.create()
        await config_map.patch({"data": {"c": "d"}})
        assert dict(config_map.data) == {"a": "b", "c": "d"}
        await config_map.delete()

    asyncio.run(scenario())


KOPF_OPERATOR = """
import threading
import kopf
from kubeauthn.testing import ApiServer

registry, seen, stop = kopf.OperatorRegistry(), [], threading.Event()
kopf.on.create("widgets", registry=registry)(lambda name, **_: seen.append(f"created {name}"))
kopf.on.delete("widgets", registry=registry)(lambda name, **_: seen.append(f"deleted {name}"))

with ApiServer(tokens={"good": "jane"}) as server:
    server.define("example.com", "v1", "widgets", "Widget")
    connection = kopf.ConnectionInfo(server=server.url, ca_data=server.ca.certificate_pem, token="good")
    kopf.on.login(registry=registry)(lambda **_: connection)
    options = {"registry": registry, "standalone": True, "clusterwide": True, "stop_flag": stop}
    operator = threading.Thread(target=kopf.run, kwargs=options)
    operator.start()
    try:
        server.wait_for(lambda: any(r.is_watch and r.path.endswith("/widgets") for r in server.requests), 20)
        server.emit("widgets", "one")
        # kopf holds the object with a finalizer, notes that it is done, and lets go when it was deleted.
        server.wait_for(lambda: "last-handled-configuration" in str(server.objects("widgets")), 20)
        server.emit("widgets", "one", deleted=True)
        server.wait_for(lambda: not server.objects("widgets"), 20)
    finally:
        stop.set()
        operator.join(20)
    assert all(request.user == "jane" for request in server.requests)
print(seen)
"""


def test_kopf(tmp_path):
    """In a process of its own: kopf leaves open what its event loop held."""
    pytest.importorskip("kopf")
    script = tmp_path / "widget_operator.py"
    script.write_text(KOPF_OPERATOR)
    result = subprocess.run([sys.executable, script], capture_output=True, text=True, timeout=55)
    assert result.stdout == "['created one', 'deleted one']\n", result.stderr
