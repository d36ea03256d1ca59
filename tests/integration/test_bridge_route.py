"""Where a bridge's requests go: the server's own path, and a proxy plugin's socket."""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from kubeauthn._core import http1
from kubeauthn._core.credential import Credential
from kubeauthn._io.carrier.plan import Plan
from kubeauthn._secret import Secret
from kubeauthn.client.access import open_access
from kubeauthn.plugins.bridge.route import LOOK_SECONDS, AccessRoute
from kubeauthn.testing import ApiServer, ProxyPlugin
from tests.integration.signer_scene import SignerProgram, issue
from tests.integration.test_bridge_kubectl import Home
from tests.integration.test_tls_signer_by_exec import naming

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
        ("/k8s/zürich", b"/api", b"/k8s/z%C3%BCrich/api"),
        ("/k8s/z%C3%BCrich", b"/api", b"/k8s/z%C3%BCrich/api"),
    ],
)
def test_the_servers_path_is_put_in_front_of_every_request(tmp_path: Path, path: str, target: bytes, expected: bytes):
    file = tmp_path / "config"
    file.write_text(KUBECONFIG.format(path=path))
    assert planned(file, Asked(b"OPTIONS" if target == b"*" else b"GET", target)).target == expected


@pytest.mark.parametrize("port", ["", ":6443"])
@pytest.mark.parametrize("host", ["zürich.example", "api.zürich"])
def test_a_server_whose_name_is_not_ascii_is_named_as_dns_has_it(tmp_path: Path, host: str, port: str):
    file = tmp_path / "config"
    file.write_text(KUBECONFIG.format(path="").replace("127.0.0.1:1", host + port))
    plan = planned(file, Asked(b"GET", b"/api"))
    assert dict(plan.added)[b"Host"].decode() == host.replace("zürich", "xn--zrich-kva") + port
    assert plan.pool.address.host == host  # which the resolver takes


def planned(file: Path, asked: Asked) -> Plan:
    async def plan() -> Plan:
        return await plan_of(AccessRoute(lambda: open_access(kubeconfig=str(file)), [str(file)]), asked)

    return asyncio.run(plan())


async def plan_of(route: AccessRoute, asked: Asked) -> Plan:
    made = route.plan(asked)
    return made if isinstance(made, Plan) else await made


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


SLOW = """#!/bin/sh
: > {folder}/started
while [ ! -e {folder}/go ]; do sleep 0.05; done
printf '{{"apiVersion": "client.authentication.k8s.io/v1", "kind": "ExecCredential", "status": {{"token": "slow"}}}}'
"""


def test_what_a_plugin_gives_after_the_kubeconfig_changed_is_not_for_the_new_server(tmp_path: Path):
    file, plugin = tmp_path / "config", tmp_path / "plugin"
    plugin.write_text(SLOW.format(folder=tmp_path))
    plugin.chmod(0o755)
    entry = f"exec: {{apiVersion: client.authentication.k8s.io/v1, command: {plugin}, interactiveMode: Never}}"
    file.write_text(KUBECONFIG.format(path="").replace("token: t", entry))

    async def scene() -> tuple[Plan, Plan]:
        route = AccessRoute(lambda: open_access(kubeconfig=str(file)), [str(file)])
        early = asyncio.ensure_future(plan_of(route, Asked(b"GET", b"/early")))
        await eventually_async((tmp_path / "started").exists)
        file.write_text(KUBECONFIG.format(path="").replace("127.0.0.1:1", "127.0.0.1:2"))
        await asyncio.sleep(LOOK_SECONDS)
        late = await plan_of(route, Asked(b"GET", b"/late"))
        (tmp_path / "go").touch()
        return await early, late

    for plan in asyncio.run(scene()):
        assert (plan.pool.address.port, dict(plan.added)[b"Authorization"]) == (2, b"Bearer t")


TOLD = """apiVersion: v1
kind: Config
current-context: c
clusters: [{{name: c, cluster: {{server: "https://127.0.0.1:{port}"}}}}]
contexts: [{{name: c, context: {{cluster: c, user: u}}}}]
users:
- name: u
  user:
    exec:
      apiVersion: client.authentication.k8s.io/v1beta1
      command: {plugin}
      env:
      - name: PROFILE
        value: jane
"""
SAYS_WHO = """#!/bin/sh
printf '{"apiVersion": "client.authentication.k8s.io/v1beta1", "kind": "ExecCredential", '
printf '"status": {"token": "%s"}}' "${PROFILE:-somebody-else}"
"""


@pytest.mark.parametrize("until", ["      env:", "    exec:", ""], ids=["who", "how", "gone"])
def test_a_kubeconfig_that_is_just_being_written_is_not_read_before_its_end(tmp_path: Path, until: str):
    """What is there of it may be a whole one too, and lead to another identity or to none."""
    file, other, plugin = tmp_path / "config", tmp_path / "other", tmp_path / "plugin"
    plugin.write_text(SAYS_WHO)
    plugin.chmod(0o755)
    other.write_text(KUBECONFIG.format(path=""))
    file.write_text(TOLD.format(port=1, plugin=plugin))

    async def scene() -> list[Plan]:
        files = f"{file}{os.pathsep}{other}"
        with pytest.MonkeyPatch.context() as patched:
            patched.setenv("KUBECONFIG", files)
            route = AccessRoute(open_access, files.split(os.pathsep))
            await asyncio.sleep(LOOK_SECONDS)
            whole = TOLD.format(port=2, plugin=plugin)
            if until:
                file.write_text(whole.partition(until)[0])
            else:
                file.unlink()
            early = asyncio.ensure_future(plan_of(route, Asked(b"GET", b"/")))
            await asyncio.sleep(0.1)
            file.write_text(whole)
            return [await early, await plan_of(route, Asked(b"GET", b"/"))]

    for plan in asyncio.run(scene()):
        assert (plan.pool.address.port, dict(plan.added).get(b"Authorization")) == (2, b"Bearer jane")


async def eventually_async(condition: Callable[[], object]) -> None:
    async with asyncio.timeout(30):
        while not condition():
            await asyncio.sleep(0.02)


def test_the_certificate_files_that_the_kubeconfig_names_are_followed(server: ApiServer, tmp_path: Path):
    """They are replaced one after the other, and between the two they do not belong together."""
    file, certificate, key = tmp_path / "config", tmp_path / "cert", tmp_path / "key"
    old, new = server.ca.issue_client("jane"), server.ca.issue_client("jane")
    certificate.write_bytes(old.certificate_pem)
    key.write_bytes(old.key_pem)
    entry = f"client-certificate: {certificate.name}, client-key: {key.name}"
    file.write_text(KUBECONFIG.format(path="").replace("token: t", entry))

    async def scene() -> list[bytes]:
        route = AccessRoute(lambda: open_access(kubeconfig=str(file)), [str(file)])
        shown = []

        async def look() -> None:
            await asyncio.sleep(LOOK_SECONDS)
            plan = await plan_of(route, Asked(b"GET", b"/"))
            shown.append(plan.mark.identity.certificate)

        await look()
        certificate.write_bytes(new.certificate_pem)
        await look()
        key.write_bytes(new.key_pem)
        await look()
        return shown

    assert asyncio.run(scene()) == [old.certificate_pem, old.certificate_pem, new.certificate_pem]


def test_a_kubeconfig_that_changed_for_others_keeps_what_a_person_was_asked_for(tmp_path: Path):
    file = tmp_path / "config"
    file.write_text(KUBECONFIG.format(path=""))

    async def scene() -> list[bytes]:
        route = AccessRoute(lambda: open_access("c", kubeconfig=str(file)), [str(file)])
        route.offer(Credential(token=Secret("asked")))
        sent = []
        for change in ("current-context: d", "current-context: c\n# more"), ("token: t", "token: other"):
            file.write_text(file.read_text().replace("current-context: c", change[0]).replace(*change))
            await asyncio.sleep(LOOK_SECONDS)
            plan = await plan_of(route, Asked(b"GET", b"/"))
            sent.append(dict(plan.added)[b"Authorization"])
        return sent

    assert asyncio.run(scene()) == [b"Bearer asked", b"Bearer other"]


def test_what_a_person_was_asked_for_after_the_kubeconfig_changed_is_used(tmp_path: Path):
    """The command that asks reads the kubeconfig anew. The bridge may not have looked since."""
    file = tmp_path / "config"
    file.write_text(KUBECONFIG.format(path=""))

    async def scene() -> Plan:
        route = AccessRoute(lambda: open_access(kubeconfig=str(file)), [str(file)])
        file.write_text(file.read_text().replace("token: t", "token: other"))
        await asyncio.sleep(LOOK_SECONDS)
        route.offer(Credential(token=Secret("asked")))
        return await plan_of(route, Asked(b"GET", b"/"))

    assert dict(asyncio.run(scene()).added)[b"Authorization"] == b"Bearer asked"


@pytest.mark.parametrize("named_by", ["kubeconfig", "exec plugin"])
def test_after_a_tls_alert_the_next_request_has_the_new_certificate(server: ApiServer, tmp_path: Path, named_by: str):
    signer = SignerProgram(tmp_path / "token", server.ca)
    user = signer.user() if named_by == "kubeconfig" else naming(tmp_path, signer).user()
    file = server.write_kubeconfig(tmp_path / "config", user)

    async def scene() -> list[object]:
        route = AccessRoute(lambda: open_access(kubeconfig=str(file)), [str(file)])
        first = await plan_of(route, Asked(b"GET", b"/"))
        signer.show(issue(server.ca, signer.key))
        first.mark.identity.refused()  # what a connection calls that meets the alert
        return [first.mark.identity, (await plan_of(route, Asked(b"GET", b"/"))).mark.identity]

    old, new = asyncio.run(scene())
    assert old != new
    assert signer.count("CertificateRequest") == 2
