"""The official Kubernetes client: what is its own, beside the common suite."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import urllib3
from kubernetes import client, dynamic, stream, watch
from kubernetes.leaderelection.leaderelectionrecord import LeaderElectionRecord
from kubernetes.leaderelection.resourcelock.configmaplock import ConfigMapLock

from kubeauthn.client.kubernetes import api_client, load_kube_config
from kubeauthn.errors import CredentialError, KubeconfigError, PluginFailed, PluginNotFound, UsageError
from kubeauthn.testing import ApiServer, CertificateAuthority, ConnectProxy, ScriptedPlugin, Socks5Proxy
from tests.integration.adapters.loopback_servers import WebsocketServer, redirecting_server


@pytest.fixture(scope="module")
def ca() -> CertificateAuthority:
    return CertificateAuthority()


@pytest.fixture
def server(ca: CertificateAuthority) -> Iterator[ApiServer]:
    with ApiServer(ca=ca) as running:
        yield running


@pytest.fixture
def plugin(tmp_path: Path) -> ScriptedPlugin:
    return ScriptedPlugin(tmp_path / "plugin")


@pytest.fixture
def kubeconfig(server: ApiServer, plugin: ScriptedPlugin, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    plugin.reply(token="one")
    server.accept_token("one", "jane")
    path = str(server.write_kubeconfig(tmp_path / "config", user=plugin.user()))
    monkeypatch.setenv("KUBECONFIG", path)
    return path


@pytest.fixture(autouse=True)
def default_configuration() -> Iterator[None]:
    before = client.Configuration._default
    yield
    client.Configuration.set_default(before)


def names(items: Any) -> list[str]:
    return [item.metadata.name for item in items]


# -- load_kube_config -----------------------------------------------------------------------------


def test_existing_code_is_right_without_another_change(server: ApiServer, kubeconfig: str, plugin: ScriptedPlugin):
    load_kube_config()
    assert names(client.CoreV1Api().list_namespace().items) == ["default", "kube-system"]
    with client.ApiClient() as api:
        assert client.VersionApi(api).get_code().major
        assert client.CoreV1Api(api).list_namespace(async_req=True).get(20).items
    assert {request.token for request in server.requests} == {"one"}
    assert plugin.runs == 1


def test_it_takes_what_the_librarys_own_takes(server: ApiServer, kubeconfig: str, tmp_path: Path):
    moved = Path(kubeconfig).rename(tmp_path / "elsewhere")
    load_kube_config(str(moved), "test", None, False, "/nowhere")
    assert client.Configuration.get_default_copy().host == server.url
    load_kube_config(config_file=moved, context="test", persist_config=False)
    assert client.CoreV1Api().list_namespace().items
    with pytest.raises(KubeconfigError, match="no-such-context"):
        load_kube_config(config_file=moved, context="no-such-context")
    with moved.open() as file, pytest.raises(UsageError, match="an open file is not taken"):
        load_kube_config(file)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="unexpected arguments: contxt"):
        load_kube_config(moved, contxt="test")


def test_a_configuration_that_is_given_is_filled_and_the_default_left_alone(server: ApiServer, kubeconfig: str):
    configuration = client.Configuration(retries=False, connection_pool_maxsize=7)
    load_kube_config(client_configuration=configuration)
    assert client.Configuration._default is None
    with client.ApiClient(configuration) as api:
        assert client.CoreV1Api(api).list_namespace().items
        (pool,) = api.rest_client.pool_manager._generations.drain()
        assert pool.connection_pool_kw["maxsize"] == 7
        assert pool.connection_pool_kw["retries"].total is False
        pool.clear()
    assert server.requests[-1].user == "jane"


def test_copies_of_a_configuration_share_the_credential(server: ApiServer, kubeconfig: str, plugin: ScriptedPlugin):
    with api_client() as first:
        assert client.CoreV1Api(first).list_namespace().items
        with client.ApiClient(copy.deepcopy(first.configuration)) as second:
            assert client.CoreV1Api(second).list_namespace().items
    assert plugin.runs == 1


def test_other_configurations_are_not_touched(server: ApiServer, kubeconfig: str, ca: CertificateAuthority):
    with api_client():
        plain = client.Configuration(host=server.url, ca_cert_data=ca.certificate_pem.decode())
        with client.ApiClient(plain) as api:
            assert type(api.rest_client.pool_manager) is urllib3.PoolManager
            with pytest.raises(client.ApiException) as refused:
                client.CoreV1Api(api).list_namespace()
        assert refused.value.status == 401
        assert server.requests[-1].header("authorization") is None


def test_hooking_twice_changes_nothing(kubeconfig: str):
    from kubernetes.client import rest
    from kubernetes.stream import ws_client

    api_client().close()
    hooks = rest.RESTClientObject.__init__, ws_client.create_websocket
    load_kube_config()
    assert (rest.RESTClientObject.__init__, ws_client.create_websocket) == hooks


# -- fail closed ----------------------------------------------------------------------------------


def test_a_failing_plugin_means_an_error_and_not_an_anonymous_request(
    server: ApiServer, kubeconfig: str, plugin: ScriptedPlugin
):
    plugin.fail(2)
    load_kube_config()
    with pytest.raises(PluginFailed):
        client.CoreV1Api().list_namespace()
    with pytest.raises(CredentialError), client.ApiClient() as api:
        dynamic.DynamicClient(api)
    with pytest.raises(CredentialError):
        next(watch.Watch().stream(client.CoreV1Api().list_namespace))
    assert server.connections == []


def test_should_a_request_ever_pass_our_connections_by_it_is_refused_and_not_anonymous(
    server: ApiServer, kubeconfig: str, ca: CertificateAuthority
):
    with api_client() as api:
        with urllib3.PoolManager(ca_cert_data=ca.certificate_pem.decode()) as foreign:
            api.rest_client.pool_manager = foreign
            with pytest.raises(client.ApiException) as refused:
                client.CoreV1Api(api).list_namespace()
    assert refused.value.status == 401
    assert server.requests[-1].token == "replaced-by-kubeauthn"


def test_a_redirect_elsewhere_is_refused(ca: CertificateAuthority, server: ApiServer, kubeconfig: str, tmp_path: Path):
    with redirecting_server(ca, {}) as (elsewhere, asked):
        with redirecting_server(ca, {"/api/v1/namespaces": elsewhere + "/stolen"}) as (url, _):
            with api_client(server=url) as api, pytest.raises(UsageError, match=f"sends nothing to {elsewhere}"):
                client.CoreV1Api(api).list_namespace()
        assert asked == []


def test_another_host_in_the_configuration_gets_nothing(server: ApiServer, kubeconfig: str, plugin: ScriptedPlugin):
    with api_client() as api:
        api.configuration.host = "https://127.0.0.1:1"
        with pytest.raises(UsageError, match="sends nothing to https://127.0.0.1:1"):
            client.CoreV1Api(api).list_namespace()


def test_an_authorization_of_the_callers_own_stays(server: ApiServer, kubeconfig: str, plugin: ScriptedPlugin):
    server.accept_token("mine", "me")
    with api_client() as api:
        api.set_default_header("Authorization", "Bearer mine")
        client.CoreV1Api(api).list_namespace()
    with api_client() as api:
        api.configuration.api_key["authorization"] = "Bearer mine"
        client.CoreV1Api(api).list_namespace()
    assert [request.header("authorization") for request in server.requests] == ["Bearer mine"] * 2
    assert plugin.runs == 0


# -- what stands on ApiClient ---------------------------------------------------------------------


def test_the_dynamic_client(server: ApiServer, kubeconfig: str, plugin: ScriptedPlugin, tmp_path: Path):
    load_kube_config()
    with client.ApiClient() as api:
        resources = dynamic.DynamicClient(api, cache_file=str(tmp_path / "discovery.json"))
        namespaces = resources.resources.get(api_version="v1", kind="Namespace")
        assert "default" in names(namespaces.get().items)
        server.accept_only("two", "jane")
        plugin.reply(token="two")
        assert "default" in names(namespaces.get().items)
        events = namespaces.watch(timeout=5)
        assert next(events)["object"].metadata.name == "default"
        events.close()
    assert plugin.runs == 2


def test_a_watch_after_a_failed_one(server: ApiServer, kubeconfig: str, plugin: ScriptedPlugin):
    load_kube_config()
    core = client.CoreV1Api()
    server.fail(500, times=1)
    with pytest.raises(client.ApiException) as failed:
        next(watch.Watch().stream(core.list_namespace))
    assert failed.value.status == 500
    events = watch.Watch().stream(core.list_namespace)
    assert next(events)["object"].metadata.name == "default"
    events.close()
    assert all(request.token == "one" for request in server.requests)


def test_a_lock_of_leader_election(server: ApiServer, kubeconfig: str):
    load_kube_config()
    lock = ConfigMapLock("lock", "default", "me")
    assert lock.create("lock", "default", LeaderElectionRecord("me", "15", "2030-01-01", "2030-01-01"))
    found, record = lock.get("lock", "default")
    assert found
    assert record.holder_identity == "me"
    assert {request.user for request in server.requests} == {"jane"}


# -- websockets: exec, attach, port-forward -------------------------------------------------------


@pytest.fixture
def pods(ca: CertificateAuthority) -> Iterator[WebsocketServer]:
    with WebsocketServer(ca) as running:
        running.tokens = {"one"}
        yield running


def execute(api: client.ApiClient) -> bytes:
    connect = client.CoreV1Api(api).connect_get_namespaced_pod_exec
    socket = stream.stream(connect, "pod", "default", command=["id"], binary=True, _preload_content=False)
    try:
        socket.run_forever(timeout=20)
        return socket.read_all()
    finally:
        socket.sock.shutdown()  # the library itself leaves it to the garbage collector


def test_exec_shows_token_certificate_and_impersonation(
    pods: WebsocketServer, kubeconfig: str, plugin: ScriptedPlugin, ca: CertificateAuthority
):
    certificate = ca.issue_client("jane")
    plugin.reply(token="one", certificate=certificate)
    with api_client(server=pods.url, impersonate_user="jörg", impersonate_groups=["dev", "ops"]) as api:
        assert execute(api) == pods.greeting
    (handshake,) = pods.handshakes
    assert handshake.values("authorization") == ["Bearer one"]
    assert handshake.serial == certificate.serial
    assert handshake.values("impersonate-user") == ["jörg"]
    assert handshake.values("impersonate-group") == ["dev", "ops"]
    assert "command=id" in handshake.target


def test_exec_with_the_default_configuration(pods: WebsocketServer, kubeconfig: str):
    load_kube_config(server=pods.url)
    with client.ApiClient() as api:
        assert execute(api) == pods.greeting


def test_exec_after_rotation_shows_the_new_certificate(
    pods: WebsocketServer, kubeconfig: str, plugin: ScriptedPlugin, ca: CertificateAuthority
):
    old, new = ca.issue_client("jane"), ca.issue_client("jane")
    with api_client(server=pods.url) as api:
        plugin.reply(token="one", certificate=old)
        execute(api)
        plugin.reply(token="two", certificate=new)
        pods.tokens = {"two"}
        assert execute(api) == pods.greeting
    shown = [(handshake.values("authorization"), handshake.serial) for handshake in pods.handshakes]
    assert shown == [(["Bearer one"], old.serial), (["Bearer one"], old.serial), (["Bearer two"], new.serial)]


def test_exec_that_is_refused_again_is_the_servers_answer_and_no_loop(
    pods: WebsocketServer, kubeconfig: str, plugin: ScriptedPlugin
):
    pods.tokens = set()
    with api_client(server=pods.url) as api:
        with pytest.raises(client.ApiException, match="401"):
            execute(api)
        assert len(pods.handshakes) == plugin.runs == 2
        with pytest.raises(client.ApiException, match="next attempt in"):
            execute(api)
    assert len(pods.handshakes) == plugin.runs == 2


def test_exec_with_a_failing_plugin_opens_no_connection(pods: WebsocketServer, kubeconfig: str, plugin: ScriptedPlugin):
    plugin.fail(4)
    with (
        api_client(server=pods.url) as api,
        pytest.raises(client.ApiException, match="failed with exit code 4") as caught,
    ):
        execute(api)
    assert isinstance(caught.value.__context__, PluginFailed)
    assert pods.connections == 0


def test_exec_with_an_authorization_of_the_callers_own(
    pods: WebsocketServer, kubeconfig: str, plugin: ScriptedPlugin, ca: CertificateAuthority
):
    pods.tokens = {"mine"}
    with api_client(server=pods.url) as api:
        api.set_default_header("Authorization", "Bearer mine")
        execute(api)
    (handshake,) = pods.handshakes
    assert (handshake.values("authorization"), handshake.serial) == (["Bearer mine"], None)
    assert plugin.runs == 0


def test_exec_goes_to_its_own_server_only(pods: WebsocketServer, server: ApiServer, kubeconfig: str):
    with api_client(server=pods.url) as api:
        api.configuration.host = server.url
        with pytest.raises(client.ApiException, match="sends nothing to"):
            execute(api)
    assert server.connections == []
    assert pods.connections == 0


def test_exec_does_not_trust_another_authority(pods: WebsocketServer, kubeconfig: str, tmp_path: Path):
    import base64

    import yaml

    document = yaml.safe_load(Path(kubeconfig).read_text())
    other = CertificateAuthority().certificate_pem
    document["clusters"][0]["cluster"]["certificate-authority-data"] = base64.b64encode(other).decode()
    Path(kubeconfig).write_text(yaml.safe_dump(document))
    with api_client(server=pods.url) as api, pytest.raises(client.ApiException, match="CERTIFICATE_VERIFY_FAILED"):
        execute(api)
    assert pods.handshakes == []


@pytest.mark.parametrize("kind", [ConnectProxy, Socks5Proxy])
def test_exec_goes_through_the_proxy_of_the_kubeconfig_and_no_other(
    pods: WebsocketServer,
    server: ApiServer,
    plugin: ScriptedPlugin,
    kubeconfig: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    kind: type[ConnectProxy | Socks5Proxy],
):
    with kind(username="u", password="p") as proxy:
        cluster = {"proxy-url": proxy.url_with_password}
        path = server.write_kubeconfig(tmp_path / "proxied", user=plugin.user(), cluster=cluster)
        monkeypatch.setenv("https_proxy", "http://127.0.0.1:1")
        with api_client(kubeconfig=str(path), server=pods.url) as api:
            assert execute(api) == pods.greeting
        assert [str(tunnel) for tunnel in proxy.tunnels] == [pods.url.removeprefix("https://")]


def test_port_forward(pods: WebsocketServer, kubeconfig: str):
    with api_client(server=pods.url) as api:
        connect = client.CoreV1Api(api).connect_get_namespaced_pod_portforward
        forward = stream.portforward(connect, "pod", "default", ports="80")
        with forward.socket(80)._socket as end:
            end.settimeout(20)
            assert end.recv(100) == pods.greeting
    assert pods.handshakes[0].values("authorization") == ["Bearer one"]


def test_websockets_of_other_configurations_are_not_touched(
    pods: WebsocketServer, kubeconfig: str, ca: CertificateAuthority, tmp_path: Path
):
    bundle = tmp_path / "ca.pem"
    bundle.write_bytes(ca.certificate_pem)
    pods.tokens = {"their-own"}
    with api_client(server=pods.url):
        plain = client.Configuration(
            host=pods.url, ssl_ca_cert=str(bundle), api_key={"authorization": "Bearer their-own"}
        )
        with client.ApiClient(plain) as api:
            assert execute(api) == pods.greeting


def test_a_plugin_that_is_missing_is_named(server: ApiServer, kubeconfig: str, tmp_path: Path):
    entry = {
        "exec": {"apiVersion": "client.authentication.k8s.io/v1", "command": "/no/such", "interactiveMode": "Never"}
    }
    path = server.write_kubeconfig(tmp_path / "missing", user=entry)
    load_kube_config(str(path))
    with pytest.raises(PluginNotFound, match="exec: executable /no/such not found"):
        client.CoreV1Api().list_namespace()
    assert server.connections == []
