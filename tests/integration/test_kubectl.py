"""Side by side with kubectl: our command as its plugin, our SDK's plugins under it, and both clients on one reply."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from kubeauthn.testing import ApiServer, PluginDirectory, ScriptedPlugin

pytestmark = pytest.mark.needs("kubectl")

V1 = "client.authentication.k8s.io/v1"
OURS = str(Path(sys.executable).parent)
"""Where the installed commands are."""


@pytest.fixture
def server() -> Iterator[ApiServer]:
    with ApiServer(tokens={"good": "jane"}) as running:
        yield running


def run(*command: str, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        command,
        env={**os.environ, "PATH": os.pathsep.join((OURS, os.environ["PATH"])), **environment},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=50,
    )


def test_kubectl_finds_our_command(server: ApiServer, tmp_path: Path):
    config = str(server.write_kubeconfig(tmp_path / "config", {"token": "good"}))
    whoami = run("kubectl", "authn", "whoami", KUBECONFIG=config)
    assert whoami.returncode == 0, whoami.stderr
    assert "jane" in whoami.stdout
    assert [request.user for request in server.requests] == ["jane"]
    wrong = run("kubectl", "authn", "no-such-command", KUBECONFIG=config)
    assert wrong.returncode == 2
    assert "hint: kubectl authn --help lists them" in wrong.stderr


def test_a_plugin_of_the_sdk_serves_kubectl(tmp_path: Path):
    """It sees the cluster, may ask it for something on the way, and prints what it likes."""
    plugin = PluginDirectory(tmp_path / "plugins").python(
        "sdk-plugin",
        "from kubeauthn.plugin import credential\n"
        "def function(request):\n"
        "    print('noise')\n"
        "    with request.connect() as api:\n"
        "        major = api.get('/version').json()['major']\n"
        "    tokens = {('prod', '1'): 'good'}\n"
        "    return credential.Token(tokens[request.cluster_config['audience'], major], expires_in=600)\n"
        "credential.run(function)\n",
    )
    entry = {"apiVersion": V1, "command": str(plugin), "interactiveMode": "Never", "provideClusterInfo": True}
    extension = {"name": "client.authentication.k8s.io/exec", "extension": {"audience": "prod"}}
    with ApiServer(tokens={"good": "jane"}, allow_anonymous=True) as server:
        config = server.write_kubeconfig(tmp_path / "config", {"exec": entry}, cluster={"extensions": [extension]})
        listed = run("kubectl", "get", "--raw", "/api/v1/namespaces", KUBECONFIG=str(config))
        assert listed.returncode == 0, listed.stderr
        assert "noise" in listed.stderr
        seen = [(request.path, request.token) for request in server.requests]
    assert ("/version", None) in seen
    assert ("/api/v1/namespaces", "good") in seen


def document(**fields: object) -> str:
    return json.dumps({"apiVersion": V1, "kind": "ExecCredential", "status": {"token": "good"}, **fields})


TAKEN = {
    "a token": document(),
    "unknown fields": document(spec={"x": 1}, later=True),
    "no kind": document(kind=None),
    "white space around it": f"\n\n {document()} \n",
    "a byte order mark before it": f"\ufeff{document()}",
    "a key given twice": document().replace('{"token"', '{"token": "bad", "token"'),
    "YAML": f"apiVersion: {V1}\nkind: ExecCredential\nstatus:\n  token: good\n",
    "YAML with a time": (
        f"---\napiVersion: {V1}\nkind: ExecCredential\n"
        "status: {token: good, expirationTimestamp: 2199-01-01T00:00:00Z}\n"
    ),
    "no expiry": document(status={"token": "good", "expirationTimestamp": None}),
}

REFUSED = {
    "nothing": "",
    "text": "please log in",
    "text after it": f"{document()}\nbye\n",
    "half of it": document()[:-4],
    "a line break in a string": document().replace("good", "go\nod"),
    "another kind": document(kind="TokenReview"),
    "another version": document(apiVersion=f"{V1}beta1"),
    "no version": document(apiVersion=None),
    "no status": document(status=None),
    "an empty status": document(status={}),
    "a field in another case": document(status={"Token": "good"}),
    "a token that is a number": document(status={"token": 1}),
    "a certificate without key": document(status={"clientCertificateData": "x"}),
    "a pair that is none": document(status={"clientCertificateData": "x", "clientKeyData": "y"}),
    "an empty expiry": document(status={"token": "good", "expirationTimestamp": ""}),
    "an expiry without a zone": document(status={"token": "good", "expirationTimestamp": "2199-01-01T00:00:00"}),
}

SAME_TEXT = {"another version", "no status", "an empty status", "a field in another case", "a certificate without key"}
"""Where Kubernetes' text is its own, and not its parser's."""


def both(config: Path) -> tuple[subprocess.CompletedProcess[str], subprocess.CompletedProcess[str]]:
    theirs = run("kubectl", "get", "--raw", "/api", KUBECONFIG=str(config))
    ours = run("kubeauthn", "raw", "/api", KUBECONFIG=str(config))
    return theirs, ours


@pytest.mark.parametrize("name", TAKEN)
def test_a_reply_that_kubectl_takes_we_take(name: str, server: ApiServer, tmp_path: Path):
    plugin = ScriptedPlugin(tmp_path / "plugin")
    plugin.raw(TAKEN[name])
    theirs, ours = both(server.write_kubeconfig(tmp_path / "config", plugin.user()))
    assert (theirs.returncode, ours.returncode) == (0, 0), theirs.stderr + ours.stderr
    assert {request.token for request in server.requests} == {"good"}


@pytest.mark.parametrize("name", REFUSED)
def test_a_reply_that_kubectl_refuses_we_refuse(name: str, server: ApiServer, tmp_path: Path):
    plugin = ScriptedPlugin(tmp_path / "plugin")
    plugin.raw(REFUSED[name])
    theirs, ours = both(server.write_kubeconfig(tmp_path / "config", plugin.user()))
    assert theirs.returncode != 0
    assert ours.returncode == 4, ours.stdout
    assert server.requests == []
    if name in SAME_TEXT:
        their_text = theirs.stderr.partition("getting credentials: ")[2]
        assert ours.stderr.removeprefix("error: ") == their_text


def test_a_failing_plugin_and_a_missing_one_are_told_in_the_same_words(server: ApiServer, tmp_path: Path):
    plugin = ScriptedPlugin(tmp_path / "plugin")
    plugin.fail(3)
    theirs, ours = both(server.write_kubeconfig(tmp_path / "config", plugin.user()))
    assert f"exec: executable {plugin.path} failed with exit code 3" in theirs.stderr
    assert f"exec: executable {plugin.path} failed with exit code 3" in ours.stderr
    theirs, ours = both(
        server.write_kubeconfig(tmp_path / "config", plugin.user(command="no-such-plugin", installHint="get\tit"))
    )
    for said in (theirs.stderr, ours.stderr):
        assert "exec: executable no-such-plugin not found" in said
    assert "get\tit" in theirs.stderr
    theirs, ours = both(server.write_kubeconfig(tmp_path / "config", plugin.user(interactiveMode="Always")))
    for said in (theirs.stderr, ours.stderr):
        assert "exec plugin cannot support interactive mode: standard input is not a terminal" in said
    assert server.requests == []
