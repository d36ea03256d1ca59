"""Our proxy beside `kubectl proxy`: the same server, the same requests, each with TLS where it has it.

`kubectl proxy` speaks plain HTTP to its client and TLS to the server; ours speaks TLS with client certificates on
both legs. The server is a process of its own that answers at once, so that the proxies are what is measured.
"""

from __future__ import annotations

import asyncio
import shutil
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from functools import partial
from pathlib import Path

from bench.measure import Row, limit_row, rate_row, ratio_row
from bench.proxy_client import Watched, throughput, transfer, watches
from bench.proxy_ways import ASK, Maker, Way, fast_server, kubectl_proxy, our_proxy
from tests.peers.programs import find

CONNECTIONS = (1, 16, 64)
GROWING = (1, 10, 100, 1000)
"""Connections and watches: how it grows is seen beside the peer, and not judged."""
START_GOAL = 1.5
MOST_WHILE_MOVING = 80
MOST_WITH_WATCHES = 200
MOST_LATE_MS = 2
OURS = "ours"


def rows(folder: Path, *, quick: bool) -> Iterator[Row]:
    with fast_server() as server:
        makers: dict[str, Maker] = {OURS: partial(our_proxy, folder, server)}
        for program, name in kubectls(quick=quick):
            makers[name] = partial(kubectl_proxy, folder, server, program, name)
        with ExitStack() as stack:
            ours, *peers = [stack.enter_context(make()) for make in makers.values()]
            for upload in (False, True):  # first: who has borne a thousand connections holds more than who has not
                yield from _byte_rows(ours, peers, upload=upload, quick=quick)
            for connections in CONNECTIONS:
                yield from _request_rows(ours, peers, connections, quick=quick)
            for connections in () if quick else GROWING[1:]:
                yield from _request_rows(ours, peers[:1], connections, quick=quick, goal=None)
        if not quick and len(makers) > 2:
            makers.popitem()  # how a second kubectl starts and what it holds is worth nobody's minute
        yield from _watch_rows(makers, GROWING[:3] if quick else GROWING, 1 if quick else 3)
        yield from _start_rows(makers, 3 if quick else 15)


def kubectls(*, quick: bool) -> list[tuple[str, str]]:
    """Path and name of each that is there. The first is what the goals are for."""
    newest, packaged = find("kubectl"), shutil.which("kubectl")
    found = [(str(newest), "kubectl proxy")] if newest else []
    if packaged and not (newest and quick):
        found.append((packaged, "the packaged kubectl proxy" if newest else "kubectl proxy"))
    return found


def _request_rows(
    ours: Way, peers: list[Way], connections: int, *, quick: bool, goal: float | None = 1
) -> Iterator[Row]:
    """Goals are for the newest kubectl, the first of the peers; another is there to be seen."""
    seconds, rounds = (0.5, 2) if quick else (1.5, 5)
    if connections > 100:  # they take longer to be made than to be measured
        rounds = 3
    readings = in_turns([ours, *peers], rounds, lambda way: asyncio.run(throughput(way, connections, seconds)))
    for way in peers:
        wanted = goal if way is peers[0] else None
        rates, waits = (_both(readings[ours.name], readings[way.name], index) for index in (0, 1))
        name = f"through a proxy, {connections:,} connection{'s' if connections > 1 else ''}"
        yield rate_row(f"requests a second {name}", rates, peer_name=way.name, goal=wanted)
        yield ratio_row(f"median latency {name}", waits, peer_name=way.name, goal=wanted, unit="ms", scale=1)


def _byte_rows(ours: Way, peers: list[Way], *, upload: bool, quick: bool) -> Iterator[Row]:
    size, rounds = (32 << 20, 2) if quick else (1 << 30, 3)
    readings = in_turns([ours, *peers], rounds, lambda way: asyncio.run(transfer(way, size, upload)))
    name = f"{size >> 20} MiB {'up' if upload else 'down'}"
    for way in peers:
        rates = _both(readings[ours.name], readings[way.name], 0)
        yield rate_row(name, rates, peer_name=way.name, goal=0.5 if way is peers[0] else None, unit="MB/s")
    title, mine = f"{name}: memory of the proxy", [reading[1] for reading in readings[ours.name]]
    yield limit_row(title, mine, most=MOST_WHILE_MOVING, unit="MB")
    for way in peers[:1]:
        yield _memory_row(title, mine, [reading[1] for reading in readings[way.name]], way.name)


def in_turns(
    ways: list[Way], rounds: int, reading: Callable[[Way], tuple[float, float]]
) -> dict[str, list[tuple[float, float]]]:
    """Each in turn, so that whatever else the machine does falls on all of them."""
    readings: dict[str, list[tuple[float, float]]] = {way.name: [] for way in ways}
    for number in range(rounds):
        for way in ways if number % 2 else ways[::-1]:
            readings[way.name].append(reading(way))
    return readings


def _both(
    mine: list[tuple[float, float]], theirs: list[tuple[float, float]], index: int
) -> tuple[list[float], list[float]]:
    return [each[index] for each in mine], [each[index] for each in theirs]


def _memory_row(name: str, mine: list[float], theirs: list[float], peer_name: str) -> Row:
    return ratio_row(name, (mine, theirs), peer_name=peer_name, goal=None, unit="MB", scale=1)


def _watch_rows(makers: dict[str, Maker], sizes: Sequence[int], rounds: int) -> Iterator[Row]:
    """A new proxy each time: one that has borne a thousand watches is not at rest as one that has not."""
    seen: dict[str, list[Watched]] = {name: [] for name in makers}
    for _ in range(rounds):
        for name, make in makers.items():
            with make() as way:
                seen[name].append(asyncio.run(watches(way, sizes)))
    late = {name: [each * 1e3 for one in runs for each in one.late] for name, runs in seen.items()}
    most = {name: [one.memory[sizes[-1]] for one in runs] for name, runs in seen.items()}
    yield limit_row("a watch event crosses", late[OURS], most=MOST_LATE_MS, unit="ms")
    yield limit_row(f"{sizes[-1]:,} idle watches", most[OURS], most=MOST_WITH_WATCHES, unit="MB")
    for name in list(makers)[1:]:
        pair = late[OURS], late[name]
        yield ratio_row("a watch event crosses", pair, peer_name=name, goal=None, unit="ms", scale=1)
        mine, theirs = seen[OURS], seen[name]
        rest = [one.at_rest for one in mine], [one.at_rest for one in theirs]
        yield _memory_row("memory of the proxy at rest", *rest, name)
        for size in sizes:
            held = [one.memory[size] for one in mine], [one.memory[size] for one in theirs]
            title = f"memory of the proxy with {size:,} idle watch{'es' if size > 1 else ''}"
            yield _memory_row(title, *held, name)


def _start_rows(makers: dict[str, Maker], rounds: int) -> Iterator[Row]:
    """From exec to the first byte of a response."""
    started: dict[str, list[float]] = {name: [] for name in makers}
    answered: dict[str, list[float]] = {name: [] for name in makers}
    for _ in range(rounds):
        for name, make in makers.items():
            began = time.perf_counter()
            with make() as way:
                started[name].append(time.perf_counter() - began)
                with way.connect() as connection:
                    connection.sendall(ASK)
                    connection.recv(1)
                    answered[name].append(time.perf_counter() - began)
    title, mine = "from exec to the first byte of a response", answered[OURS]
    pair = mine, started[OURS]
    yield ratio_row(title, pair, peer_name="the plugin's own start", goal=START_GOAL, unit="ms", scale=1e3)
    for name in list(makers)[1:]:
        yield ratio_row(title, (mine, answered[name]), peer_name=name, goal=None, unit="ms", scale=1e3)
