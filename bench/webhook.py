"""`kubeauthn serve` beside a minimal Go webhook on kube-apiserver's own authenticator, and beside a bare Granian.

Both check the KEP's example over TLS 1.3 and HTTP/1.1 with kept connections, on the same cores; the client, one for
all, is a Go program that shares these cores. Requests per second are of the whole machine. "Every token new" is
without any cache: the Go webhook has none, and ours has not seen the token. Otherwise a thousand tokens come again and
again, and whoever has a cache uses it.
"""

from __future__ import annotations

import json
import statistics
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from bench import peer
from bench.measure import Row, rate_row, ratio_row
from bench.processes import await_answers, free_port, megabytes, processor_seconds, running
from bench.tokens import AUDIENCE, EXAMPLE, EXAMPLE_ENTRY, HEAD, ISSUER, claims, for_kubernetes
from kubeauthn.server import limits
from kubeauthn.testing import CertificateAuthority, Issuer

GO_WEBHOOK = "Go webhook"
GRANIAN = "bare Granian"
REPEATED = 1000
CONNECTIONS = 16
NEW_GOAL = {2: 1.3}
CACHED_GOAL = {2: 0.7}
ACCEPTED = b'"authenticated":true'
RELOADED = "configuration reloaded"


@dataclass
class Served:
    """A server under measurement, and every reading of it."""

    name: str
    port: int
    pid: int
    at_rest: float = 0.0
    readings: dict[str, list[float]] = field(default_factory=dict)

    def note(self, name: str, value: float) -> None:
        self.readings.setdefault(name, []).append(value)


def rows(folder: Path, *, quick: bool) -> Iterator[Row]:
    count, rounds = (1200, 3) if quick else (6000, 7)
    with ExitStack() as stack:
        client = stack.enter_context(peer.started(cores=2))
        if client is None:
            return
        issuer = stack.enter_context(Issuer())
        tls = CertificateAuthority()
        pair = tls.issue_server()
        (folder / "tls.crt").write_bytes(pair.chain_pem)
        (folder / "tls.key").write_bytes(pair.key_pem)
        (folder / "ours.yaml").write_text(for_issuer(EXAMPLE, issuer))
        (folder / "go.yaml").write_text(for_kubernetes(for_issuer(EXAMPLE, issuer)))
        (folder / "keys.json").write_text(json.dumps(issuer.jwks()))
        load = Load(client, tls)
        repeated = load.requests(issuer, REPEATED)
        for workers in (2,) if quick else (1, 2):
            yield from _webhooks(folder, load, issuer, repeated, workers, count, rounds)
        yield from _connections(
            folder, load, repeated, (1, 10, 100) if quick else (1, 10, 100, 1000), count, 1 if quick else rounds
        )
        yield from _reload(folder, load, issuer, 16 if quick else 64)


def for_issuer(text: str, issuer: Issuer) -> str:
    authority = json.dumps(issuer.ca.certificate_pem.decode())
    return text.replace(f"url: {ISSUER}\n", f"url: {issuer.url}\n    certificateAuthority: {authority}\n")


def request(token: str) -> str:
    review = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenReview", "spec": {"token": token}}
    body = json.dumps(review)
    return f"POST / HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\ncontent-length: {len(body)}\r\n\r\n{body}"


class Load:
    """The client."""

    def __init__(self, client: peer.Peer, tls: CertificateAuthority) -> None:
        self._client = client
        self._authority = tls.certificate_pem.decode()
        self.context = tls.client_context()

    def requests(self, issuer: Issuer, count: int) -> list[str]:
        one = issuer.token
        given = ({**claims(), "iss": issuer.url, "aud": AUDIENCE} for _ in range(count))
        return [request(one(each.pop("sub"), audience=AUDIENCE, **each)) for each in given]

    def ask(self, server: Served, requests: list[str], count: int, connections: int) -> dict[str, Any]:
        address = f"127.0.0.1:{server.port}"
        return self._client.order(
            "load",
            address=address,
            authority=self._authority,
            requests=requests,
            connections=connections,
            count=count,
        )

    def measure(self, server: Served, what: str, requests: list[str], count: int, connections: int) -> None:
        before = processor_seconds(server.pid)
        found = self.ask(server, requests, count, connections)
        server.note(f"{what} cpu", (processor_seconds(server.pid) - before) / count)
        for name in ("rate", "p50", "p99"):
            server.note(f"{what} {name}", found[name])


def _start(stack: ExitStack, folder: Path, load: Load, name: str, workers: int, probe: str) -> Served:
    port = free_port()
    tls = [str(folder / "tls.crt"), str(folder / "tls.key")]
    if name.startswith(GO_WEBHOOK):
        command = [str(peer.program()), "webhook", f"--config={folder / 'go.yaml'}", f"--keys={folder / 'keys.json'}"]
        command += [f"--tls-cert={tls[0]}", f"--tls-key={tls[1]}", f"--listen=127.0.0.1:{port}"]
        command += ["--cache"] if name.endswith("cache") else []
    elif name == GRANIAN:
        command = [sys.executable, "-m", "bench.serve_bare", *tls, str(port), str(workers)]
    else:
        command = [sys.executable, "-m", "kubeauthn", "serve", str(folder / "ours.yaml"), "--listen"]
        command += [f"127.0.0.1:{port}", "--workers", str(workers), "--tls-cert", tls[0], "--tls-key", tls[1]]
    log = folder / f"{name}-{workers}.log"
    pid = stack.enter_context(running(command, log=log, environment={"GOMAXPROCS": str(workers)}))
    await_answers(port, load.context, probe.encode(), ACCEPTED, 20 * workers)
    return Served(name, port, pid, at_rest=megabytes(pid))


def _webhooks(
    folder: Path, load: Load, issuer: Issuer, repeated: list[str], workers: int, count: int, rounds: int
) -> Iterator[Row]:
    with ExitStack() as stack:
        ours, go, go_cached, bare = (
            _start(stack, folder, load, name, workers, repeated[0])
            for name in ("ours", GO_WEBHOOK, f"{GO_WEBHOOK} with cache", GRANIAN)
        )
        for number in range(rounds):
            new = load.requests(issuer, count)
            for server in (ours, go) if number % 2 else (go, ours):
                load.measure(server, "new", new, count, CONNECTIONS)
            for server in (ours, go_cached, bare) if number % 2 else (bare, go_cached, ours):
                load.ask(server, repeated, REPEATED * workers, CONNECTIONS)  # results are remembered for seconds only
                load.measure(server, "cached", repeated, count, CONNECTIONS)
        loaded = {server.name: megabytes(server.pid) for server in (ours, go, go_cached)}
    cores = f"{workers} worker{'s' if workers > 1 else ''}"
    for what, title, other, goals in (
        ("new", "every token new", go, NEW_GOAL),
        ("cached", "1,000 tokens again and again", go_cached, {}),
        ("cached", "1,000 tokens again and again", bare, CACHED_GOAL),
    ):
        title = f"webhook: {cores}, {title}"
        pairs = {name: (ours.readings[f"{what} {name}"], other.readings[f"{what} {name}"]) for name in _MEASURED}
        yield rate_row(title, pairs["rate"], peer_name=other.name, goal=goals.get(workers))
        yield ratio_row(f"{title}: processor time", pairs["cpu"], peer_name=other.name, goal=None)
        for name in ("p50", "p99"):
            yield ratio_row(f"{title}: {name}", pairs[name], peer_name=other.name, goal=None, unit="ms", scale=1e3)
    yield _memory_row(f"webhook: {cores}, memory at rest", ours.at_rest, go.at_rest)
    yield _memory_row(f"webhook: {cores}, memory after the load", loaded[ours.name], loaded[go_cached.name])


_MEASURED = ("rate", "p50", "p99", "cpu")


def _memory_row(name: str, ours: float, go: float) -> Row:
    return Row(name, ours, go, "MB", ours / go, "none", True, "", GO_WEBHOOK)


def _connections(
    folder: Path, load: Load, repeated: list[str], sizes: tuple[int, ...], count: int, rounds: int
) -> Iterator[Row]:
    """How both bear more connections; the tokens are known to the cache."""
    with ExitStack() as stack:
        names = ("ours", f"{GO_WEBHOOK} with cache")
        ours, go = (_start(stack, folder, load, name, 2, repeated[0]) for name in names)
        for _ in range(rounds):
            for size in sizes:
                for server in (ours, go):
                    load.ask(server, repeated, REPEATED * 2, CONNECTIONS)
                    load.measure(server, str(size), repeated, max(count, size), size)
    for size in sizes:
        title = f"webhook: 2 workers, {size:,} connection{'s' if size > 1 else ''}"
        pairs = {name: (ours.readings[f"{size} {name}"], go.readings[f"{size} {name}"]) for name in ("rate", "p99")}
        yield rate_row(title, pairs["rate"], peer_name=go.name, goal=None)
        yield ratio_row(f"{title}: p99", pairs["p99"], peer_name=go.name, goal=None, unit="ms", scale=1e3)


def _reload(folder: Path, load: Load, issuer: Issuer, count: int) -> Iterator[Row]:
    """A file of so many issuers takes another's place while requests come in."""
    with ExitStack() as stack:
        others = [stack.enter_context(Issuer(ca=issuer.ca)) for _ in range(count - 1)]
        for other in others:
            other.rotate("ES256")
        entries = "".join(for_issuer(EXAMPLE_ENTRY, each) for each in (issuer, *others))
        file = folder / "ours.yaml"
        file.write_text(HEAD + entries)
        new = load.requests(issuer, 400)
        server = _start(stack, folder, load, "ours", 1, new[0])
        log = folder / "ours-1.log"
        rate = load.ask(server, new, 1200, 4)["rate"]
        quiet = load.ask(server, new, int(rate * 2), 4)
        begun, taken = time.monotonic(), []

        def change() -> None:
            replacement = folder / "next.yaml"
            replacement.write_text(HEAD + entries.replace(":external-user", ":someone-else"))
            replacement.replace(file)
            while RELOADED not in log.read_text() and time.monotonic() - begun < 60:
                time.sleep(0.01)
            taken.append(time.monotonic() - begun)

        changing = threading.Thread(target=change)
        changing.start()
        waits = []
        while changing.is_alive():
            waits.append(load.ask(server, new, max(100, int(rate / 4)), 4)["p99"])
        changing.join()
    name = f"webhook: a file of {count} issuers takes effect"
    yield _seen_row(name, taken[0], limits.LOOK_SECONDS, "the pause between two looks at the file")
    yield _seen_row(f"{name}: p99 meanwhile", statistics.median(waits), quiet["p99"], "p99 before")
    yield _seen_row(f"{name}: the worst p99 of a quarter of a second", max(waits), quiet["p99"], "p99 before")


def _seen_row(name: str, ours: float, beside: float, peer_name: str) -> Row:
    return Row(name, ours * 1e3, beside * 1e3, "ms", ours / beside, "none", True, "", peer_name)
