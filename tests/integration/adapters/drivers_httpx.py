"""Drivers for httpx2, httpx, lightkube and kr8s."""

from __future__ import annotations

import asyncio
import contextlib
import json
import socket
import threading
from collections.abc import Callable, Iterator
from typing import Any

import httpx
import httpx2
import kr8s
import lightkube
from kr8s.asyncio.objects import Namespace as AsyncNamespace
from kr8s.objects import Namespace
from lightkube.models.meta_v1 import ObjectMeta
from lightkube.resources.core_v1 import Namespace as LightkubeNamespace

from kubeauthn.client import httpx as httpx_adapter
from kubeauthn.client import httpx2 as httpx2_adapter
from kubeauthn.client import kr8s as kr8s_adapter
from kubeauthn.client import lightkube as lightkube_adapter
from tests.integration.adapters.driver import AsyncClient, Client, Driver, Outcome, Watch

NAMESPACES = "/api/v1/namespaces"


def in_background(watch: Watch, names: Callable[[], Iterator[str]]) -> Watch:
    """Run a blocking watch in a thread."""

    def run() -> None:
        try:
            for name in names():
                watch.events.put(name)
        except BaseException as error:
            watch.error = error
        finally:
            watch.ended.set()

    threading.Thread(target=run, daemon=True).start()
    return watch


class AsyncWatches:
    """The watches of an async client, each a task that `cancel` ends."""

    def __init__(self, client: AsyncClient) -> None:
        self._client = client
        self._tasks: list[asyncio.Task[None]] = []

    def start(self, names: Callable[[], Any]) -> Watch:
        watch = Watch()

        async def follow() -> None:
            try:
                async with contextlib.aclosing(names()) as stream:
                    async for name in stream:
                        watch.events.put(name)
            except BaseException as error:
                watch.error = error
            finally:
                watch.ended.set()

        async def start() -> None:
            self._tasks.append(asyncio.create_task(follow()))

        self._client.run(start())
        return watch

    async def cancel(self) -> None:
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)


def outcome_of(call: Callable[[], Outcome]) -> Outcome:
    try:
        return call()
    except Exception as error:
        return Outcome(error=error)


def listed(response: Any) -> Outcome:
    if response.status_code != 200:
        return Outcome(status=response.status_code)
    return Outcome(status=200, names=tuple(item["metadata"]["name"] for item in response.json()["items"]))


def wake(response: Any) -> None:
    """End a response that another thread is reading: closing its socket alone would leave the reader blocked."""
    with contextlib.suppress(OSError):
        plain = response.extensions["network_stream"].get_extra_info("socket")
        socket.socket.shutdown(plain, socket.SHUT_RDWR)


# -- httpx and httpx2 -----------------------------------------------------------------------------


class HttpxClient(Client):
    def __init__(self, api: httpx.Client | httpx2.Client) -> None:
        self.api: Any = api
        self._watched: list[Any] = []

    def list_namespaces(self) -> Outcome:
        return outcome_of(lambda: listed(self.api.get(NAMESPACES)))

    def create_namespace(self, name: str) -> Outcome:
        body = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}
        return outcome_of(lambda: Outcome(status=self.api.post(NAMESPACES, json=body).status_code))

    def watch_namespaces(self) -> Watch:
        def names() -> Iterator[str]:
            with self.api.stream("GET", NAMESPACES, params={"watch": "true"}, timeout=None) as response:
                response.raise_for_status()
                self._watched.append(response)
                for line in response.iter_lines():
                    yield json.loads(line)["object"]["metadata"]["name"]

        return in_background(Watch(), names)

    def close(self) -> None:
        for response in self._watched:
            wake(response)
        self.api.close()


class HttpxAsyncClient(AsyncClient):
    def __init__(self, make: Callable[..., Any], options: dict[str, Any]) -> None:
        super().__init__()
        self.api = make(**options)
        self._watches = AsyncWatches(self)

    async def list_namespaces_async(self) -> Outcome:
        try:
            return listed(await self.api.get(NAMESPACES))
        except Exception as error:
            return Outcome(error=error)

    async def create_namespace_async(self, name: str) -> Outcome:
        body = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}
        try:
            return Outcome(status=(await self.api.post(NAMESPACES, json=body)).status_code)
        except Exception as error:
            return Outcome(error=error)

    def watch_namespaces(self) -> Watch:
        async def names() -> Any:
            async with self.api.stream("GET", NAMESPACES, params={"watch": "true"}, timeout=None) as response:
                response.raise_for_status()
                async for line in response.aiter_lines():
                    yield json.loads(line)["object"]["metadata"]["name"]

        return self._watches.start(names)

    def close(self) -> None:
        self.run(self._watches.cancel())
        self.run(self.api.aclose())
        self.stop_loop()


class Httpx2Driver(Driver):
    name = "httpx2"
    library = "httpx2"

    def open(self, **options: Any) -> Client:
        return HttpxClient(httpx2_adapter.client(**options))


class Httpx2AsyncDriver(Driver):
    name = "httpx2 (async)"
    library = "httpx2"

    def open(self, **options: Any) -> Client:
        return HttpxAsyncClient(httpx2_adapter.async_client, options)


class HttpxDriver(Driver):
    name = "httpx"
    library = "httpx"

    def open(self, **options: Any) -> Client:
        return HttpxClient(httpx_adapter.client(**options))


class HttpxAsyncDriver(Driver):
    name = "httpx (async)"
    library = "httpx"

    def open(self, **options: Any) -> Client:
        return HttpxAsyncClient(httpx_adapter.async_client, options)


# -- lightkube ------------------------------------------------------------------------------------


def lightkube_namespace(name: str) -> LightkubeNamespace:
    return LightkubeNamespace(metadata=ObjectMeta(name=name))


class LightkubeClient(Client):
    def __init__(self, api: lightkube.Client) -> None:
        self.api = api
        self._watched: list[Any] = []
        # lightkube keeps the response of a watch to itself; this is how `close` can end one.
        generic = api._client
        send = generic.send

        def remembering(request: Any, stream: bool = False) -> Any:
            response = send(request, stream=stream)
            if stream:
                self._watched.append(response)
            return response

        generic.send = remembering

    def list_namespaces(self) -> Outcome:
        try:
            items = list(self.api.list(LightkubeNamespace))
        except lightkube.ApiError as error:
            return Outcome(status=error.response.status_code)
        except Exception as error:
            return Outcome(error=error)
        return Outcome(status=200, names=tuple(item.metadata.name for item in items))

    def create_namespace(self, name: str) -> Outcome:
        try:
            self.api.create(lightkube_namespace(name))
        except lightkube.ApiError as error:
            return Outcome(status=error.response.status_code)
        except Exception as error:
            return Outcome(error=error)
        return Outcome(status=201)

    def watch_namespaces(self) -> Watch:
        return in_background(Watch(), lambda: (item.metadata.name for _, item in self.api.watch(LightkubeNamespace)))

    def close(self) -> None:
        for response in self._watched:
            wake(response)
        self.api.close()


class LightkubeAsyncClient(AsyncClient):
    def __init__(self, options: dict[str, Any]) -> None:
        super().__init__()
        self.api = lightkube_adapter.async_client(**options)
        self._watches = AsyncWatches(self)

    async def list_namespaces_async(self) -> Outcome:
        try:
            items = [item async for item in self.api.list(LightkubeNamespace)]
        except lightkube.ApiError as error:
            return Outcome(status=error.response.status_code)
        except Exception as error:
            return Outcome(error=error)
        return Outcome(status=200, names=tuple(item.metadata.name for item in items))

    async def create_namespace_async(self, name: str) -> Outcome:
        try:
            await self.api.create(lightkube_namespace(name))
        except lightkube.ApiError as error:
            return Outcome(status=error.response.status_code)
        except Exception as error:
            return Outcome(error=error)
        return Outcome(status=201)

    def watch_namespaces(self) -> Watch:
        async def names() -> Any:
            async for _, item in self.api.watch(LightkubeNamespace):
                yield item.metadata.name

        return self._watches.start(names)

    def close(self) -> None:
        self.run(self._watches.cancel())
        self.run(self.api.close())
        self.stop_loop()


class LightkubeDriver(Driver):
    name = "lightkube"
    library = "lightkube"

    def open(self, **options: Any) -> Client:
        return LightkubeClient(lightkube_adapter.client(**options))


class LightkubeAsyncDriver(Driver):
    name = "lightkube (async)"
    library = "lightkube"

    def open(self, **options: Any) -> Client:
        return LightkubeAsyncClient(options)


# -- kr8s -----------------------------------------------------------------------------------------


class Kr8sClient(Client):
    def __init__(self, api: kr8s.Api) -> None:
        self.api = api

    def list_namespaces(self) -> Outcome:
        try:
            items = list(self.api.get(Namespace))
        except kr8s.ServerError as error:
            return Outcome(status=error.response.status_code)
        except Exception as error:
            return Outcome(error=error)
        return Outcome(status=200, names=tuple(item.name for item in items))

    def create_namespace(self, name: str) -> Outcome:
        try:
            Namespace({"metadata": {"name": name}}, api=self.api).create()
        except kr8s.ServerError as error:
            return Outcome(status=error.response.status_code)
        except Exception as error:
            return Outcome(error=error)
        return Outcome(status=201)

    def watch_namespaces(self) -> Watch:
        return in_background(Watch(), lambda: (item.name for _, item in self.api.watch(Namespace)))

    def close(self) -> None:
        async def close_session() -> None:
            if self.api._session is not None:
                await self.api._session.aclose()

        kr8s_adapter.as_sync_func(close_session)()


class Kr8sAsyncClient(AsyncClient):
    def __init__(self, options: dict[str, Any]) -> None:
        super().__init__()
        self.api = self.run(kr8s_adapter.async_api(**options))
        self._watches = AsyncWatches(self)

    async def list_namespaces_async(self) -> Outcome:
        try:
            items = [item async for item in self.api.get(AsyncNamespace)]
        except kr8s.ServerError as error:
            return Outcome(status=error.response.status_code)
        except Exception as error:
            return Outcome(error=error)
        return Outcome(status=200, names=tuple(item.name for item in items))

    async def create_namespace_async(self, name: str) -> Outcome:
        try:
            await AsyncNamespace({"metadata": {"name": name}}, api=self.api).create()
        except kr8s.ServerError as error:
            return Outcome(status=error.response.status_code)
        except Exception as error:
            return Outcome(error=error)
        return Outcome(status=201)

    def watch_namespaces(self) -> Watch:
        async def names() -> Any:
            async with contextlib.aclosing(self.api.watch(AsyncNamespace)) as stream:
                async for _, item in stream:
                    yield item.name

        return self._watches.start(names)

    def close(self) -> None:
        async def close_session() -> None:
            await self._watches.cancel()
            if self.api._session is not None:
                await self.api._session.aclose()

        self.run(close_session())
        self.stop_loop()


class Kr8sDriver(Driver):
    name = "kr8s"
    library = "kr8s"

    def open(self, **options: Any) -> Client:
        return Kr8sClient(kr8s_adapter.api(**options))


class Kr8sAsyncDriver(Driver):
    name = "kr8s (async)"
    library = "kr8s"

    def open(self, **options: Any) -> Client:
        return Kr8sAsyncClient(options)


DRIVERS: list[Driver] = [
    Httpx2Driver(),
    Httpx2AsyncDriver(),
    HttpxDriver(),
    HttpxAsyncDriver(),
    LightkubeDriver(),
    LightkubeAsyncDriver(),
    Kr8sDriver(),
    Kr8sAsyncDriver(),
]
