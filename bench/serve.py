"""`kubeauthn serve` beside a bare Granian application that reads the body and answers a fixed one.

Both run with TLS and keep-alive on this machine, with the event loop that Granian chooses, and bench/peers/load (a
program in Go) asks them in turns. Where the load generator shares the cores with the workers, requests per second tell
of it as well; so the time that the kernel says the workers used for each request is shown beside them.
"""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Generator, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import median
from typing import Any

from bench.measure import Row, rate_row, ratio_row, spread
from bench.serve_soak import soak
from kubeauthn.server import Authenticator, load_configuration
from kubeauthn.testing import CertificateAuthority, Issuer

REPEATED = 1000
RATE_GOAL = 0.7
ABOVE_BARE_GOAL = 1.3
P99_GOAL_MS = 10.0
MEMORY_GOAL = 1.05
SOAK_SECONDS = 60.0


@dataclass(frozen=True)
class Reading:
    """Of one burst of requests."""

    rate: float
    cost: float
    """Seconds of the workers' processor time for each request."""


@dataclass(frozen=True)
class Size:
    requests: int
    rounds: int
    workers: tuple[int, ...]
    seconds: float
    """Of one reading at a fixed rate."""

    @property
    def fresh(self) -> int:
        return self.requests // 4


QUICK = Size(800, 2, (1,), 0.5)
FULL = Size(16_000, 5, (1, 2), 3.0)


def rows(folder: Path, *, quick: bool) -> Iterator[Row]:
    size = QUICK if quick else FULL
    generator = LoadGenerator(folder)
    with Issuer() as issuer:
        (folder / "authn.json").write_text(configuration(issuer))
        (folder / "jwks.json").write_text(json.dumps({issuer.url: issuer.jwks()}))
        repeated = _bodies(folder / "repeated", [issuer.token(f"user-{n}", audience="a") for n in range(REPEATED)])
        for workers in size.workers:
            with generator.servers(workers) as (ours, bare, only):
                for protocol in ("HTTP/1.1", "HTTP/2"):
                    count = size.fresh * size.rounds
                    tokens = [issuer.token(f"{protocol}-{workers}-{n}", audience="a") for n in range(count)]
                    different = _bodies(folder / "different", tokens)
                    servers = ours, bare, only
                    rate = yield from _compared(
                        generator, size, servers, protocol, workers, repeated, different, issuer
                    )
                    yield from _at_one_rate(generator, size, servers, protocol, workers, rate / 2, folder, issuer)
                    yield from _at_half(generator, size, ours, bare, protocol, workers, repeated)
    if not quick:
        yield from _soaked()


def _soaked() -> Iterator[Row]:
    """A minute of load while the file changes each second and the signing key every five."""
    seen = asyncio.run(soak(SOAK_SECONDS, workers=2))
    wrong = sum(seen.wrong.values())
    name = f"serve, {SOAK_SECONDS:g} s with {seen.reloads} reloads and {seen.rotations} new keys"
    asked = f"{seen.requests} requests"
    yield Row(f"{name}: wrong answers", wrong, seen.requests, "", wrong / seen.requests, "0", wrong == 0, "", asked)
    before, after = seen.memory_before_and_after()
    ratio = after / before
    met = ratio <= MEMORY_GOAL
    row = f"{name}: memory", after / 1e6, before / 1e6, "MB", ratio, f"≤ {MEMORY_GOAL} ×", met, "", "20 s earlier"
    yield Row(*row)


def _compared(
    generator: LoadGenerator,
    size: Size,
    servers: tuple[Server, Server, Server],
    protocol: str,
    workers: int,
    repeated: Path,
    different: Path,
    issuer: Issuer,
) -> Generator[Row, None, float]:
    """Each at its own saturation; returns ours with new tokens, in requests a second."""
    ours, bare, only = servers
    cached, peer, fresh, floor, nothing, alone = [], [], [], [], [], []
    for number in range(size.rounds):
        generator.burst(bare, protocol, repeated, REPEATED * workers)
        peer.append(generator.burst(bare, protocol, repeated, size.requests))
        # Results are remembered for seconds only, and by each worker.
        generator.burst(ours, protocol, repeated, 2 * REPEATED * workers)
        cached.append(generator.burst(ours, protocol, repeated, size.requests))
        fresh.append(generator.burst(ours, protocol, different, size.fresh, first=number * size.fresh))
        # As many requests of each: what the handshakes before them take is then the same part of it.
        floor.append(generator.burst(only, protocol, different, size.fresh, first=number * size.fresh))
        nothing.append(generator.burst(bare, protocol, different, size.fresh, first=number * size.fresh))
        alone.append(_authenticate_alone(issuer, min(size.fresh, 1000)))
    name = _name(protocol, workers)
    yield _rates(f"{name}, {REPEATED} tokens repeated, rate", cached, peer, RATE_GOAL)
    costs = [reading.cost for reading in cached], [reading.cost for reading in peer]
    yield ratio_row(f"{name}, {REPEATED} tokens repeated, CPU", costs, peer_name="bare Granian", goal=1 / RATE_GOAL)
    yield _rates(f"{name}, all tokens different, rate", fresh, peer, None)
    # The least of each: what else the machine does only ever adds.
    bare_cost, least = min(reading.cost for reading in nothing), min(alone)
    for side, what, goal in ((fresh, "", ABOVE_BARE_GOAL), (floor, " of what only calls authenticate", None)):
        new = [reading.cost for reading in side]
        above = min(new) - bare_cost
        ratio = above / least
        row = f"{name}, all tokens different, CPU above bare{what}"
        told, met = (f"≤ {goal} ×", ratio <= goal) if goal else ("none", True)
        spreads = f"±{spread(new):.0%} / ±{spread(alone):.0%}"
        yield Row(row, above * 1e6, least * 1e6, "µs", ratio, told, met, spreads, "authenticate alone")
    return median(reading.rate for reading in fresh)


def _at_one_rate(
    generator: LoadGenerator,
    size: Size,
    servers: tuple[Server, Server, Server],
    protocol: str,
    workers: int,
    rate: float,
    folder: Path,
    issuer: Issuer,
) -> Iterator[Row]:
    """All tokens different, and all three asked equally often.

    At saturation the bare application answers twice as many requests a second, and the more there are, the less often
    its threads sleep and are woken: what it takes for one depends on the rate by more than what is looked for.
    """
    count, rounds = size.fresh // 2, 2 * size.rounds
    tokens = [issuer.token(f"{protocol}-{workers}-at-{n}", audience="a") for n in range(count * rounds)]
    bodies = _bodies(folder / "different", tokens)
    costs: list[list[float]] = [[], [], []]
    alone: list[float] = []
    for number in range(rounds):
        for turn in range(3):
            index = (number + turn) % 3
            reading = generator.burst(servers[index], protocol, bodies, count, first=number * count, rate=rate)
            costs[index].append(reading.cost)
        alone.append(_authenticate_alone(issuer, min(count, 500)))
    ours, bare, only = costs
    name = f"{_name(protocol, workers)}, all tokens different, CPU above bare"
    for side, what, goal in ((ours, "", ABOVE_BARE_GOAL), (only, " of what only calls authenticate", None)):
        above = [max(0.0, mine - theirs) for mine, theirs in zip(side, bare, strict=True)]
        row = f"{name}{what}, at one rate"
        yield ratio_row(row, (above, alone), peer_name="authenticate alone", goal=goal)


def _at_half(
    generator: LoadGenerator, size: Size, ours: Server, bare: Server, protocol: str, workers: int, repeated: Path
) -> Iterator[Row]:
    """p99 at half of the rate that ours can bear, in turns with the bare one at the same rate.

    The median of several readings: on a machine whose cores the load generator and the workers share, one reading may
    be ten times the next, of either server. The last row is what no server could have changed: how late the load
    generator was woken, p99, in the very same readings.
    """
    half = median(generator.burst(ours, protocol, repeated, size.requests).rate for _ in range(3)) / 2
    count = max(500, int(half * size.seconds))
    readings: dict[str, tuple[list[float], list[float]]] = {"p99": ([], []), "late": ([], [])}
    for number in range(size.rounds):
        order = ((0, ours), (1, bare)) if number % 2 else ((1, bare), (0, ours))
        for index, server in order:
            told = generator.load(server, protocol, repeated, count, rate=half)
            for what, sides in readings.items():
                sides[index].append(max(told[what], 1e-6))
    row = f"{_name(protocol, workers)}, p99 at half of saturation"
    found = ratio_row(row, readings["p99"], peer_name="bare Granian", goal=None, unit="ms", scale=1e3)
    yield replace(found, goal=f"≤ {P99_GOAL_MS:g} ms", met=found.ours <= P99_GOAL_MS)
    row += ", how late the load generator was woken"
    yield ratio_row(row, readings["late"], peer_name="bare Granian", goal=None, unit="ms", scale=1e3)


def _name(protocol: str, workers: int) -> str:
    return f"serve, {protocol}, {workers} worker{'s' if workers > 1 else ''}"


def _rates(name: str, ours: Sequence[Reading], bare: Sequence[Reading], goal: float | None) -> Row:
    """The goal is a least ratio: the median of the ratios of neighbours, which a passing load slows alike."""
    mine, theirs = ([reading.rate for reading in side] for side in (ours, bare))
    return rate_row(name, (mine, theirs), peer_name="bare Granian", goal=goal, unit="req/s")


@dataclass(frozen=True)
class Server:
    pid: int
    port: int


class LoadGenerator:
    """The program in Go, and the certificates that it trusts."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        authority = CertificateAuthority()
        pair = authority.issue_server()
        self._tls = folder / "tls.crt", folder / "tls.key"
        self._tls[0].write_bytes(pair.chain_pem)
        self._tls[1].write_bytes(pair.key_pem)
        (folder / "ca.crt").write_bytes(authority.certificate_pem)
        go = shutil.which("go", path=f"{os.environ.get('PATH', '')}:/usr/local/go/bin")
        if go is None:
            raise SystemExit("bench.serve needs go, to build bench/peers/load")
        source = Path(__file__).parent / "peers" / "load"
        subprocess.run([go, "build", "-o", str(folder / "load"), "."], cwd=source, check=True, timeout=120)

    @contextmanager
    def servers(self, workers: int) -> Iterator[tuple[Server, Server, Server]]:
        """Ours, the bare one, and the one that only calls `authenticate`."""
        certificate, key = map(str, self._tls)
        port, bare_port, only_port = _free_port(), _free_port(), _free_port()
        ours = ["kubeauthn", "serve", str(self._folder / "authn.json"), "--listen", f"127.0.0.1:{port}"]
        ours += ["--tls-cert", certificate, "--tls-key", key, "--workers", str(workers)]
        bare = ["bench.serve_bare", certificate, key, str(bare_port), str(workers)]
        only = ["bench.serve_bare", certificate, key, str(only_port), str(workers), str(self._folder)]
        with running(ours, port) as pid, running(bare, bare_port) as bare_pid, running(only, only_port) as only_pid:
            yield Server(pid, port), Server(bare_pid, bare_port), Server(only_pid, only_port)

    def burst(
        self, server: Server, protocol: str, bodies: Path, count: int, *, first: int = 0, rate: float = 0
    ) -> Reading:
        before = processor_seconds(server.pid)
        told = self.load(server, protocol, bodies, count, first=first, rate=rate)
        return Reading(count / told["seconds"], (processor_seconds(server.pid) - before) / count)

    def load(
        self, server: Server, protocol: str, bodies: Path, count: int, *, first: int = 0, rate: float = 0
    ) -> dict[str, Any]:
        """Every answer must be an authenticated one."""
        command = [str(self._folder / "load"), "-address", f"127.0.0.1:{server.port}", "-bodies", str(bodies)]
        command += ["-ca", str(self._folder / "ca.crt"), "-requests", str(count), "-first", str(first)]
        command += ["-rate", str(rate), *(["-h2"] if protocol == "HTTP/2" else [])]
        done = subprocess.run(command, capture_output=True, check=True, timeout=300)
        told: dict[str, Any] = json.loads(done.stdout)
        if told["wrong"]:
            raise AssertionError(f"{told['wrong']} wrong answers: {told['example']}")
        return told


def configuration(issuer: Issuer) -> str:
    entry = {
        "issuer": {
            "url": issuer.url,
            "audiences": ["a"],
            "certificateAuthority": issuer.ca.certificate_pem.decode(),
        },
        "claimMappings": {"username": {"claim": "sub", "prefix": ""}},
    }
    return json.dumps(
        {"apiVersion": "apiserver.config.k8s.io/v1", "kind": "AuthenticationConfiguration", "jwt": [entry]}
    )


def _bodies(file: Path, tokens: Sequence[str]) -> Path:
    review = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenReview"}
    file.write_text("\n".join(json.dumps({**review, "spec": {"token": token}}) for token in tokens))
    return file


@contextmanager
def running(module_and_arguments: list[str], port: int) -> Iterator[int]:
    command = [sys.executable, "-m", *module_and_arguments]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        _until_it_listens(port)
        _until_it_rests(process.pid)
        yield process.pid
    finally:
        process.terminate()
        process.wait(30)


def _until_it_listens(port: int) -> None:
    for _ in range(600):
        try:
            socket.create_connection(("127.0.0.1", port), timeout=1).close()
        except OSError:
            time.sleep(0.05)
        else:
            return
    raise AssertionError(f"nobody listens on port {port}")


def _until_it_rests(pid: int) -> None:
    """Every worker is there and has its issuer's keys when none of them has anything left to do."""
    used, resting = -1.0, 0
    for _ in range(300):
        now = processor_seconds(pid)
        resting = resting + 1 if now - used < 0.005 else 0
        used = now
        if resting >= 8:
            return
        time.sleep(0.1)


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        found: int = probe.getsockname()[1]
        return found


def processor_seconds(pid: int) -> float:
    """Of all worker processes: the children of the one that was started. By the scheduler's clock, in nanoseconds."""
    total = 0
    for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split():
        for thread in Path(f"/proc/{child}/task").iterdir():
            with suppress(OSError):  # a thread that has just ended
                total += int((thread / "schedstat").read_text().split()[0])
    return total / 1e9


def _authenticate_alone(issuer: Issuer, count: int) -> float:
    """Seconds of processor time for a token that is new, in a loop that does nothing else."""
    authenticator = Authenticator(load_configuration(configuration(issuer)), keys={issuer.url: issuer.jwks()})
    tokens = [issuer.token(f"alone-{number}", audience="a") for number in range(count)]
    begun = time.process_time()
    for token in tokens:
        authenticator.authenticate(token)
    return (time.process_time() - begun) / count
