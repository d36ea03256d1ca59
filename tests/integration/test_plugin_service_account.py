"""`kubeauthn plugin service-account`: started by a client, against a server that gives out tokens."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from kubeauthn._core import execwire, rfc3339
from kubeauthn._core.kubeconfig.model import Cluster
from kubeauthn.client import connect
from kubeauthn.client.exec_source import forget_shared_sources
from kubeauthn.errors import PluginFailed, UsageError
from kubeauthn.plugins.service_account import Settings, check
from kubeauthn.testing import ApiServer, ScriptedPlugin
from kubeauthn.testing.proxy_plugin import ProxyPlugin

KUBEAUTHN = str(Path(sys.executable).parent / "kubeauthn")
ACCOUNT = "system:serviceaccount:ci:deployer"


@pytest.fixture(autouse=True)
def no_credential_from_another_test() -> Iterator[None]:
    forget_shared_sources()
    yield
    forget_shared_sources()


@pytest.fixture
def server() -> Iterator[ApiServer]:
    with ApiServer(tokens={"owners-s3cret": "jane"}) as running:
        running.emit("namespaces", "ci")
        running.emit("serviceaccounts", "deployer", namespace="ci")
        yield running


@pytest.fixture
def kubeconfig(server: ApiServer, own_environment: Path) -> dict[str, Any]:
    """With a context `owner` that may ask, and the current context `bot` that the plugin logs in."""
    document = server.kubeconfig({"token": "owners-s3cret"}, user_name="owner", context_name="owner", namespace="ci")
    add_context(document, "bot", "plugin", "service-account", "deployer", "--context", "owner")
    document["current-context"] = "bot"
    write(document, own_environment)
    return document


def add_context(document: dict[str, Any], name: str, *args: str, cluster: str = "test", **more: Any) -> None:
    entry = {"apiVersion": execwire.V1, "command": KUBEAUTHN, "args": list(args), "interactiveMode": "Never", **more}
    document["users"].append({"name": name, "user": {"exec": entry}})
    document["contexts"].append({"name": name, "context": {"cluster": cluster, "user": name}})


def write(document: dict[str, Any], home: Path) -> None:
    (home / ".kube").mkdir(exist_ok=True)
    (home / ".kube" / "config").write_text(json.dumps(document))


def run(*words: str, cluster: Cluster | None = None, **more: str) -> subprocess.CompletedProcess[str]:
    info = execwire.encode_exec_info(execwire.V1, interactive=False, cluster=cluster)
    return subprocess.run(
        [KUBEAUTHN, "plugin", "service-account", *words], env={**os.environ, execwire.VARIABLE: info, **more},
        capture_output=True, text=True, timeout=50,
    )  # fmt: skip


def failure(*words: str, cluster: Cluster | None = None) -> str:
    done = run(*words, cluster=cluster)
    assert done.returncode == 1
    assert not done.stdout
    assert "owners-s3cret" not in done.stderr
    return done.stderr


def token_requests(server: ApiServer) -> list[Any]:
    return [each for each in server.requests if each.path.endswith("/token")]


@pytest.mark.usefixtures("kubeconfig")
def test_a_client_works_as_the_service_account_and_only_the_question_is_the_owners(server: ApiServer):
    with connect() as api:
        assert api.get("/api/v1/namespaces").status_code == 200
        assert api.get("/api/v1/namespaces").status_code == 200
    asked, *used = server.requests
    assert (asked.method, asked.path, asked.user) == (
        "POST", "/api/v1/namespaces/ci/serviceaccounts/deployer/token", "jane",
    )  # fmt: skip
    assert [each.user for each in used] == [ACCOUNT, ACCOUNT]
    assert all(each.token != "owners-s3cret" for each in used)


@pytest.mark.usefixtures("kubeconfig")
def test_what_is_asked_for_and_how_long_a_client_keeps_it(server: ApiServer):
    done = run("deployer", "--context=owner", "--expires=900", "--audience=vault", "--audience=other")
    assert done.returncode == 0, done.stderr
    status = json.loads(done.stdout)["status"]
    assert 820 < rfc3339.parse(status["expirationTimestamp"]) - time.time() <= 840  # a minute before its end
    (asked,) = token_requests(server)
    assert json.loads(asked.body) == {
        "apiVersion": "authentication.k8s.io/v1",
        "kind": "TokenRequest",
        "spec": {"expirationSeconds": 900, "audiences": ["vault", "other"]},
    }


@pytest.mark.usefixtures("kubeconfig")
def test_the_context_that_asks_may_have_a_plugin_of_its_own(
    server: ApiServer, kubeconfig: dict[str, Any], own_environment: Path
):
    plugin = ScriptedPlugin(own_environment / "owners-plugin")
    plugin.reply(token="owners-s3cret")
    kubeconfig["users"][0]["user"] = plugin.user()
    write(kubeconfig, own_environment)
    with connect() as api:
        assert api.get("/api/v1/namespaces").status_code == 200
    assert [each.user for each in server.requests] == ["jane", ACCOUNT]
    assert plugin.runs == 1


@pytest.mark.parametrize("through_a_proxy", [False, True], ids=["a certificate", "a proxy plugin"])
def test_the_context_that_asks_may_have_no_token(
    server: ApiServer, kubeconfig: dict[str, Any], own_environment: Path, through_a_proxy: bool
):
    certificate = server.ca.issue_client("jane")
    proxy = ProxyPlugin(own_environment / "proxy", upstream=certificate)
    kubeconfig["users"][0]["user"] = proxy.user() if through_a_proxy else certificate.kubeconfig_user()
    write(kubeconfig, own_environment)
    with connect() as api:
        assert api.get("/api/v1/namespaces").status_code == 200
    assert [each.user for each in server.requests] == ["jane", ACCOUNT]
    assert proxy.runs == through_a_proxy


@pytest.mark.usefixtures("kubeconfig")
def test_one_account_may_ask_for_the_token_of_another(
    server: ApiServer, kubeconfig: dict[str, Any], own_environment: Path
):
    server.emit("serviceaccounts", "reader", namespace="ci")
    add_context(kubeconfig, "reader", "plugin", "service-account", "reader", "--namespace=ci", "--context=bot")
    write(kubeconfig, own_environment)
    with connect("reader") as api:
        assert api.get("/api/v1/namespaces").status_code == 200
    assert [each.user for each in server.requests] == ["jane", ACCOUNT, "system:serviceaccount:ci:reader"]


@pytest.mark.parametrize("through", [(), ("--context=bot",)], ids=["the current context", "by name"])
def test_a_context_that_leads_back_to_itself_ends_at_once(
    server: ApiServer, kubeconfig: dict[str, Any], own_environment: Path, through: tuple[str, ...], capfd
):
    kubeconfig["users"][1]["user"]["exec"]["args"] = ["plugin", "service-account", "deployer", *through]
    write(kubeconfig, own_environment)
    with connect() as api, pytest.raises(PluginFailed):
        api.get("/api/v1/namespaces")
    assert not server.requests
    said = capfd.readouterr().err
    assert said.count("is logged in by this very entry") == 1
    assert "--context NAME" in said


@pytest.mark.usefixtures("kubeconfig")
def test_a_token_of_one_cluster_is_not_handed_to_another(server: ApiServer):
    said = failure("deployer", "--context=owner", cluster=Cluster(server="https://other.test"))
    assert f"the credential is for https://other.test, and the context that asks for it leads to {server.url}" in said
    assert not server.requests
    done = run("deployer", "--context=owner", cluster=Cluster(server=f"{server.url}/"))
    assert done.returncode == 0, done.stderr


@pytest.mark.usefixtures("kubeconfig")
def test_an_account_that_is_not_there(server: ApiServer):
    said = failure("nobody", "--context=owner")
    assert "there is no service account nobody in namespace ci" in said
    assert "kubectl create serviceaccount nobody -n ci" in said


@pytest.mark.usefixtures("kubeconfig")
def test_who_may_not_ask_is_told_which_role_is_missing(server: ApiServer):
    server.forbidden(1)
    said = failure("deployer", "--context=owner")
    assert "no token for service account deployer in namespace ci may be asked for" in said
    assert "--resource=serviceaccounts/token --resource-name=deployer -n ci" in said


@pytest.mark.usefixtures("kubeconfig")
def test_who_is_not_known_to_the_server(server: ApiServer):
    server.accept_only("another")
    said = failure("deployer", "--context=owner")
    assert "the server does not know who asks for the token (401), the user of context owner" in said


@pytest.mark.usefixtures("own_environment")
def test_a_server_that_is_not_there(own_environment: Path):
    with ApiServer() as gone:
        document = gone.kubeconfig({"token": "owners-s3cret"}, context_name="owner")
    write(document, own_environment)
    assert f"cannot reach {gone.url}" in failure("deployer", "--context=owner")


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        (Settings("../secrets"), "the service account takes a name"),
        (Settings("a/b"), "the service account takes a name"),
        (Settings(".."), "the service account takes a name"),
        (Settings(""), "the service account takes a name"),
        (Settings("a" * 254), "the service account takes a name"),
        (Settings("deployer", namespace="ci/pods"), "--namespace takes a name"),
        (Settings("deployer", seconds=599), "--expires takes seconds, 600 at least"),
    ],
)
def test_what_becomes_part_of_a_path_is_checked(settings: Settings, said: str):
    with pytest.raises(UsageError, match=said):
        check(settings)


def test_the_entry_that_it_prints_works(
    server: ApiServer, kubeconfig: dict[str, Any], own_environment: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setenv("PATH", f"{Path(KUBEAUTHN).parent}{os.pathsep}{os.environ['PATH']}")
    done = run("deployer", "-n", "ci", "--context=owner", "--expires=7200", "--print-kubeconfig")
    assert done.returncode == 0, done.stderr
    (printed,) = yaml.safe_load(done.stdout)["users"]
    assert printed["user"]["exec"]["provideClusterInfo"] is True
    kubeconfig["users"][1] = {"name": "bot", "user": printed["user"]}
    write(kubeconfig, own_environment)
    with connect() as api:
        assert api.get("/api/v1/namespaces").status_code == 200
    assert server.requests[-1].user == ACCOUNT
    assert json.loads(token_requests(server)[0].body)["spec"]["expirationSeconds"] == 7200


@pytest.mark.needs("kubectl")
def test_kubectl_works_as_the_service_account(
    server: ApiServer, kubeconfig: dict[str, Any], own_environment: Path, monkeypatch: pytest.MonkeyPatch
):
    """With the entry that it prints, and behind the cache: two commands, one question."""
    monkeypatch.setenv("PATH", f"{Path(KUBEAUTHN).parent}{os.pathsep}{os.environ['PATH']}")
    printed = yaml.safe_load(run("deployer", "-n", "ci", "--context=owner", "--print-kubeconfig").stdout)
    entry = printed["users"][0]["user"]["exec"]
    entry["args"] = ["plugin", "cache", "--", "kubeauthn", *entry["args"]]
    kubeconfig["users"][1] = {"name": "bot", "user": {"exec": entry}}
    write(kubeconfig, own_environment)
    for _ in range(2):
        listed = subprocess.run(
            ["kubectl", "get", "--raw", "/api/v1/namespaces"], stdin=subprocess.DEVNULL, capture_output=True, text=True,
            timeout=50,
        )  # fmt: skip
        assert listed.returncode == 0, listed.stderr
    assert len(token_requests(server)) == 1
    assert {each.user for each in server.requests if each not in token_requests(server)} == {ACCOUNT}
