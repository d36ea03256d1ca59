"""A worker's end of the channel: what it asks of its supervisor, and what becomes of it when something goes wrong."""

from __future__ import annotations

import asyncio
import signal
import socket
from contextlib import closing
from typing import TYPE_CHECKING, Any

import pytest

from kubeauthn.server import limits
from kubeauthn.server.context import ServeOptions
from kubeauthn.server.http_message import GivenScope, HeaderList, Request, Response
from kubeauthn.server.worker import Worker

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator

METRICS = Request("GET", "/metrics", HeaderList([]), b"", GivenScope())


class Supervised:
    """The channel: notes what is sent, and brings what it was given."""

    def __init__(self, *messages: dict[str, Any]) -> None:
        self.sent: list[dict[str, Any]] = []
        self._messages = messages

    def send(self, **message: Any) -> None:
        self.sent.append(message)

    async def messages(self) -> AsyncIterator[dict[str, Any]]:
        for message in self._messages:
            yield message


@pytest.fixture
def worker() -> Iterator[Worker]:
    with closing(socket.socket()) as connection:
        yield Worker(ServeOptions(), connection)


def over(worker: Worker, channel: Supervised) -> Supervised:
    worker._channel = channel  # type: ignore[assignment]  # what a worker asks of it
    return channel


def test_a_thousand_who_ask_for_metrics_are_two_questions(worker: Worker) -> None:
    channel = over(worker, Supervised())

    async def scene() -> list[Response]:
        pages = [asyncio.create_task(worker._metrics_page(METRICS))]
        while not channel.sent:
            await asyncio.sleep(0)
        pages += [asyncio.create_task(worker._metrics_page(METRICS)) for _ in range(1000)]
        for number in (1, 2):
            while len(channel.sent) < number:
                await asyncio.sleep(0)
            worker._obey({"op": "page", "asked": channel.sent[-1]["asked"], "text": f"page {number}"})
        return await asyncio.gather(*pages)

    answers = asyncio.run(scene())
    assert [answer.body for answer in answers] == [b"page 1", *[b"page 2"] * 1000]
    assert [message["op"] for message in channel.sent] == ["page"] * 2


def test_metrics_that_do_not_come_are_503(worker: Worker, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "COLLECT_SECONDS", 0.01)
    over(worker, Supervised())
    assert asyncio.run(worker._metrics_page(METRICS)).status == 503


@pytest.mark.parametrize("orders", [[], [{"op": "collect"}]], ids=["the supervisor is gone", "an order is a fault"])
def test_a_worker_that_hears_nothing_any_more_ends(worker: Worker, orders: list[dict[str, Any]]) -> None:
    """Nobody would reload it."""
    over(worker, Supervised(*orders))
    told: list[int] = []
    before = signal.signal(signal.SIGTERM, lambda number, _: told.append(number))
    try:
        asyncio.run(worker._listen())
    finally:
        signal.signal(signal.SIGTERM, before)
    assert told == [signal.SIGTERM]


def test_silent_connections_are_looked_for_again_after_a_look_failed(
    worker: Worker, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """There was no descriptor left for it: just when it is needed most."""
    resource = pytest.importorskip("resource")
    monkeypatch.setattr(limits, "SILENT_LOOK_SECONDS", 0.01)
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)

    async def scene() -> None:
        looking = asyncio.create_task(worker._end_silent())
        resource.setrlimit(resource.RLIMIT_NOFILE, (3, hard))
        try:
            async with asyncio.timeout(20):
                while len(caplog.records) < 2:
                    await asyncio.sleep(0.01)
        finally:
            resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
        assert not looking.done()
        looking.cancel()

    asyncio.run(scene())
    assert "silent connections were not looked for: unexpected OSError" in caplog.text


def test_a_configuration_that_is_given_up_while_an_issuer_is_waited_for_leaves_no_task(worker: Worker) -> None:
    """Each would end in a line about a task that was destroyed, beside the log."""
    channel = over(worker, Supervised())
    text = (
        "apiVersion: apiserver.config.k8s.io/v1\nkind: AuthenticationConfiguration\njwt:\n"
        '- issuer: {url: "https://127.0.0.1:1", audiences: [a]}\n'
        '  claimMappings: {username: {claim: sub, prefix: ""}}\n'
    )

    async def scene() -> list[str]:
        worker._obey({"op": "prepare", "number": 2, "text": text})
        for _ in range(3):
            await asyncio.sleep(0)
        worker._obey({"op": "abort", "number": 2})
        for _ in range(3):
            await asyncio.sleep(0)
        return [repr(task) for task in asyncio.all_tasks() if "arrived" in repr(task)]

    assert asyncio.run(scene()) == []
    assert channel.sent == []
