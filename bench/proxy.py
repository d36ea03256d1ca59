"""Our proxy beside `kubectl proxy`: the same server, the same requests, each with TLS where it has it.

`kubectl proxy` speaks plain HTTP to its client and TLS to the server; ours speaks TLS with client certificates on
both legs. The server is a process of its own that answers at once, so that the proxies are what is measured.
"""

from __future__ import annotations

import asyncio
import base64
import fcntl
import json
import os
import shutil
import socket
import ssl
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from pathlib import Path

from bench.measure import Row
from kubeauthn._core import execproxy, execwire
from kubeauthn._core.credential import ClientIdentity
from kubeauthn._core.kubeconfig.model import Cluster
from kubeauthn._io.carrier.wires import PlainWire, TlsWire
from kubeauthn._io.tls import load_identity
from kubeauthn._secret import Secret
from tests.peers.programs import find

PLUGIN = "from kubeauthn.plugin import proxy\nproxy.run(lambda request: None)\n"
ASK = b"GET /version HTTP/1.1\r\nHost: bench\r\n\r\n"
CONNECTIONS = (1, 16, 64)
PIECE = bytes(1 << 18)


class Way:
    """How to get a connection through one of the two."""

    path: str
    context: ssl.SSLContext

    def __init__(self, name: str, open_connection, dial, pid: int) -> None:
        self.name = name
        self.open = open_connection
        self.dial = dial
        self.pid = pid

    def memory(self) -> float:
        for line in Path(f"/proc/{self.pid}/status").read_text().splitlines():
            if line.startswith("VmRSS:"):
                return int(line.split()[1]) / 1024
        return 0.0


def rows(folder: Path, *, quick: bool) -> Iterator[Row]:
    with ExitStack() as stack:
        server = stack.enter_context(fast_server())
        ours = stack.enter_context(our_proxy(folder, server))
        peers = [stack.enter_context(kubectl_proxy(folder, server, *each)) for each in _kubectls(quick=quick)]
        for connections in CONNECTIONS:
            yield from _request_rows(ours, peers, connections, quick=quick)
        for upload in (False, True):
            yield from _byte_rows(ours, peers, upload=upload, quick=quick)
        late, memory = asyncio.run(idle_watches(ours, 100 if quick else 1000))
        yield Row("a watch event crosses", late * 1e3, 2, "ms", late / 2e-3, "< 2 ms", late < 2e-3, "", "wanted")
        yield Row("1,000 idle watches", memory, 200, "MB", memory / 200, "< 200 MB", memory < 200, "", "wanted")
        first, started = first_byte(folder, server, 3 if quick else 15)
        ratio = first / started
        yield Row(
            "from exec to the first byte of a response",
            first * 1e3,
            started * 1e3,
            "ms",
            ratio,
            "≤ 1.5 ×",
            ratio <= 1.5,
            "",
            "the plugin's own start",
        )


def _kubectls(*, quick: bool) -> list[tuple[str, str]]:
    """Path and name of each that is there. The first is what the goals are for."""
    newest, packaged = find("kubectl"), shutil.which("kubectl")
    found = [(str(newest), "kubectl proxy")] if newest else []
    if packaged and not (newest and quick):
        found.append((packaged, "the packaged kubectl proxy" if newest else "kubectl proxy"))
    return found


def _request_rows(ours: Way, peers: list[Way], connections: int, *, quick: bool) -> Iterator[Row]:
    seconds, rounds = (0.5, 2) if quick else (2.0, 5)
    readings = in_turns([ours, *peers], rounds, lambda way: asyncio.run(throughput(way, connections, seconds)))
    for way in peers:
        for index, (what, unit) in enumerate((("requests a second", "1/s"), ("median latency", "ms"))):
            own, other, ratio = _compared(readings[ours.name], readings[way.name], index)
            goal, met = ("≥ 1 ×", ratio >= 1) if index == 0 else ("≤ 1 ×", ratio <= 1)
            name = f"{what} through a proxy, {connections} connections"
            yield _beside(Row(name, own, other, unit, ratio, goal, met, "", way.name), way, peers)


def _byte_rows(ours: Way, peers: list[Way], *, upload: bool, quick: bool) -> Iterator[Row]:
    size, rounds = (32 << 20, 2) if quick else (1 << 30, 3)
    readings = in_turns([ours, *peers], rounds, lambda way: asyncio.run(transfer(way, size, upload)))
    name = f"{size >> 20} MiB {'up' if upload else 'down'}"
    for way in peers:
        own, other, ratio = _compared(readings[ours.name], readings[way.name], 0)
        yield _beside(Row(name, own, other, "MB/s", ratio, "≥ 0.5 ×", ratio >= 0.5, "", way.name), way, peers)
    memory = max(reading[1] for reading in readings[ours.name])
    yield Row(f"{name}: memory of the proxy", memory, 80, "MB", memory / 80, "< 80 MB", memory < 80, "", "wanted")


def in_turns(
    ways: list[Way], rounds: int, reading: Callable[[Way], tuple[float, float]]
) -> dict[str, list[tuple[float, float]]]:
    """Each in turn, so that whatever else the machine does falls on all of them."""
    readings: dict[str, list[tuple[float, float]]] = {way.name: [] for way in ways}
    for number in range(rounds):
        for way in ways if number % 2 else ways[::-1]:
            readings[way.name].append(reading(way))
    return readings


def _compared(
    mine: list[tuple[float, float]], theirs: list[tuple[float, float]], index: int
) -> tuple[float, float, float]:
    """Both medians, and the median of what neighbours in time are to each other."""
    own, other = [each[index] for each in mine], [each[index] for each in theirs]
    ratio = statistics.median(one / two for one, two in zip(own, other, strict=True))
    return statistics.median(own), statistics.median(other), ratio


def _beside(row: Row, way: Way, peers: list[Way]) -> Row:
    """Goals are for the newest peer; the others are there to be seen."""
    return row if way is peers[0] else replace(row, goal="", met=True)


class Asking:
    """One connection that asks again as soon as it has its answer. As light as can be: it shares the machine."""

    def __init__(self) -> None:
        self.ready = asyncio.get_running_loop().create_future()
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
        self.times.append(now - self.began)
        if now < self.end:
            self.ask()
        else:
            self.done.set_result(None)
            self.wire.close()

    def ended(self, clean: bool) -> None: ...
    def lost(self, error: Exception | None) -> None:
        if not self.done.done():
            self.done.set_exception(error or ConnectionResetError())

    def hold(self) -> None: ...
    def go_on(self) -> None: ...


async def throughput(way: Way, connections: int, seconds: float) -> tuple[float, float]:
    """Requests a second, and the median time of one in ms. Connections are made before the clock starts."""
    clients = [Asking() for _ in range(connections)]
    for client in clients:
        await way.dial(client)
        await client.ready
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


async def idle_watches(way: Way, count: int) -> tuple[float, float]:
    """The time from the server's write of an event to its arrival, and the proxy's memory with so many watches."""
    streams = []
    for _ in range(count):
        reader, writer = await way.open()
        writer.write(b"GET /idle HTTP/1.1\r\nHost: bench\r\n\r\n")
        await reader.readuntil(b"\r\n\r\n")
        streams.append(writer)
    memory = way.memory()
    reader, writer = await way.open()
    writer.write(b"GET /ticks HTTP/1.1\r\nHost: bench\r\n\r\n")
    await reader.readuntil(b"\r\n\r\n")
    late = []
    for _ in range(20):
        await reader.readline()  # the chunk's size
        stamp = float(await reader.readline())
        late.append(time.time() - stamp)
        await reader.readline()  # the chunk's end
    for each in (*streams, writer):
        each.close()
    return statistics.median(late), memory


def first_byte(folder: Path, server: dict[str, str], rounds: int) -> tuple[float, float]:
    """Seconds from exec to the first byte of a response, and to the plugin's document: the medians of some runs."""
    first, started = [], []
    for _ in range(rounds):
        began = time.perf_counter()
        with our_proxy(folder, server) as way:
            started.append(time.perf_counter() - began)
            with socket.socket(socket.AF_UNIX) as plain:
                plain.connect(way.path)
                with way.context.wrap_socket(plain, server_hostname="localhost") as connection:
                    connection.sendall(ASK)
                    connection.recv(1)
                    first.append(time.perf_counter() - began)
    return statistics.median(first), statistics.median(started)


def _length(head: bytes) -> int:
    return int(head.lower().partition(b"content-length:")[2].split(b"\r\n")[0])


@contextmanager
def fast_server() -> Iterator[dict[str, str]]:
    command = [sys.executable, "-m", "bench.proxy_server"]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, cwd=Path(__file__).parent.parent
    ) as process:
        assert process.stdout is not None
        try:
            yield json.loads(process.stdout.readline())
        finally:
            process.terminate()


@contextmanager
def our_proxy(folder: Path, server: dict[str, str]) -> Iterator[Way]:
    lock_path = folder / f"lock-{os.urandom(4).hex()}"
    lock = os.open(lock_path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    fcntl.flock(lock, fcntl.LOCK_EX)
    cluster = Cluster(server=server["url"], certificate_authority_data=server["ca"].encode())
    info = execproxy.encode_exec_info(execwire.V1, interactive=False, cluster=cluster, lock_file_path=str(lock_path))
    environ = {**os.environ, execwire.VARIABLE: info}
    with subprocess.Popen([sys.executable, "-c", PLUGIN], stdout=subprocess.PIPE, env=environ) as process:
        assert process.stdout is not None
        status = json.loads(process.stdout.readline())["status"]
        authority = base64.b64decode(status["proxyConfig"]["certificate-authority-data"])
        context = ssl.create_default_context(cadata=authority.decode())
        pem, key = status["clientCertificateData"].encode(), Secret(status["clientKeyData"])
        load_identity(context, ClientIdentity(pem, key, not_before=0, not_after=0))
        path = status["proxyConfig"]["url"].removeprefix("unix://")
        way = Way(
            "ours",
            lambda: asyncio.open_unix_connection(path, ssl=context, server_hostname="localhost", limit=1 << 20),
            lambda end: asyncio.get_running_loop().create_unix_connection(
                lambda: TlsWire(end, context, "localhost"), path
            ),
            process.pid,
        )
        way.path, way.context = path, context
        try:
            yield way
        finally:
            os.close(lock)


@contextmanager
def kubectl_proxy(folder: Path, server: dict[str, str], program: str, name: str) -> Iterator[Way]:
    config = folder / "config"
    cluster = {"server": server["url"], "certificate-authority-data": base64.b64encode(server["ca"].encode()).decode()}
    config.write_text(
        json.dumps(
            {
                "apiVersion": "v1",
                "kind": "Config",
                "current-context": "b",
                "clusters": [{"name": "b", "cluster": cluster}],
                "users": [{"name": "b", "user": {"token": "bench"}}],
                "contexts": [{"name": "b", "context": {"cluster": "b", "user": "b"}}],
            }
        )
    )
    command = [program, "--kubeconfig", str(config), "proxy", "--port=0", "--accept-hosts=.*", "--reject-methods=^$"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        try:
            port = int(process.stdout.readline().rpartition(":")[2])
            yield Way(
                name,
                lambda: asyncio.open_connection("127.0.0.1", port, limit=1 << 20),
                lambda end: asyncio.get_running_loop().create_connection(lambda: PlainWire(end), "127.0.0.1", port),
                process.pid,
            )
        finally:
            process.terminate()
