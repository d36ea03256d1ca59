"""requests: what is its own, beside the common suite. The pool below it is shared with the Kubernetes client."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import requests

from kubeauthn._core.credential import Credential
from kubeauthn._core.kubeconfig.model import Cluster
from kubeauthn.client._urllib3_family import CredentialPool
from kubeauthn.client.access import Access, open_access
from kubeauthn.client.requests import Adapter, session
from kubeauthn.client.sources import FixedSource
from kubeauthn.errors import MissingExtra, PluginFailed, UsageError
from kubeauthn.testing import ApiServer, CertificateAuthority, ConnectProxy, ScriptedPlugin, Socks5Proxy
from tests.integration.adapters.loopback_servers import redirecting_server

NAMESPACES = "/api/v1/namespaces"
SECONDS = 20


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
def kubeconfig(server: ApiServer, plugin: ScriptedPlugin, tmp_path: Path) -> str:
    plugin.reply(token="one")
    server.accept_token("one", "jane")
    return str(server.write_kubeconfig(tmp_path / "config", user=plugin.user()))


def anonymous(url: str) -> Access:
    return Access(Cluster(server=url), FixedSource(Credential()))


# -- where it goes --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("server_url", "url", "whole"),
    [
        ("https://k8s.example", "/api", "https://k8s.example/api"),
        (
            "https://rancher.example/k8s/clusters/c-1/",
            "/api?limit=1",
            "https://rancher.example/k8s/clusters/c-1/api?limit=1",
        ),
        ("https://k8s.example", "https://k8s.example/version", "https://k8s.example/version"),
        ("https://k8s.example", "//elsewhere.example/x", "https://k8s.example//elsewhere.example/x"),
    ],
)
def test_a_path_is_a_path_on_the_server(server_url: str, url: str, whole: str):
    given = requests.Request("GET", url)
    with session(access=anonymous(server_url)) as api:
        assert api.prepare_request(given).url == whole
    assert given.url == url


def test_other_servers_get_nothing(
    server: ApiServer, kubeconfig: str, plugin: ScriptedPlugin, ca: CertificateAuthority
):
    with redirecting_server(ca, {}) as (elsewhere, asked), session(kubeconfig=kubeconfig) as api:
        with pytest.raises(UsageError, match=f"carries credentials for {server.url} and sends nothing to {elsewhere}"):
            api.get(elsewhere + "/x", timeout=SECONDS)
    assert asked == []
    assert plugin.runs == 0


@pytest.mark.parametrize("follow", ["requests follows", "urllib3 follows"])
def test_a_redirect_elsewhere_is_refused_and_one_on_the_server_is_followed(ca: CertificateAuthority, follow: str):
    with redirecting_server(ca, {}) as (elsewhere, asked_elsewhere):
        locations = {"/away": elsewhere + "/stolen", "/here": "/there"}
        with redirecting_server(ca, locations) as (url, asked):
            access = Access(
                Cluster(server=url, certificate_authority_data=ca.certificate_pem), FixedSource(Credential())
            )
            if follow == "requests follows":
                with session(access=access) as api:
                    assert api.get("/here", timeout=SECONDS).url == url + "/there"
                    with pytest.raises(UsageError, match="sends nothing to"):
                        api.get("/away", timeout=SECONDS)
            else:
                with CredentialPool(access) as pool:
                    assert pool.request("GET", url + "/here", timeout=SECONDS).status == 200
                    with pytest.raises(UsageError, match="sends nothing to"):
                        pool.request("GET", url + "/away", timeout=SECONDS)
    assert asked == ["/here", "/there", "/away"]
    assert asked_elsewhere == []


def test_the_pool_gives_out_no_connection_that_would_lack_the_credential(server: ApiServer, kubeconfig: str):
    pool = CredentialPool(open_access(kubeconfig=kubeconfig))
    with pytest.raises(UsageError, match="no bare connections"):
        pool.connection_from_url(server.url)


@pytest.mark.parametrize(
    "option", [{"verify": False}, {"verify": "/some/ca"}, {"cert": "/some/cert"}, {"proxies": {"https": "http://x"}}]
)
def test_what_the_kubeconfig_decides_is_not_taken_from_the_call(
    server: ApiServer, kubeconfig: str, option: dict[str, Any]
):
    with session(kubeconfig=kubeconfig) as api:
        with pytest.raises(UsageError, match="the kubeconfig says what holds"):
            api.get(NAMESPACES, timeout=SECONDS, **option)
    assert server.requests == []


# -- headers --------------------------------------------------------------------------------------


def test_the_token_is_not_left_in_the_request_that_others_log(kubeconfig: str):
    with session(kubeconfig=kubeconfig) as api:
        response = api.get(NAMESPACES, timeout=SECONDS)
    assert response.status_code == 200
    assert "Authorization" not in response.request.headers


def test_netrc_is_not_asked(server: ApiServer, kubeconfig: str, own_environment: Path):
    netrc = own_environment / ".netrc"
    netrc.write_text("machine 127.0.0.1 login intruder password p\n")
    netrc.chmod(0o600)
    with session(kubeconfig=kubeconfig) as api:
        assert api.get(NAMESPACES, timeout=SECONDS).status_code == 200
    assert server.requests[-1].token == "one"


def test_an_authorization_of_the_callers_own_stays_and_no_plugin_runs(
    server: ApiServer, plugin: ScriptedPlugin, kubeconfig: str, ca: CertificateAuthority
):
    plugin.reply(token="one", certificate=ca.issue_client("jane"))
    server.accept_token("mine", "me")
    with session(kubeconfig=kubeconfig) as api:
        assert api.get(NAMESPACES, headers={"authorization": "Bearer mine"}, timeout=SECONDS).status_code == 200
        assert plugin.runs == 0
        assert api.get(NAMESPACES, timeout=SECONDS).status_code == 200
        assert api.get(NAMESPACES, headers={"authorization": "Bearer mine"}, timeout=SECONDS).status_code == 200
    own, ours, own_again = server.requests
    assert (own.user, own.certificate_serial) == ("me", None)
    assert ours.certificate_serial is not None
    assert (own_again.user, own_again.certificate_serial) == ("me", None)


def test_impersonated_groups_are_headers_of_their_own_and_win_over_the_callers(server: ApiServer, kubeconfig: str):
    with session(kubeconfig=kubeconfig, impersonate_user="ann", impersonate_groups=["dev", "ops"]) as api:
        api.get(NAMESPACES, headers={"impersonate-user": "root"}, timeout=SECONDS)
    sent = [(name.lower(), value) for name, value in server.requests[-1].headers if "impersonate" in name.lower()]
    assert sent == [("impersonate-user", "ann"), ("impersonate-group", "dev"), ("impersonate-group", "ops")]


# -- 401 ------------------------------------------------------------------------------------------


def put(api: requests.Session, body: Any) -> requests.Response:
    return api.put(f"{NAMESPACES}/x", data=body, headers={"Content-Type": "application/json"}, timeout=SECONDS)


@pytest.mark.parametrize("body", [b'{"kind":"Namespace"}', '{"kind":"Namespace"}', None])
def test_a_body_that_is_at_hand_is_sent_again_after_401(
    server: ApiServer, plugin: ScriptedPlugin, kubeconfig: str, body: Any
):
    with session(kubeconfig=kubeconfig) as api:
        api.get(NAMESPACES, timeout=SECONDS)
        server.requests.clear()
        server.accept_only("two", "jane")
        plugin.reply(token="two")
        assert put(api, body).status_code != 401
    first, second = server.requests
    assert (first.token, second.token) == ("one", "two")
    assert first.body == second.body == (b'{"kind":"Namespace"}' if body else b"")


def test_a_body_that_is_streamed_is_not_sent_again_but_the_next_request_has_the_new_token(
    server: ApiServer, plugin: ScriptedPlugin, kubeconfig: str
):
    with session(kubeconfig=kubeconfig) as api:
        api.get(NAMESPACES, timeout=SECONDS)
        server.requests.clear()
        server.accept_only("two", "jane")
        plugin.reply(token="two")
        assert put(api, iter([b'{"kind":', b'"Namespace"}'])).status_code == 401
        assert [request.token for request in server.requests] == ["one"]
        assert api.get(NAMESPACES, timeout=SECONDS).status_code == 200
    assert plugin.runs == 2


@pytest.mark.parametrize("stream", [False, True])
def test_the_connection_of_the_refused_answer_serves_again(
    server: ApiServer, plugin: ScriptedPlugin, kubeconfig: str, stream: bool
):
    with session(kubeconfig=kubeconfig) as api:
        api.get(NAMESPACES, timeout=SECONDS)
        server.accept_only("two", "jane")
        plugin.reply(token="two")
        with api.get(NAMESPACES, stream=stream, timeout=SECONDS) as response:
            assert response.json()["kind"] == "NamespaceList"
    assert [request.token for request in server.requests] == ["one", "one", "two"]
    assert len({request.connection_id for request in server.requests}) == 1


def test_a_failing_plugin_is_our_error_and_nothing_is_sent(server: ApiServer, plugin: ScriptedPlugin, kubeconfig: str):
    plugin.fail(3)
    with session(kubeconfig=kubeconfig) as api:
        with pytest.raises(PluginFailed):
            api.get(NAMESPACES, timeout=SECONDS)
    assert server.connections == []


# -- connections ----------------------------------------------------------------------------------


def test_idle_connections_of_an_old_certificate_close_at_once_though_a_watch_goes_on(
    server: ApiServer, plugin: ScriptedPlugin, kubeconfig: str, ca: CertificateAuthority
):
    old, new = ca.issue_client("jane"), ca.issue_client("jane")
    plugin.reply(certificate=old)
    with session(kubeconfig=kubeconfig) as api:
        with api.get(NAMESPACES, params={"watch": "1"}, stream=True, timeout=SECONDS) as watch:
            lines = watch.iter_lines()
            next(lines)
            api.get(NAMESPACES, timeout=SECONDS)
            watching, idle = server.connections
            assert watching.certificate_serial == idle.certificate_serial == old.serial
            plugin.reply(certificate=new)
            server.revoke_serial(old.serial)
            assert api.get(NAMESPACES, timeout=SECONDS).status_code == 200
            server.wait_for(lambda: not server.connections[1].is_open)
            assert server.requests[-1].certificate_serial == new.serial
            assert server.connections[0].is_open
            server.emit("namespaces", "still-watched")
            assert any(b"still-watched" in line for line in lines if line)
        server.wait_for(lambda: not server.connections[0].is_open)
        assert server.connections[2].is_open


def test_a_pool_that_another_thread_retires_meanwhile_still_serves(
    kubeconfig: str, server: ApiServer, monkeypatch: pytest.MonkeyPatch
):
    access = open_access(kubeconfig=kubeconfig)
    with CredentialPool(access) as pool:
        inner = pool.pool_for(access.credential())
        look_up = inner.connection_from_host
        retired: list[bool] = []

        def retired_in_between(*args: Any, **kwargs: Any) -> Any:
            connections = look_up(*args, **kwargs)
            if not retired:
                retired.append(True)
                inner.clear()
            return connections

        monkeypatch.setattr(inner, "connection_from_host", retired_in_between)
        assert pool.request("GET", server.url + NAMESPACES, timeout=SECONDS).status == 200
    assert retired


def test_a_session_of_ones_own_can_mount_the_adapter(server: ApiServer, kubeconfig: str):
    access = open_access(kubeconfig=kubeconfig)
    with requests.Session() as own:
        own.mount(access.server, Adapter(access))
        assert own.get(access.server + NAMESPACES, timeout=SECONDS).status_code == 200
    assert server.requests[-1].token == "one"


# -- proxies --------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", [ConnectProxy, Socks5Proxy])
def test_a_proxy_gets_its_password(
    server: ApiServer, plugin: ScriptedPlugin, kubeconfig: str, tmp_path: Path, kind: type[ConnectProxy | Socks5Proxy]
):
    with kind(username="u", password="p%40ss".replace("%40", "@")) as proxy:
        cluster = {"proxy-url": f"{proxy.scheme}://u:p%40ss@127.0.0.1:{proxy.port}"}
        path = server.write_kubeconfig(tmp_path / "proxied", user=plugin.user(), cluster=cluster)
        with session(kubeconfig=str(path)) as api:
            assert api.get(NAMESPACES, timeout=SECONDS).status_code == 200
        assert [tunnel.username for tunnel in proxy.tunnels] == ["u"]


def test_names_are_looked_up_by_the_socks_proxy(
    server: ApiServer, plugin: ScriptedPlugin, kubeconfig: str, tmp_path: Path
):
    with Socks5Proxy() as proxy:
        cluster = {"proxy-url": proxy.url, "server": f"https://localhost:{server.port}"}
        path = server.write_kubeconfig(tmp_path / "proxied", user=plugin.user(), cluster=cluster)
        with session(kubeconfig=str(path)) as api:
            assert api.get(NAMESPACES, timeout=SECONDS).status_code == 200
        assert [tunnel.host for tunnel in proxy.tunnels] == ["localhost"]


def test_a_socks_proxy_without_pysocks_names_the_extra(
    server: ApiServer, plugin: ScriptedPlugin, kubeconfig: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    path = server.write_kubeconfig(
        tmp_path / "proxied", user=plugin.user(), cluster={"proxy-url": "socks5://127.0.0.1:1"}
    )
    monkeypatch.setitem(sys.modules, "socks", None)
    with session(kubeconfig=str(path)) as api, pytest.raises(MissingExtra) as caught:
        api.get(NAMESPACES, timeout=SECONDS)
    assert caught.value.extra == "socks"


# -- without the library --------------------------------------------------------------------------


@pytest.mark.parametrize("library", ["requests", "kubernetes"])
def test_without_the_library_the_error_names_the_extra(library: str):
    program = (
        f"import sys; sys.modules[{library!r}] = None; sys.modules['urllib3'] = None\n"
        "from kubeauthn.errors import MissingExtra\n"
        f"try: import kubeauthn.client.{library}\n"
        "except MissingExtra as error: print(error.extra)\n"
    )
    result = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=30)
    assert (result.stdout, result.stderr) == (f"{library}\n", "")
