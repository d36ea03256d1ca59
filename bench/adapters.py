"""What an adapter adds to a request of its library: the same request, the same server, with and without it."""

from __future__ import annotations

import asyncio
import ssl
import time
from collections.abc import Awaitable, Callable, Iterator
from contextlib import AsyncExitStack, ExitStack
from pathlib import Path
from typing import Any

from bench.hot_path import scripted_source
from bench.measure import Row, interleaved, ratio_row, seconds_per_call
from bench.server import TOKEN, RunningServer, server_in_another_process
from kubeauthn._core.kubeconfig.model import Cluster
from kubeauthn.client.access import Access

PATH = "/version"
HEADERS = {"Authorization": f"Bearer {TOKEN}"}
GOAL = 1.03

SyncPair = tuple[Callable[[], object], Callable[[], object]]
AsyncPair = tuple[Callable[[], Awaitable[object]], Callable[[], Awaitable[object]]]


def rows(folder: Path, *, quick: bool) -> Iterator[Row]:
    # Readings of a request scatter by a tenth and more: a question of 3 % takes many pairs of neighbours.
    calls, rounds = (10, 40) if quick else (20, 600)
    with server_in_another_process() as server:
        access = _access(folder, server)
        for name, make in SYNC.items():
            with ExitStack() as stack:
                ours, bare = make(stack, server, access)
                readings = interleaved(seconds_per_call(ours, calls), seconds_per_call(bare, calls), rounds)
                yield _row(name, readings)
        for name, make_async in ASYNC.items():
            with asyncio.Runner() as runner:
                yield runner.run(_async_row(name, make_async, server, access, calls, rounds))


def _row(name: str, readings: tuple[list[float], list[float]]) -> Row:
    return ratio_row(f"a request: {name}", readings, peer_name=f"{name} on its own", goal=GOAL)


async def _async_row(
    name: str, make: Callable[..., Any], server: RunningServer, access: Access, calls: int, rounds: int
) -> Row:
    async def reading(call: Callable[[], Awaitable[object]]) -> float:
        started = time.perf_counter()
        for _ in range(calls):
            await call()
        return (time.perf_counter() - started) / calls

    async with AsyncExitStack() as stack:
        ours, bare = await make(stack, server, access)
        readings: tuple[list[float], list[float]] = ([], [])
        await reading(ours), await reading(bare)
        for number in range(rounds):
            for index, call in ((0, ours), (1, bare)) if number % 2 else ((1, bare), (0, ours)):
                readings[index].append(await reading(call))
    return _row(name, readings)


def _access(folder: Path, server: RunningServer) -> Access:
    source, plugin = scripted_source(folder, "adapter")
    plugin.reply(token=TOKEN, expires_in=3600)
    return Access(Cluster(server=server.url, certificate_authority_data=server.ca), source)


def _context(server: RunningServer) -> ssl.SSLContext:
    return ssl.create_default_context(cadata=server.ca.decode())


def _httpx_like(library: str) -> Callable[[ExitStack, RunningServer, Access], SyncPair]:
    def make(stack: ExitStack, server: RunningServer, access: Access) -> SyncPair:
        from importlib import import_module

        plain = import_module(library)
        ours = stack.enter_context(import_module(f"kubeauthn.client.{library}").client(access=access))
        bare = stack.enter_context(
            plain.Client(base_url=server.url, headers=HEADERS, verify=_context(server), trust_env=False)
        )
        return lambda: ours.get(PATH).raise_for_status(), lambda: bare.get(PATH).raise_for_status()

    return make


def _httpx_like_async(library: str) -> Callable[..., Any]:
    async def make(stack: AsyncExitStack, server: RunningServer, access: Access) -> AsyncPair:
        from importlib import import_module

        plain = import_module(library)
        ours = await stack.enter_async_context(import_module(f"kubeauthn.client.{library}").async_client(access=access))
        bare = await stack.enter_async_context(
            plain.AsyncClient(base_url=server.url, headers=HEADERS, verify=_context(server), trust_env=False)
        )

        async def call(client: Any) -> None:
            (await client.get(PATH)).raise_for_status()

        return lambda: call(ours), lambda: call(bare)

    return make


def _requests(stack: ExitStack, server: RunningServer, access: Access) -> SyncPair:
    import requests
    from requests.adapters import HTTPAdapter

    from kubeauthn.client.requests import session

    class WithContext(HTTPAdapter):
        def init_poolmanager(self, *args: Any, **kwargs: Any) -> None:
            super().init_poolmanager(*args, ssl_context=_context(server), **kwargs)

    ours = stack.enter_context(session(access=access))
    bare = stack.enter_context(requests.Session())
    bare.trust_env = False
    bare.headers.update(HEADERS)
    bare.mount("https://", WithContext())
    url = server.url + PATH
    return lambda: ours.get(url).raise_for_status(), lambda: bare.get(url).raise_for_status()


def _kubernetes(stack: ExitStack, server: RunningServer, access: Access) -> SyncPair:
    from kubernetes import client

    from kubeauthn.client.kubernetes import api_client

    configuration = client.Configuration()
    configuration.host = server.url
    configuration.api_key = {"authorization": HEADERS["Authorization"]}
    bare_client = stack.enter_context(client.ApiClient(configuration))
    import urllib3

    bare_client.rest_client.pool_manager = urllib3.PoolManager(ssl_context=_context(server))
    ours, bare = client.VersionApi(stack.enter_context(api_client(access=access))), client.VersionApi(bare_client)
    return ours.get_code, bare.get_code


async def _aiohttp(stack: AsyncExitStack, server: RunningServer, access: Access) -> AsyncPair:
    import aiohttp

    from kubeauthn.client.aiohttp import session

    ours = await stack.enter_async_context(session(access=access))
    bare = await stack.enter_async_context(
        aiohttp.ClientSession(
            base_url=server.url, headers=HEADERS, connector=aiohttp.TCPConnector(ssl=_context(server))
        )
    )

    async def call(client: Any) -> None:
        async with client.get(PATH) as response:
            await response.read()

    return lambda: call(ours), lambda: call(bare)


SYNC: dict[str, Callable[[ExitStack, RunningServer, Access], SyncPair]] = {
    "httpx2": _httpx_like("httpx2"),
    "httpx": _httpx_like("httpx"),
    "requests": _requests,
    "kubernetes": _kubernetes,
}
ASYNC: dict[str, Callable[..., Any]] = {
    "httpx2, async": _httpx_like_async("httpx2"),
    "httpx, async": _httpx_like_async("httpx"),
    "aiohttp": _aiohttp,
}
