"""`connect` from end to end: kubeconfig, files and environment go in, and the server says what came out."""

from __future__ import annotations

import base64
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx2
import pytest

from kubeauthn._io import kubeconfig as kubeconfig_shell
from kubeauthn.client import PluginPolicy, connect
from kubeauthn.client.exec_source import forget_shared_sources
from kubeauthn.errors import KubercError, PluginDenied
from kubeauthn.testing import ApiServer, Issuer, ScriptedPlugin

LIST = "/api/v1/namespaces"
EXTENSION = {"audience": "prod", "n": [1, None]}


@pytest.fixture(autouse=True)
def no_credential_from_another_test() -> Iterator[None]:
    forget_shared_sources()
    yield
    forget_shared_sources()


@pytest.fixture
def server() -> Iterator[ApiServer]:
    with ApiServer(tokens={"first": "jane", "second": "jane"}) as running:
        yield running


@pytest.fixture
def plugin(tmp_path: Path) -> ScriptedPlugin:
    plugin = ScriptedPlugin(tmp_path / "bin" / "my-plugin")
    plugin.reply(token="first")
    return plugin


def use(server: ApiServer, home: Path, user: dict[str, Any], **entries: Any) -> None:
    server.write_kubeconfig(home / ".kube" / "config", user, **entries)


def tokens(server: ApiServer) -> list[str | None]:
    return [request.token for request in server.requests]


# -- where a credential comes from ----------------------------------------------------------------


def test_a_token_file_beside_the_kubeconfig_is_read_again_after_a_401(server: ApiServer, own_environment: Path):
    use(server, own_environment, {"tokenFile": "token"})
    file = own_environment / ".kube" / "token"
    file.write_text("first\n")
    with connect() as api:
        assert api.get(LIST).status_code == 200
        file.write_text("second\n")
        server.unauthorized(1)
        assert api.get(LIST).status_code == 200
    assert tokens(server) == ["first", "first", "second"]


def test_in_a_pod_the_service_account_is_used_and_its_token_read_again(
    server: ApiServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    account = tmp_path / "serviceaccount"
    account.mkdir()
    (account / "token").write_text("first")
    (account / "ca.crt").write_bytes(server.ca.certificate_pem)
    (account / "namespace").write_text("shop")
    monkeypatch.setitem(kubeconfig_shell.load.__kwdefaults__, "service_account", str(account))
    monkeypatch.setenv("KUBERNETES_SERVICE_HOST", "127.0.0.1")
    monkeypatch.setenv("KUBERNETES_SERVICE_PORT", str(server.port))
    with connect() as api:
        assert api.get(LIST).status_code == 200
        (account / "token").write_text("second")
        server.unauthorized(1)
        assert api.get(LIST).status_code == 200
    assert tokens(server) == ["first", "first", "second"]


def test_the_oidc_provider_refreshes_and_leaves_the_kubeconfig_as_it_was(server: ApiServer, own_environment: Path):
    with Issuer() as issuer:
        issuer.accept_refresh_token("r1", "jane")
        ended = issuer.token("jane", expires_in=5)
        use(server, own_environment, {"auth-provider": issuer.auth_provider(refresh_token="r1", id_token=ended)})
        before = (own_environment / ".kube" / "config").read_bytes()
        with connect(retry_unauthorized=False) as api:
            assert api.get(LIST).status_code == 401  # the server knows no issuer
    (sent,) = tokens(server)
    assert sent not in (None, ended)
    assert (own_environment / ".kube" / "config").read_bytes() == before


def test_without_home_the_account_of_the_process_says_where_it_is(
    server: ApiServer, own_environment: Path, monkeypatch: pytest.MonkeyPatch
):
    use(server, own_environment, {"token": "first"})
    monkeypatch.delenv("HOME")
    monkeypatch.delenv("USERPROFILE")
    monkeypatch.setattr("pwd.getpwuid", lambda uid: type("Account", (), {"pw_dir": str(own_environment)})())
    with connect() as api:
        assert api.get(LIST).status_code == 200


# -- what goes with it ----------------------------------------------------------------------------


def test_every_field_of_an_impersonation_reaches_the_server(server: ApiServer, own_environment: Path):
    entry = {
        "token": "first",
        "as": "bob",
        "as-uid": "42",
        "as-groups": ["dev", "ops"],
        "as-user-extra": {"scopes": ["view", "edit"], "example.com/Team": ["red"]},
    }
    use(server, own_environment, entry)
    with connect() as api:
        assert api.get(LIST).status_code == 200
    (request,) = server.requests
    sent = [(name.lower(), value) for name, value in request.headers if name.lower().startswith("impersonate-")]
    assert sent == [
        ("impersonate-user", "bob"),
        ("impersonate-uid", "42"),
        ("impersonate-group", "dev"),
        ("impersonate-group", "ops"),
        ("impersonate-extra-scopes", "view"),
        ("impersonate-extra-scopes", "edit"),
        ("impersonate-extra-example.com%2fteam", "red"),
    ]


def test_cluster_information_holds_the_ca_of_a_file_and_the_proxy_in_effect(
    server: ApiServer, plugin: ScriptedPlugin, own_environment: Path, monkeypatch: pytest.MonkeyPatch
):
    cluster = {
        "server": "https://cluster.test:6443",
        "certificate-authority-data": None,
        "certificate-authority": "ca.crt",
        "tls-server-name": "kubernetes",
        "disable-compression": True,
        "extensions": [
            {"name": "client.authentication.k8s.io/exec", "extension": {"audience": "prod", "n": [1, None]}}
        ],
    }
    use(server, own_environment, plugin.user(provideClusterInfo=True), cluster=cluster)
    (own_environment / ".kube" / "ca.crt").write_bytes(server.ca.certificate_pem)
    monkeypatch.setenv("HTTPS_PROXY", "http://127.0.0.1:1")
    with connect() as api, pytest.raises(httpx2.ConnectError):
        api.get(LIST)
    assert plugin.exec_info()["spec"] == {
        "interactive": False,
        "cluster": {
            "server": "https://cluster.test:6443",
            "tls-server-name": "kubernetes",
            "certificate-authority-data": base64.b64encode(server.ca.certificate_pem).decode(),
            "proxy-url": "http://127.0.0.1:1",
            "disable-compression": True,
            "config": EXTENSION,
        },
    }


# -- the plugin policy ----------------------------------------------------------------------------

KUBERC = "apiVersion: kubectl.config.k8s.io/v1beta1\nkind: Preference\n"


@pytest.mark.parametrize(
    ("policy", "denial"),
    [
        ("credentialPluginPolicy: DenyAll\n", 'not allowed: policy set to "DenyAll"'),
        (
            "credentialPluginPolicy: Allowlist\ncredentialPluginAllowlist:\n- command: another\n",
            "is not permitted by the credential plugin allowlist",
        ),
    ],
    ids=["DenyAll", "Allowlist"],
)
def test_a_kuberc_keeps_a_plugin_from_running(
    server: ApiServer, plugin: ScriptedPlugin, own_environment: Path, policy: str, denial: str
):
    use(server, own_environment, plugin.user())
    kuberc = own_environment / ".kube" / "kuberc"
    kuberc.write_text(KUBERC + policy)
    with connect() as api, pytest.raises(PluginDenied, match=denial) as caught:
        api.get(LIST)
    assert caught.value.hint == f"the policy comes from {kuberc}"
    assert (plugin.runs, server.requests) == (0, [])


@pytest.mark.parametrize("by", ["name", "path"])
def test_a_kuberc_lets_a_plugin_on_its_list_run(
    server: ApiServer, plugin: ScriptedPlugin, own_environment: Path, monkeypatch: pytest.MonkeyPatch, by: str
):
    monkeypatch.setenv("PATH", os.pathsep.join((str(plugin.path.parent), os.environ["PATH"])))
    use(server, own_environment, plugin.user(command="my-plugin" if by == "path" else str(plugin.path)))
    entry = "my-plugin" if by == "name" else str(plugin.path)
    kuberc = own_environment / "elsewhere"
    kuberc.write_text(f"{KUBERC}credentialPluginPolicy: Allowlist\ncredentialPluginAllowlist:\n- command: {entry}\n")
    monkeypatch.setenv("KUBERC", str(kuberc))
    with connect() as api:
        assert api.get(LIST).status_code == 200
    assert plugin.runs == 1


def test_a_kuberc_that_is_wrong_opens_nothing_and_a_policy_in_code_stands_in_for_it(
    server: ApiServer, plugin: ScriptedPlugin, own_environment: Path
):
    use(server, own_environment, plugin.user())
    (own_environment / ".kube" / "kuberc").write_text(KUBERC + "credentialPluginPolicy: Allowlist\n")
    with pytest.raises(KubercError, match="but allowlist is unspecified"):
        connect()
    assert plugin.runs == 0
    with connect(policy=PluginPolicy("Allowlist", (str(plugin.path),))) as api:
        assert api.get(LIST).status_code == 200
    with connect(policy=PluginPolicy("DenyAll")) as api, pytest.raises(PluginDenied):
        api.get(LIST)
    assert plugin.runs == 1
