"""One worker process: its application, and its end of the channel to the supervisor."""

from __future__ import annotations

import asyncio
import gc
import itertools
import logging
import os
import signal
import socket
import time
from dataclasses import replace
from importlib import import_module
from typing import TYPE_CHECKING, Any

from kubeauthn.errors import EnvironmentFailure, KubeauthnError
from kubeauthn.server import debug_explain, health, limits, log_lines, token_review
from kubeauthn.server.application import Application
from kubeauthn.server.channel import Channel, announce
from kubeauthn.server.context import Context, ServeOptions
from kubeauthn.server.decisions import place_only
from kubeauthn.server.failures import failure, wrong_method
from kubeauthn.server.http_message import Response
from kubeauthn.server.key_store import KeyStore
from kubeauthn.server.measured import MeasuredDecider, StateGauges
from kubeauthn.server.metrics import Registry
from kubeauthn.server.parts import PARTS
from kubeauthn.server.runtime import Runtime
from kubeauthn.server.shared_answer import SharedAnswer
from kubeauthn.server.silent_connections import end_silent

if TYPE_CHECKING:
    from collections.abc import Mapping

    from kubeauthn.server.decisions import Decider
    from kubeauthn.server.http_message import Handler, Request

_log = logging.getLogger("kubeauthn.server")

_PROMETHEUS = ("content-type", "text/plain; version=0.0.4; charset=utf-8")
_REPORT_SECONDS = 1.0


def load(options: ServeOptions, doorbell: socket.socket) -> Application:
    """What Granian calls in a new worker process."""
    log_lines.configure(options.log_format)
    connection = announce(doorbell)
    try:
        return Worker(options, connection).application
    except EnvironmentFailure as error:
        # All of it was right before there were workers. Those that run need not end because it is not any more.
        _log.error("a worker cannot start, and another one is tried: %s", error)
    connection.close()
    time.sleep(limits.FAILED_START_SECONDS)
    raise SystemExit(1)


class Worker:
    def __init__(self, options: ServeOptions, connection: socket.socket) -> None:
        self._connection = connection
        self._channel: Channel | None = None
        self._metrics = Registry()
        store = KeyStore(options.keep_keys, options.keep_keys_seconds) if options.keep_keys else None
        self._runtime = Runtime(store)
        self._gauges = StateGauges(self._metrics, self._runtime)
        self._asked: dict[int, asyncio.Future[str]] = {}
        self._ids = itertools.count(1)
        self._page = SharedAnswer(self._asked_page)
        self._tasks: list[asyncio.Task[None]] = []
        self._preparing: asyncio.Task[None] | None = None
        context = self._context = self._made_context(options)
        routes: dict[str, Handler] = {"/metrics": self._metrics_page}
        for module in (token_review, health, debug_explain):
            routes |= module.routes(context)
        for name in PARTS:
            contribution = getattr(import_module(name), "routes", None)
            routes |= contribution(context) if contribution else {}
        self.application = Application(routes, self._metrics, start=self._start, stop=self._stop)

    def _made_context(self, options: ServeOptions) -> Context:
        """Extensions stand around the switch, so that they and what they hold survive a reload."""
        decider: Decider = self._runtime.switch
        inner = Context(decider, options, self._metrics, self._runtime)
        for name in PARTS:
            wrap = getattr(import_module(name), "wrap", None)
            decider = wrap(decider, inner) if wrap else decider
        return replace(inner, decider=MeasuredDecider(decider, self._metrics))

    # Life

    def _start(self, loop: asyncio.AbstractEventLoop) -> None:
        """Before the first connection is taken: the supervisor says which configuration is in force."""
        loop.run_until_complete(self._join())
        # What is there now stays; looking through it again and again would cost each request a little.
        gc.collect()
        gc.freeze()
        works = (self._listen(), self._report(), self._end_silent())
        self._tasks = [loop.create_task(work) for work in works]

    async def _join(self) -> None:
        self._channel = await Channel.over(self._connection)
        message = await self._channel.receive()
        await self._runtime.prepare(message["number"], message["text"], patient=False)
        self._runtime.commit(message["number"])
        self._channel.send(op="joined", number=message["number"], pid=os.getpid())

    def _stop(self, loop: asyncio.AbstractEventLoop) -> None:
        loop.run_until_complete(self._leave())

    async def _leave(self) -> None:
        for task in self._tasks:
            task.cancel()
        self._runtime.stop()
        for end in self._context.at_end:
            try:
                await end()
            except Exception as error:
                _log.error("a part did not end as it should: unexpected %s", type(error).__name__)
        if self._channel is not None:
            self._send_numbers()
            self._channel.close()

    async def _report(self) -> None:
        """What was counted is told now and then, so that little is lost with a worker that dies."""
        while True:
            await asyncio.sleep(_REPORT_SECONDS)
            self._send_numbers()

    async def _end_silent(self) -> None:
        while True:
            await asyncio.sleep(limits.SILENT_LOOK_SECONDS)
            try:
                ended = await asyncio.to_thread(end_silent, limits.SILENT_SECONDS)
            except Exception as error:  # no descriptor or thread to be had: it is looked at again
                _log.error("silent connections were not looked for: unexpected %s", type(error).__name__)
                continue
            if ended:
                _log.info("silent connections were ended", extra={"fields": {"connections": ended}})

    def _send_numbers(self, asked: int = 0) -> None:
        if self._channel is not None:
            self._gauges.update()
            self._channel.send(op="numbers", asked=asked, numbers=self._metrics.snapshot())

    # Orders

    async def _listen(self) -> None:
        assert self._channel is not None  # noqa: S101  joined before
        try:
            async for message in self._channel.messages():
                self._obey(message)
        except Exception as error:
            _log.error("the worker ends: unexpected %s", type(error).__name__, exc_info=place_only(error))
        # Without a supervisor nobody reloads, and nobody ends this process.
        os.kill(os.getpid(), signal.SIGTERM)

    def _obey(self, message: Mapping[str, Any]) -> None:
        order = message["op"]
        if order == "prepare":
            if self._preparing is not None:
                self._preparing.cancel()
            self._preparing = asyncio.get_running_loop().create_task(self._prepare(message))
        elif order == "commit":
            self._answer(message["number"], self._committed(message["number"]))
        elif order == "abort":
            if self._preparing is not None:
                self._preparing.cancel()
            self._runtime.abort()
        elif order == "hangup":
            for hang_up in self._context.on_hangup:
                hang_up()
        elif order == "collect":
            self._send_numbers(message["asked"])
        elif order == "page":
            waiting = self._asked.pop(message["asked"], None)
            if waiting is not None and not waiting.done():
                waiting.set_result(message["text"])

    async def _prepare(self, message: Mapping[str, Any]) -> None:
        why = ""
        try:
            await self._runtime.prepare(message["number"], message["text"], patient=True)
        except KubeauthnError as error:
            why = str(error)
        except Exception as error:
            why = f"unexpected {type(error).__name__}"
        self._answer(message["number"], why)

    def _committed(self, number: int) -> str:
        try:
            self._runtime.commit(number)
        except KubeauthnError as error:
            return str(error)
        return ""

    def _answer(self, number: int, why: str) -> None:
        if self._channel is not None:
            self._channel.send(op="done", number=number, why=why)

    # /metrics

    async def _metrics_page(self, request: Request) -> Response:
        """Of all workers: the supervisor adds them up, for all who ask at the same time at once."""
        if request.method not in ("GET", "HEAD"):
            return wrong_method("GET", "HEAD")
        try:
            return Response(200, [_PROMETHEUS], await self._page.get())
        except TimeoutError:
            return failure(503, "the workers' numbers did not come in time")

    async def _asked_page(self) -> bytes:
        asked = next(self._ids)
        waiting: asyncio.Future[str] = asyncio.get_running_loop().create_future()
        self._asked[asked] = waiting
        assert self._channel is not None  # noqa: S101  joined before the first request
        self._channel.send(op="page", asked=asked)
        try:
            return (await asyncio.wait_for(waiting, 2 * limits.COLLECT_SECONDS)).encode()
        finally:
            self._asked.pop(asked, None)
