"""What asks the proxies that are measured: requests, large bodies and watches. Light, as it shares the machine."""

from __future__ import annotations

import asyncio
import statistics
import time
from collections.abc import Sequence
from dataclasses import dataclass, field

from bench.proxy_ways import ASK, Way

PIECE = bytes(1 << 18)
TICKS = 20


class Asking:
    """One connection that asks again as soon as it has its answer. As light as can be: it shares the machine."""

    def __init__(self) -> None:
        self.ready = asyncio.get_running_loop().create_future()
        self.warm = asyncio.get_running_loop().create_future()
        self.done = asyncio.get_running_loop().create_future()
        self.times: list[float] = []
        self.end = self.began = 0.0
        self.buffer = b""

    def connected(self, wire) -> None:
        self.wire = wire
        self.ready.set_result(None)

    def ask(self) -> None:
        self.began = time.perf_counter()
        self.wire.write(ASK)

    def received(self, data: bytes) -> None:
        self.buffer += data
        head, blank, body = self.buffer.partition(b"\r\n\r\n")
        if not blank or len(body) < _length(head):
            return
        self.buffer = b""
        now = time.perf_counter()
        if not self.warm.done():  # the first answer: now the proxy has its own connection to the server
            self.warm.set_result(None)
            return
        self.times.append(now - self.began)
        if now < self.end:
            self.ask()
        else:
            self.done.set_result(None)
            self.wire.close()

    def ended(self, clean: bool) -> None: ...
    def lost(self, error: Exception | None) -> None:
        awaited = self.done if self.warm.done() else self.warm
        if not awaited.done():
            awaited.set_exception(error or ConnectionResetError())

    def hold(self) -> None: ...
    def go_on(self) -> None: ...


async def throughput(way: Way, connections: int, seconds: float) -> tuple[float, float]:
    """Requests a second, and the median time of one in ms. The clock starts when every connection has had an answer."""
    clients = [Asking() for _ in range(connections)]
    for client in clients:
        await way.dial(client)
        await client.ready
    for client in clients:
        client.ask()
    await asyncio.gather(*(client.warm for client in clients))
    began = time.perf_counter()
    for client in clients:
        client.end = began + seconds
        client.ask()
    await asyncio.gather(*(client.done for client in clients))
    times = [each for client in clients for each in client.times]
    return len(times) / (time.perf_counter() - began), statistics.median(times) * 1e3


class Moving(Asking):
    """One large body, either way; counts, and looks at the proxy's memory now and then."""

    def __init__(self, way: Way, size: int) -> None:
        super().__init__()
        self.warm.cancel()  # it asks once
        self.way = way
        self.left = self.unsent = size
        self.held = False
        self.highest = 0.0
        self.seen = 0
        self.head = b""

    def pour(self) -> None:
        while self.unsent and not self.held:
            size = min(self.unsent, len(PIECE))
            self.unsent -= size
            self.wire.write(PIECE[:size])
            self.look()

    def received(self, data: bytes) -> None:
        if not self.head:
            self.buffer += data
            self.head, blank, data = self.buffer.partition(b"\r\n\r\n")
            if not blank:
                self.head = b""
                return
            self.left = _length(self.head)
        self.left -= len(data)
        self.look()
        if not self.left:
            self.done.set_result(None)

    def look(self) -> None:
        self.seen += 1
        if self.seen % 64 == 0:
            self.highest = max(self.highest, self.way.memory())

    def hold(self) -> None:
        self.held = True

    def go_on(self) -> None:
        self.held = False
        self.pour()


async def transfer(way: Way, size: int, upload: bool) -> tuple[float, float]:
    """MB a second, and the largest memory of the proxy on the way."""
    client = Moving(way, size if upload else 0)
    await way.dial(client)
    await client.ready
    began = time.perf_counter()
    if upload:
        client.wire.write(b"PUT /sink HTTP/1.1\r\nHost: bench\r\nContent-Length: %d\r\n\r\n" % size)
        client.pour()
    else:
        client.wire.write(b"GET /bytes/%d HTTP/1.1\r\nHost: bench\r\n\r\n" % size)
    await client.done
    taken = time.perf_counter() - began
    client.wire.close()
    return size / taken / 1e6, max(client.highest, way.memory())


@dataclass
class Watched:
    """What one run of a proxy showed."""

    at_rest: float = 0.0
    memory: dict[int, float] = field(default_factory=dict)
    late: list[float] = field(default_factory=list)


async def watches(way: Way, sizes: Sequence[int]) -> Watched:
    """Megabytes at rest and with each number of idle watches; then how late the events of one more watch are."""
    seen, streams = Watched(), []
    await throughput(way, 1, 0.0)  # one request: whatever is made at the first one is there
    seen.at_rest = way.memory()
    for size in sizes:
        while len(streams) < size:
            reader, writer = await way.open()
            streams.append(writer)
            await _ask(reader, writer, b"/idle")
        seen.memory[size] = way.memory()
    reader, writer = await way.open()
    await _ask(reader, writer, b"/ticks")
    for _ in range(TICKS):
        await reader.readline()  # the chunk's size
        stamp = float(await reader.readline())
        seen.late.append(time.time() - stamp)
        await reader.readline()  # the chunk's end
    for each in (*streams, writer):
        each.close()
    return seen


async def _ask(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, path: bytes) -> None:
    writer.write(b"GET %s HTTP/1.1\r\nHost: bench\r\n\r\n" % path)
    await reader.readuntil(b"\r\n\r\n")


def _length(head: bytes) -> int:
    return int(head.lower().partition(b"content-length:")[2].split(b"\r\n")[0])
