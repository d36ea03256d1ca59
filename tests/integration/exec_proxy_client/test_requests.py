"""The client side of the exec proxy: what goes through it."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest

from kubeauthn.client import connect, connect_async, metrics
from kubeauthn.testing import ApiServer, ProxyPlugin
from kubeauthn.testing._waiting import wait_for
from tests.integration.exec_proxy_client.clients import (
    PATH,
    users,
)


def test_a_large_body_and_a_post_that_streams(server: ApiServer, proxy: ProxyPlugin):
    document = {"metadata": {"name": "large"}, "data": {"text": "x" * 3_000_000}}
    body = json.dumps(document).encode()

    def chunks() -> Iterator[bytes]:
        for start in range(0, len(body), 100_000):
            yield body[start : start + 100_000]

    with connect() as api:
        assert api.get(PATH).status_code == 200
        proxy.kill()
        wait_for(lambda: not proxy.alive, 5)
        path = "/api/v1/namespaces/default/configmaps"
        response = api.post(path, content=chunks(), headers={"Content-Type": "application/json"})
        assert response.status_code == 201
        assert len(api.get(path).content) > 3_000_000


def test_async_callers_share_one_run(server: ApiServer, proxy: ProxyPlugin):
    import asyncio

    async def many() -> list[int]:
        async with connect_async() as api:
            return [each.status_code for each in await asyncio.gather(*(api.get(PATH) for _ in range(20)))]

    assert asyncio.run(many()) == [200] * 20
    assert proxy.runs == 1


def test_runs_are_counted(server: ApiServer, proxy: ProxyPlugin):
    calls: list[tuple[str, int, str]] = []

    class Listener(metrics.Unheard):
        def plugin_called(self, code: int, status: str) -> None:
            calls.append(("plugin", code, status))

        def proxy_plugin_called(self, code: int, status: str) -> None:
            calls.append(("proxy", code, status))

    before = metrics.listener()
    metrics.install(Listener())
    try:
        with connect() as api:
            assert api.get(PATH).status_code == 200
    finally:
        metrics.install(before)
    assert calls == [("plugin", 0, "no_error"), ("proxy", 0, "no_error")]


def test_exec_and_port_forward_of_the_official_client(server: ApiServer, proxy: ProxyPlugin):
    pytest.importorskip("kubernetes")
    from kubernetes import client
    from kubernetes.stream import portforward, stream

    from kubeauthn.client.kubernetes import api_client

    server.add_pod("web")
    core = client.CoreV1Api(api_client())
    command = ["echo", "through", "the", "proxy"]
    answer = stream(
        core.connect_get_namespaced_pod_exec, "web", "default", command=command, stdout=True, stderr=True, stdin=False
    )
    assert answer == "through the proxy\n"
    forwarded = portforward(core.connect_get_namespaced_pod_portforward, "web", "default", ports="8080")
    connection = forwarded.socket(8080)
    connection.setblocking(True)
    connection.settimeout(20)
    connection.sendall(b"round trip")
    assert connection.recv(100) == b"round trip"
    connection.close()
    assert set(users(server)) == {"jane"}


def test_exec_of_kubernetes_asyncio(server: ApiServer, proxy: ProxyPlugin):
    pytest.importorskip("kubernetes_asyncio")
    import asyncio

    from kubernetes_asyncio import client
    from kubernetes_asyncio.stream import WsApiClient

    from kubeauthn.client.access import open_access
    from kubeauthn.client.kubernetes_asyncio import configure

    server.add_pod("web")

    async def run() -> str:
        configuration = client.Configuration()
        configure(configuration, open_access())
        async with WsApiClient(configuration) as api:
            core = client.CoreV1Api(api)
            answer: str = await core.connect_get_namespaced_pod_exec(
                "web", "default", command=["echo", "through"], stdout=True, stderr=True, stdin=False
            )
            return answer

    assert asyncio.run(run()) == "through\n"
    assert set(users(server)) == {"jane"}


def test_exec_of_kr8s(server: ApiServer, proxy: ProxyPlugin):
    pytest.importorskip("kr8s")
    import kr8s.objects

    from kubeauthn.client.kr8s import api as api_of

    server.add_pod("web")
    pod = kr8s.objects.Pod.get("web", "default", api=api_of())
    assert pod.exec(["echo", "through"]).stdout == b"through\n"
    assert set(users(server)) == {"jane"}


def test_exec_of_aiohttp(server: ApiServer, proxy: ProxyPlugin):
    pytest.importorskip("aiohttp")
    import asyncio

    from kubeauthn.client import aiohttp as adapter

    server.add_pod("web")
    path = "/api/v1/namespaces/default/pods/web/exec?command=echo&command=through&stdout=true"

    async def run() -> list[bytes]:
        async with adapter.session() as session, session.ws_connect(path, protocols=["v4.channel.k8s.io"]) as socket:
            return [message.data async for message in socket]

    assert b"\x01through\n" in asyncio.run(run())
    assert set(users(server)) == {"jane"}
