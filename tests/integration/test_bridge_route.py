"""Where a bridge's requests go: the server's own path, and a proxy plugin's socket."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from kubeauthn._core import http1
from kubeauthn._io.carrier.plan import Plan
from kubeauthn.client.access import open_access
from kubeauthn.plugins.bridge.route import AccessRoute
from kubeauthn.testing import ApiServer, ProxyPlugin
from tests.integration.test_bridge_kubectl import Home

KUBECONFIG = """
apiVersion: v1
kind: Config
current-context: c
clusters: [{{name: c, cluster: {{server: "https://127.0.0.1:1{path}"}}}}]
contexts: [{{name: c, context: {{cluster: c, user: c}}}}]
users: [{{name: c, user: {{token: t}}}}]
"""


class Asked:
    def __init__(self, method: bytes, target: bytes) -> None:
        self.head = http1.parse_request(method + b" " + target + b" HTTP/1.1\r\nHost: a")

    async def body(self, limit: int) -> bytes:
        return b""


@pytest.mark.parametrize(
    ("path", "target", "expected"),
    [
        ("", b"/api/v1/pods", b"/api/v1/pods"),
        ("/k8s/clusters/one/", b"/api/v1/pods?watch=1", b"/k8s/clusters/one/api/v1/pods?watch=1"),
        # The bridge's own kubeconfig has no path: what looks like the server's is part of the request.
        ("/api", b"/api/v1/pods", b"/api/api/v1/pods"),
        ("/k8s", b"/k8s?x", b"/k8s/k8s?x"),
        ("/k8s", b"*", b"*"),
    ],
)
def test_the_servers_path_is_put_in_front_of_every_request(tmp_path: Path, path: str, target: bytes, expected: bytes):
    file = tmp_path / "config"
    file.write_text(KUBECONFIG.format(path=path))
    assert planned(file, Asked(b"OPTIONS" if target == b"*" else b"GET", target)).target == expected


def planned(file: Path, asked: Asked) -> Plan:
    async def plan() -> Plan:
        route = AccessRoute(lambda: open_access(kubeconfig=str(file)), [str(file)])
        made = route.plan(asked)
        return made if isinstance(made, Plan) else await made

    return asyncio.run(plan())


def test_whom_one_acts_for_is_named_in_utf_8(tmp_path: Path):
    """In Latin-1, as Python's own client writes, it would be another user."""
    file = tmp_path / "config"
    file.write_text(KUBECONFIG.format(path="").replace("token: t", "token: t, as: jürgen, as-groups: [日本]"))
    sent = planned(file, Asked(b"GET", b"/api")).added
    assert (b"Impersonate-User", "jürgen".encode()) in sent
    assert (b"Impersonate-Group", "日本".encode()) in sent


ASK = """
from kubeauthn.client import connect
answer = connect().get("/api/v1/namespaces")
print(answer.status_code, answer.text if answer.status_code >= 500 else "")
"""


@pytest.fixture
def server() -> Iterator[ApiServer]:
    with ApiServer() as started:
        yield started


@pytest.fixture
def home(server: ApiServer, tmp_path: Path) -> Iterator[Home]:
    made = Home(tmp_path, server)
    yield made
    made.kubeauthn("bridge", "stop", "--all")


def asked_through(home: Home, plugin: ProxyPlugin) -> str:
    home.user(plugin.user())
    return home.kubeauthn("bridge", "run", "--idle", "60", "--", sys.executable, "-c", ASK).stdout


def test_a_proxy_plugin_whose_socket_has_a_long_path(server: ApiServer, home: Home, tmp_path: Path):
    plugin = ProxyPlugin(tmp_path / "proxy", upstream=server.ca.issue_client("jane"), long=True)
    assert asked_through(home, plugin) == "200 \n"
    assert len(plugin.url) > 120


def test_a_proxy_plugin_whose_directory_others_can_write(server: ApiServer, home: Home, tmp_path: Path):
    plugin = ProxyPlugin(tmp_path / "proxy", upstream=server.ca.issue_client("jane"), mode=0o770)
    said = asked_through(home, plugin)
    assert said.startswith("50")
    assert "can be written by other users (mode 0770)" in said
    assert plugin.runs == 1  # another run would not mend it
    assert server.requests == []
