"""How the common suite drives an adapter: the same few verbs for every library, whatever its colour."""

from __future__ import annotations

import asyncio
import queue
import threading
from collections.abc import Coroutine, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, TypeVar

T = TypeVar("T")


@dataclass(frozen=True)
class Outcome:
    """What came of one call: `status` of the answer, or the `error` that came instead of one."""

    status: int | None = None
    names: tuple[str, ...] = ()
    error: BaseException | None = None


class Watch:
    """A watch that runs in the background: its events come out of a queue, its end is seen."""

    def __init__(self) -> None:
        self.events: queue.Queue[str] = queue.Queue()
        """Names of the objects seen."""
        self.ended = threading.Event()
        self.error: BaseException | None = None

    def next(self, seconds: float = 5.0) -> str:
        return self.events.get(timeout=seconds)


class Client:
    """One open client of the library. A driver subclasses this (or AsyncClient below)."""

    def list_namespaces(self) -> Outcome:
        """GET: may be repeated after a 401."""
        raise NotImplementedError

    def create_namespace(self, name: str) -> Outcome:
        """POST: is not repeated."""
        raise NotImplementedError

    def watch_namespaces(self) -> Watch:
        """Starts a watch in the background and returns at once; `close` ends it."""
        raise NotImplementedError

    def list_in_parallel(self, count: int) -> list[Outcome]:
        """`count` calls of list_namespaces at once."""
        with ThreadPoolExecutor(count) as pool:
            barrier = threading.Barrier(count)

            def call() -> Outcome:
                barrier.wait()
                return self.list_namespaces()

            return [future.result() for future in [pool.submit(call) for _ in range(count)]]

    def close(self) -> None:
        raise NotImplementedError


class AsyncClient(Client):
    """For libraries with an event loop: the loop runs in a thread of its own, the verbs wait for it."""

    def __init__(self) -> None:
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self._thread.start()

    def run(self, coroutine: Coroutine[Any, Any, T], seconds: float = 30.0) -> T:
        return asyncio.run_coroutine_threadsafe(coroutine, self._loop).result(seconds)

    def start(self, coroutine: Coroutine[Any, Any, T]) -> None:
        """On the loop, beside whatever is run there."""
        asyncio.run_coroutine_threadsafe(coroutine, self._loop)

    def list_namespaces(self) -> Outcome:
        return self.run(self.list_namespaces_async())

    def create_namespace(self, name: str) -> Outcome:
        return self.run(self.create_namespace_async(name))

    def list_in_parallel(self, count: int) -> list[Outcome]:
        async def all_at_once() -> list[Outcome]:
            return list(await asyncio.gather(*(self.list_namespaces_async() for _ in range(count))))

        return self.run(all_at_once())

    async def list_namespaces_async(self) -> Outcome:
        raise NotImplementedError

    async def create_namespace_async(self, name: str) -> Outcome:
        raise NotImplementedError

    def stop_loop(self) -> None:
        """Call it last in `close`."""
        self.run(self._finish())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(5)
        self._loop.close()

    @staticmethod
    async def _finish() -> None:
        """What `asyncio.run` does at its end: else tasks and connections are left to the garbage collector."""
        tasks = asyncio.all_tasks() - {asyncio.current_task()}
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await asyncio.get_running_loop().shutdown_asyncgens()
        for _ in range(5):
            await asyncio.sleep(0)  # a closed connection is let go in one of the next rounds of the loop


class Driver:
    """One adapter. `open` reads the kubeconfig that KUBECONFIG names, as a user's program would."""

    name: str
    """The module below kubeauthn.client."""
    library: str
    """The distribution whose version the compat page names."""

    def open(self, **options: Any) -> Client:
        raise NotImplementedError

    @contextmanager
    def session(self, **options: Any) -> Iterator[Client]:
        client = self.open(**options)
        try:
            yield client
        finally:
            client.close()
