"""What the two generated async clients ask for beyond the common suite: `kubernetes.aio` and kubernetes_asyncio."""

from __future__ import annotations

import asyncio
import ssl
import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import kubernetes.aio.client
import kubernetes.aio.stream
import kubernetes.aio.watch
import kubernetes_asyncio.client
import kubernetes_asyncio.stream
import kubernetes_asyncio.watch
import pytest
from aiohttp import web

from kubeauthn.client import kubernetes_aio, open_access
from kubeauthn.client import kubernetes_asyncio as kubernetes_asyncio_adapter
from kubeauthn.errors import CredentialError, UsageError
from kubeauthn.testing import CertificateAuthority
from tests.integration.adapters.lab import Lab


@dataclass(frozen=True)
class Case:
    library: Any
    adapter: Any


CASES = [Case(kubernetes.aio, kubernetes_aio), Case(kubernetes_asyncio, kubernetes_asyncio_adapter)]


@pytest.fixture(params=CASES, ids=lambda case: case.library.__name__)
def case(request: pytest.FixtureRequest) -> Iterator[Case]:
    found: Case = request.param
    yield found
    found.library.client.Configuration.set_default(None)


@pytest.fixture
def ready(lab: Lab) -> Lab:
    lab.server.accept_token("one", user="jane")
    lab.plugin.reply(token="one")
    lab.use()
    return lab


async def names(case: Case, api: Any) -> list[str]:
    listing = await case.library.client.CoreV1Api(api).list_namespace()
    return [item.metadata.name for item in listing.items]


def test_existing_code_works_after_one_line(case: Case, ready: Lab):
    async def main() -> list[str]:
        await case.adapter.load_kube_config()
        core = case.library.client.CoreV1Api()
        try:
            listing = await core.list_namespace()
        finally:
            await core.api_client.close()
        return [item.metadata.name for item in listing.items]

    assert "default" in asyncio.run(main())
    assert [each.user for each in ready.listings()] == ["jane"]


def test_what_a_configuration_held_for_another_cluster_is_not_sent(case: Case, ready: Lab):
    """The library's own function leaves a token in it; the next one to load must not show it to its server."""
    configuration = case.library.client.Configuration()
    configuration.api_key = {"BearerToken": "Bearer of-another-cluster"}
    configuration.username, configuration.password = "other", "of-another-cluster"

    async def main() -> None:
        await case.adapter.load_kube_config(client_configuration=configuration)
        async with case.library.client.ApiClient(configuration) as api:
            await names(case, api)

    asyncio.run(main())
    assert ready.tokens() == ["one"]


def test_one_configuration_serves_many_clients_in_many_loops(case: Case, ready: Lab):
    """No connector is shared: each client has its own, and closing one does not hurt the others."""

    async def load() -> None:
        await case.adapter.load_kube_config()

    async def two_clients() -> None:
        async with case.library.client.ApiClient() as stays:
            async with case.library.client.ApiClient() as goes:
                assert await names(case, goes)
            assert await names(case, stays)

    asyncio.run(load())
    asyncio.run(two_clients())
    asyncio.run(two_clients())
    assert ready.plugin.runs == 1
    assert {each.user for each in ready.listings()} == {"jane"}


def test_a_configuration_of_ones_own_is_set_and_the_default_left_alone(case: Case, ready: Lab):
    async def main() -> None:
        mine = case.library.client.Configuration()
        await case.adapter.load_kube_config(client_configuration=mine, config_file=str(ready.folder / "config"))
        async with case.library.client.ApiClient(mine) as api:
            assert await names(case, api)

    asyncio.run(main())
    assert case.library.client.Configuration.get_default_copy().host != ready.server.url


def test_the_path_of_the_file_may_begin_with_the_home_and_an_open_file_is_refused(
    case: Case, ready: Lab, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setenv("HOME", str(ready.folder))

    async def main() -> str:
        mine = case.library.client.Configuration()
        await case.adapter.load_kube_config(client_configuration=mine, config_file="~/config")
        with (ready.folder / "config").open() as file, pytest.raises(UsageError, match="an open file is not taken"):
            await case.adapter.load_kube_config(client_configuration=mine, config_file=file)
        return mine.host

    assert asyncio.run(main()) == ready.server.url


def test_a_file_of_ones_own(case: Case, ready: Lab, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("KUBECONFIG", "/nonexistent")

    async def main() -> list[str]:
        async with case.adapter.api_client(kubeconfig=str(ready.folder / "config")) as api:
            return await names(case, api)

    assert asyncio.run(main())


@pytest.mark.usefixtures("ready")
def test_an_option_that_nobody_knows(case: Case):
    with pytest.raises(UsageError, match="no option 'contxt'"):
        asyncio.run(case.adapter.load_kube_config(contxt="prod"))


def test_a_socks_proxy_is_refused_at_once(case: Case, ready: Lab):
    ready.use(cluster={"proxy-url": "socks5://127.0.0.1:1"})
    with pytest.raises(UsageError, match="not socks5"):
        asyncio.run(case.adapter.load_kube_config())


def test_configurations_that_are_not_ours_are_left_as_they_were(case: Case, ready: Lab):
    async def main() -> int:
        await case.adapter.load_kube_config()
        plain = case.library.client.Configuration()
        plain.host = ready.server.url
        plain.ssl_ca_cert = str(ready.folder / "ca.pem")
        async with case.library.client.ApiClient(plain) as api:
            with pytest.raises(case.library.client.ApiException) as caught:
                await names(case, api)
            status: int = caught.value.status
            return status

    (ready.folder / "ca.pem").write_bytes(ready.ca.certificate_pem)
    assert asyncio.run(main()) == 401
    assert ready.plugin.runs == 0


def test_an_explicit_token_wins(case: Case, ready: Lab):
    ready.server.accept_token("mine", user="me")

    async def main() -> None:
        async with case.adapter.api_client(api_key={"BearerToken": "Bearer mine"}) as api:
            assert await names(case, api)

    asyncio.run(main())
    assert [each.user for each in ready.listings()] == ["me"]
    assert ready.plugin.runs == 0


def test_the_retries_of_kubernetes_aio_still_work(ready: Lab):
    case = CASES[0]

    async def main() -> list[str]:
        async with case.adapter.api_client(retries=3) as api:
            ready.server.fail(503, times=1)
            return await names(case, api)

    assert asyncio.run(main())
    assert ready.tokens() == ["one", "one"]


# -- websockets --------------------------------------------------------------------------------------------------------


class Kubelet:
    """Takes websockets at the path of `exec`, and answers with the caller's token and certificate."""

    def __init__(self, ca: CertificateAuthority) -> None:
        self.tokens: set[str] = set()
        self.asked: list[str | None] = []
        self._context = ca.server_context()
        self._context.verify_mode = ssl.CERT_OPTIONAL
        self._context.load_verify_locations(cadata=ca.certificate_pem.decode())
        app = web.Application()
        app.router.add_get("/api/v1/namespaces/default/pods/a/exec", self._exec)
        self._runner = web.AppRunner(app)
        self.url = ""

    async def __aenter__(self) -> Kubelet:
        await self._runner.setup()
        await web.TCPSite(self._runner, "127.0.0.1", 0, ssl_context=self._context).start()
        self.url = f"https://127.0.0.1:{self._runner.addresses[0][1]}"
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._runner.cleanup()

    async def _exec(self, request: web.Request) -> web.StreamResponse:
        token = request.headers.get("Authorization", "").removeprefix("Bearer ")
        self.asked.append(token)
        if token not in self.tokens:
            return web.Response(status=401)
        certificate = request.get_extra_info("peercert") or {}
        subject = dict(pair for (pair,) in certificate.get("subject", ()))
        socket = web.WebSocketResponse(protocols=["v4.channel.k8s.io"])
        await socket.prepare(request)
        await socket.send_bytes(b"\x01" + f"{token} of {subject.get('commonName')}".encode())
        await socket.close()
        return socket


@pytest.mark.parametrize("by_default", [False, True], ids=["api_client", "load_kube_config"])
def test_exec_over_a_websocket(case: Case, lab: Lab, by_default: bool):
    async def run_command(configuration: Any) -> str:
        async with case.library.stream.WsApiClient(configuration) as api:
            core = case.library.client.CoreV1Api(api)
            output: str = await core.connect_get_namespaced_pod_exec("a", "default", command=["id"], stdout=True)
            return output

    async def main() -> tuple[list[str], list[str | None]]:
        async with Kubelet(lab.ca) as kubelet:
            kubelet.tokens = {"one"}
            lab.plugin.reply(token="one", certificate=lab.ca.issue_client("al"))
            lab.use(cluster={"server": kubelet.url})
            if by_default:
                await case.adapter.load_kube_config()
                configuration = None
            else:
                async with case.adapter.api_client() as api:
                    configuration = api.configuration
            outputs = [await run_command(configuration)]
            kubelet.tokens = {"two"}
            lab.plugin.reply(token="two", certificate=lab.ca.issue_client("bo"))
            outputs.append(await run_command(configuration))
            return outputs, kubelet.asked

    outputs, asked = asyncio.run(main())
    assert outputs == ["one of al", "two of bo"]
    assert asked == ["one", "one", "two"]


# -- a watch loop, as controllers have one -----------------------------------------------------------------------------


def test_a_watch_loop_recovers_from_a_plugin_that_fails_for_a_while(case: Case, ready: Lab):
    """The loop asks ten times a second; the plugin runs after 0, 1 and 3 s."""
    server, plugin = ready.server, ready.plugin
    seen: list[str] = []

    async def controller(api: Any) -> None:
        core = case.library.client.CoreV1Api(api)
        while True:
            try:
                async with case.library.watch.Watch() as watch:
                    async for event in watch.stream(core.list_namespace, timeout_seconds=60):
                        seen.append(event["object"].metadata.name)
            except (CredentialError, case.library.client.ApiException):
                await asyncio.sleep(0.1)

    async def main() -> int:
        async with case.adapter.api_client(access=open_access()) as api:
            task = asyncio.create_task(controller(api))
            try:
                await server.wait_for_async(lambda: "default" in seen)
                plugin.fail(1)
                before = plugin.runs
                server.accept_only("two", user="jane")
                server.close_watches()
                await server.wait_for_async(lambda: plugin.runs > before)
                deadline = time.monotonic() + 3
                await server.wait_for_async(lambda: time.monotonic() > deadline, 8)
                plugin.reply(token="two")
                await server.wait_for_async(lambda: server.open_watches, 10)
                server.emit("namespaces", "recovered")
                await server.wait_for_async(lambda: "recovered" in seen)
                return plugin.runs - before
            finally:
                task.cancel()
                await asyncio.gather(task, return_exceptions=True)

    assert 2 <= asyncio.run(main()) <= 4
