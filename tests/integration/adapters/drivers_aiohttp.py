"""Drivers of the adapters that stand on aiohttp."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable
from concurrent.futures import Future
from typing import Any

import aiohttp
import kubernetes.aio.client
import kubernetes.aio.watch
import kubernetes_asyncio.client
import kubernetes_asyncio.watch

from kubeauthn.client import aiohttp as aiohttp_adapter
from kubeauthn.client import kubernetes_aio as kubernetes_aio_adapter
from kubeauthn.client import kubernetes_asyncio as kubernetes_asyncio_adapter
from tests.integration.adapters.driver import AsyncClient, Driver, Outcome, Watch


class LoopClient(AsyncClient):
    """An async client that runs its watches as tasks."""

    def __init__(self) -> None:
        super().__init__()
        self._watches: list[Future[None]] = []

    def watch_namespaces(self) -> Watch:
        watch = Watch()
        self._watches.append(asyncio.run_coroutine_threadsafe(self._run_watch(watch), self._loop))
        return watch

    async def _run_watch(self, watch: Watch) -> None:
        try:
            await self.follow_namespaces(watch.events.put)
        except Exception as error:
            watch.error = error
        finally:
            watch.ended.set()

    async def follow_namespaces(self, seen: Callable[[str], None]) -> None:
        raise NotImplementedError

    async def aclose(self) -> None:
        raise NotImplementedError

    def close(self) -> None:
        for watch in self._watches:
            watch.cancel()
        self.run(self.aclose())
        self.stop_loop()


class AiohttpClient(LoopClient):
    def __init__(self, options: dict[str, Any]) -> None:
        super().__init__()

        async def make() -> aiohttp.ClientSession:
            return aiohttp_adapter.session(**options)

        self.session = self.run(make())

    async def list_namespaces_async(self) -> Outcome:
        return await self._call("GET")

    async def create_namespace_async(self, name: str) -> Outcome:
        return await self._call("POST", json={"metadata": {"name": name}})

    async def _call(self, method: str, **kwargs: Any) -> Outcome:
        try:
            async with self.session.request(method, "/api/v1/namespaces", **kwargs) as response:
                items = (await response.json()).get("items", [])
                return Outcome(response.status, tuple(item["metadata"]["name"] for item in items))
        except Exception as error:
            return Outcome(error=error)

    async def follow_namespaces(self, seen: Callable[[str], None]) -> None:
        timeout = aiohttp.ClientTimeout()
        async with self.session.get("/api/v1/namespaces?watch=true", timeout=timeout) as response:
            response.raise_for_status()
            async for line in response.content:
                seen(json.loads(line)["object"]["metadata"]["name"])

    async def aclose(self) -> None:
        await self.session.close()


class AiohttpDriver(Driver):
    name = "aiohttp"
    library = "aiohttp"

    def open(self, **options: Any) -> AiohttpClient:
        return AiohttpClient(options)


class GeneratedClient(LoopClient):
    """A client of one of the two generated libraries, which look alike from here."""

    def __init__(self, library: Any, make: Callable[[], Awaitable[Any]], forget: Callable[[], None]) -> None:
        super().__init__()
        self._library = library
        self._forget = forget

        async def open_api() -> Any:
            return await make()

        self.api = self.run(open_api())
        self._core = library.client.CoreV1Api(self.api)

    async def list_namespaces_async(self) -> Outcome:
        try:
            items = (await self._core.list_namespace()).items
        except Exception as error:
            return self._outcome(error)
        return Outcome(200, tuple(item.metadata.name for item in items))

    async def create_namespace_async(self, name: str) -> Outcome:
        body = self._library.client.V1Namespace(metadata=self._library.client.V1ObjectMeta(name=name))
        try:
            await self._core.create_namespace(body)
        except Exception as error:
            return self._outcome(error)
        return Outcome(201)

    def _outcome(self, error: Exception) -> Outcome:
        if isinstance(error, self._library.client.ApiException):
            return Outcome(error.status)
        return Outcome(error=error)

    async def follow_namespaces(self, seen: Callable[[str], None]) -> None:
        async with self._library.watch.Watch() as watch:
            async for event in watch.stream(self._core.list_namespace, timeout_seconds=900):
                seen(event["object"].metadata.name)

    async def aclose(self) -> None:
        await self.api.close()
        self._forget()


class GeneratedDriver(Driver):
    """`api_client()`, or `load_kube_config()` and then the library's own way to make a client."""

    def __init__(self, library: Any, adapter: Any, *, by_default: bool) -> None:
        module = adapter.__name__.rpartition(".")[2]
        self.name = f"{module} (load_kube_config)" if by_default else module
        self.library = library.__name__.partition(".")[0]
        self._by_default = by_default
        self._package = library
        self._adapter = adapter

    def open(self, **options: Any) -> GeneratedClient:
        library, adapter = self._package, self._adapter

        async def by_api_client() -> Any:
            return adapter.api_client(**options)

        async def by_default_configuration() -> Any:
            await adapter.load_kube_config(**options)
            return library.client.ApiClient()

        def forget() -> None:
            library.client.Configuration.set_default(None)

        make = by_default_configuration if self._by_default else by_api_client
        return GeneratedClient(library, make, forget)


DRIVERS: list[Driver] = [
    AiohttpDriver(),
    GeneratedDriver(kubernetes.aio, kubernetes_aio_adapter, by_default=False),
    GeneratedDriver(kubernetes.aio, kubernetes_aio_adapter, by_default=True),
    GeneratedDriver(kubernetes_asyncio, kubernetes_asyncio_adapter, by_default=False),
    GeneratedDriver(kubernetes_asyncio, kubernetes_asyncio_adapter, by_default=True),
]
