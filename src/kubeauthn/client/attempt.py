"""One attempt to get a credential, which several callers wait for, threads and asyncio tasks alike.

`concurrent.futures.Future` would do, but it brings `logging` along, which costs a plugin call
more than all the rest; and a waiter that is cancelled must not cancel the work of the others.
"""

from __future__ import annotations

import threading

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from kubeauthn._core.credential import Credential


class Attempt:
    def __init__(self) -> None:
        self._done = threading.Event()
        self._lock = threading.Lock()
        self._wake: list[Callable[[], object]] = []
        self._result: Credential | None = None
        self._error: BaseException | None = None

    def succeed(self, result: Credential) -> None:
        self._result = result
        self._finish()

    def fail(self, error: BaseException) -> None:
        self._error = error
        self._finish()

    def wait(self) -> Credential:
        self._done.wait()
        if self._result is None:
            raise self._error or RuntimeError("an attempt ended without an outcome")
        return self._result

    async def wait_async(self) -> Credential:
        import asyncio

        loop = asyncio.get_running_loop()
        finished = loop.create_future()

        def finish() -> None:
            if not finished.done():  # the waiter may have been cancelled meanwhile
                finished.set_result(None)

        def tell_the_loop() -> None:
            try:
                loop.call_soon_threadsafe(finish)
            except RuntimeError:
                return  # the loop was closed while the work went on: nobody waits there any more

        with self._lock:
            if not self._done.is_set():
                self._wake.append(tell_the_loop)
            else:
                finished.set_result(None)
        await finished
        return self.wait()

    def _finish(self) -> None:
        with self._lock:
            self._done.set()
            wake, self._wake = self._wake, []
        for tell in wake:
            tell()
