"""Each shipped proxy plugin before the real kube-apiserver: in Python clients, and in kubectl through the bridge."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from kubeauthn.client import connect
from kubeauthn.testing import Issuer
from tests.e2e.cluster import Cluster, kubeconfig_text
from tests.e2e.processes import poll
from tests.e2e.sigv4_front import SignatureFront
from tests.e2e.test_signers import Desk
from tests.integration.adapters.conftest import found_drivers
from tests.integration.adapters.driver import Driver
from tests.integration.softhsm import PIN
from tests.integration.test_proxy_references import KEY, SECRET
from tests.integration.test_signer_kubectl import KEYRING
from tests.peers import find

KINDS = ("headers", "tls", "tls-signer", "sigv4")
REVIEW = {"apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview"}
SECONDS = 60
USER = "first:proxied"


@pytest.fixture(scope="module")
def cluster(direct: Cluster) -> Cluster:
    direct.grant(USER)
    direct.grant("proxied")
    return direct


class Scene:
    """A kubeconfig whose plugin is a proxy, and what it goes to."""

    def __init__(self, folder: Path, cluster: Cluster, issuer: Issuer) -> None:
        self.folder = folder
        self.cluster = cluster
        self.issuer = issuer
        self.front: SignatureFront | None = None

    def kubeconfig(self, kind: str) -> Path:
        user = getattr(self, f"_{kind.replace('-', '_')}")()
        if self.front is None:
            return self.cluster.write_kubeconfig(f"proxy-{kind}", user)
        path = self.folder / "config"
        path.write_text(kubeconfig_text(self.front.url, self.front.ca, user))
        return path

    def _headers(self) -> dict[str, Any]:
        secret = self.folder / "header"
        secret.touch(0o600)
        secret.write_text(f"Authorization: Bearer {self.issuer.token('proxied', expires_in=600)}\n")
        return self._user("headers", "--", "/bin/cat", str(secret))

    def _tls(self) -> dict[str, Any]:
        leaf = self.cluster.ca.issue_client("proxied")
        certificate, key = self.folder / "cert.pem", self.folder / "key.pem"
        certificate.write_bytes(leaf.chain_pem)
        key.touch(0o600)
        key.write_bytes(leaf.key_pem)
        return self._user("tls", "--certificate", str(certificate), "--key", str(key))

    def _tls_signer(self) -> dict[str, Any]:
        desk = Desk(self.folder, self.cluster, user="proxied")
        configuration = {**desk.user("file")["auth-provider"]["config"], "pinSource": "keyring:kubeauthn/desk"}
        passphrase = configuration.pop("pin")  # it may not stand among the arguments of a proxy
        (self.folder / "shelf.py").write_text(KEYRING.replace(repr(PIN), repr(passphrase)))
        variables = {"PYTHONPATH": str(self.folder), "PYTHON_KEYRING_BACKEND": "shelf.Shelf"}
        return self._user("tls", *(f"--signer={name}={value}" for name, value in configuration.items()), **variables)

    def _sigv4(self) -> dict[str, Any]:
        self.front = SignatureFront(self.cluster, "proxied").__enter__()
        variables = {"AWS_ACCESS_KEY_ID": KEY, "AWS_SECRET_ACCESS_KEY": SECRET}
        return self._user("sigv4", "--region", "eu-west-1", "--service", "kubernetes", **variables)

    def _user(self, name: str, *arguments: str, **variables: str) -> dict[str, Any]:
        entry = {
            "apiVersion": "client.authentication.k8s.io/v1",
            "command": sys.executable,
            "args": ["-c", f"from kubeauthn.plugins.proxy_{name} import main; main()", *arguments],
            "interactiveMode": "Never",
            "provideClusterInfo": True,
            "env": [{"name": key, "value": value} for key, value in variables.items()],
        }
        switch = {"name": "client.authentication.k8s.io/exec-proxy", "extension": {"enabled": True}}
        return {"exec": entry, "extensions": [switch]}


@pytest.fixture
def scene(
    cluster: Cluster, issuers: tuple[Issuer, Issuer], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Scene]:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    made = Scene(tmp_path, cluster, issuers[0])
    yield made
    if made.front is not None:
        made.front.__exit__(None, None, None)


@pytest.mark.parametrize("kind", KINDS)
def test_requests_arrive_as_the_user_of_the_proxy(scene: Scene, kind: str, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("KUBECONFIG", str(scene.kubeconfig(kind)))
    with connect() as api:
        user = api.post("/apis/authentication.k8s.io/v1/selfsubjectreviews", json=REVIEW).json()["status"]["userInfo"]
        assert user["username"] == (USER if kind == "headers" else "proxied")
        listed = api.get("/api/v1/namespaces?limit=2").json()
        assert len(listed["items"]) == 2
        more = api.get("/api/v1/namespaces", params={"limit": "2", "continue": listed["metadata"]["continue"]}).json()
        assert {item["metadata"]["name"] for item in more["items"]}.isdisjoint(
            item["metadata"]["name"] for item in listed["items"]
        )
        with api.stream("GET", "/api/v1/namespaces?watch=true&timeoutSeconds=2") as watch:
            seen = [json.loads(line)["object"]["metadata"]["name"] for line in watch.iter_lines() if line]
    assert "kube-system" in seen
    assert scene.front is None or scene.front.refused == 0


@pytest.mark.parametrize("kind", KINDS)
def test_kubectl_goes_through_the_bridge_and_the_proxy(scene: Scene, kind: str, monkeypatch: pytest.MonkeyPatch):
    program = find("kubectl")
    assert program is not None
    monkeypatch.setenv("PATH", f"{program.parent}:{os.environ['PATH']}")
    file = scene.kubeconfig(kind)
    try:
        who = kubeauthn(file, "kubectl", "--", "auth", "whoami", "-o", "jsonpath={.status.userInfo.username}")
        assert (who.returncode, who.stdout) == (0, USER if kind == "headers" else "proxied"), who.stderr
        assert "namespace/kube-system" in kubeauthn(file, "kubectl", "--", "get", "ns", "-o", "name").stdout
    finally:
        kubeauthn(file, "bridge", "stop", "--all")


def kubeauthn(kubeconfig: Path, *words: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "kubeauthn", *words]
    environ = {**os.environ, "KUBECONFIG": str(kubeconfig)}
    return subprocess.run(command, env=environ, capture_output=True, text=True, timeout=SECONDS)


def test_a_signature_that_is_wrong_goes_no_further(scene: Scene, monkeypatch: pytest.MonkeyPatch):
    file = scene.kubeconfig("sigv4")
    file.write_text(file.read_text().replace(SECRET, "x" * len(SECRET)))
    monkeypatch.setenv("KUBECONFIG", str(file))
    with connect() as api:
        assert api.get("/api/v1/namespaces").status_code == 403
    assert scene.front is not None
    assert scene.front.refused == 1


@pytest.mark.parametrize("driver", found_drivers(), ids=lambda found: found.name)
def test_each_adapter_lists_and_watches_through_a_proxy(driver: Driver, scene: Scene, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("KUBECONFIG", str(scene.kubeconfig("headers")))
    with driver.session() as client:
        outcome = client.list_namespaces()
        assert outcome.error is None
        assert "kube-system" in outcome.names
        watch = client.watch_namespaces()
        poll(lambda: watch.next(20) == "kube-system", 30, "the watch shows what is there", interval=0)
