"""What an adapter adds to a request of its library: the same request, the same server, with and without it."""

from __future__ import annotations

import asyncio
import random
import ssl
import time
from collections.abc import Awaitable, Callable, Iterator
from contextlib import AsyncExitStack, ExitStack
from pathlib import Path
from typing import Any

from bench.hot_path import scripted_source
from bench.measure import Pairs, Row, in_order, own_garbage_only, ratio_row, seconds_per_call
from bench.server import TOKEN, RunningServer, server_in_another_process
from kubeauthn._core.kubeconfig.model import Cluster
from kubeauthn.client.access import Access

PATH = "/version"
HEADERS = {"Authorization": f"Bearer {TOKEN}"}
GOAL = 1.03
WARM_UP = 20

SyncPair = tuple[Callable[[], object], Callable[[], object]]
AsyncPair = tuple[Callable[[], Awaitable[object]], Callable[[], Awaitable[object]]]


def rows(folder: Path, *, quick: bool) -> Iterator[Row]:
    with server_in_another_process() as server:
        access = _access(folder, server)
        for name, make in SYNC.items():
            with ExitStack() as stack:
                yield _row(name, _measured(*make(stack, server, access), _pairs(quick)))
        for name, make_async in ASYNC.items():
            with asyncio.Runner() as runner:
                yield _row(name, runner.run(_measured_async(make_async, server, access, _pairs(quick))))


def _pairs(quick: bool) -> Pairs:
    """One request against one: a passing load then falls on neighbours, and the median of many is hardly moved by it.

    Who begins is drawn, so that nothing which comes and goes regularly can fall on one side only. A question of 3 %
    asks for half a per cent; on a restless machine it ends without.
    """
    return Pairs(least=200, most=200, within=1) if quick else Pairs(least=500, most=6000, within=0.004, seconds=20)


def _row(name: str, pairs: Pairs) -> Row:
    return ratio_row(f"a request: {name}", (pairs.ours, pairs.peer), peer_name=f"{name} on its own", goal=GOAL)


def _measured(ours: Callable[[], object], bare: Callable[[], object], pairs: Pairs) -> Pairs:
    readers = [(seconds_per_call(ours, 1), pairs.ours), (seconds_per_call(bare, 1), pairs.peer)]
    for _ in range(WARM_UP):
        ours(), bare()
    with own_garbage_only():
        while not pairs.enough():
            for _, (reading, taken) in in_order(random.getrandbits(1), *readers):
                taken.append(reading())
    return pairs


async def _measured_async(make: Callable[..., Any], server: RunningServer, access: Access, pairs: Pairs) -> Pairs:
    async def measure(call: Callable[[], Awaitable[object]], taken: list[float]) -> None:
        started = time.perf_counter()
        await call()
        taken.append(time.perf_counter() - started)

    async with AsyncExitStack() as stack:
        ours, bare = await make(stack, server, access)
        for _ in range(WARM_UP):
            await ours()
            await bare()
        with own_garbage_only():
            while not pairs.enough():
                for _, (call, taken) in in_order(random.getrandbits(1), (ours, pairs.ours), (bare, pairs.peer)):
                    await measure(call, taken)
    return pairs


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
