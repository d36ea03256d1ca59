"""The credential on the hot path: cached and valid, asked for by every request."""

from __future__ import annotations

import asyncio
import json
import threading
import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

from bench import peer
from bench.measure import Row, count_row, difference_row, growth_rows, interleaved, ratio_row, seconds_per_call
from kubeauthn._core.kubeconfig.model import Cluster, ExecConfig
from kubeauthn.client.exec_source import ExecPlugin
from kubeauthn.client.refreshed import RefreshedSource
from kubeauthn.testing.plugins import PluginDirectory, ScriptedPlugin

if TYPE_CHECKING:
    from kubernetes.config.exec_provider import ExecProvider

CLUSTER = Cluster(server="https://127.0.0.1:6443")
STORM_SECONDS = 0.1


def scripted_source(folder: Path, name: str) -> tuple[RefreshedSource, ScriptedPlugin]:
    plugin = ScriptedPlugin(folder / name)
    plugin.reply(token="t" * 900, expires_in=3600)
    config = ExecConfig(str(plugin.path), "client.authentication.k8s.io/v1", interactive_mode="Never")
    return RefreshedSource(ExecPlugin(config, CLUSTER).make_credential), plugin


def rows(folder: Path, *, quick: bool) -> Iterator[Row]:
    calls, rounds = (20_000, 7) if quick else (100_000, 21)
    source, _ = scripted_source(folder, "hot")
    users = {"users": {"jane": {"authorization": "Bearer " + "t" * 900}}}

    def ours() -> str | None:
        authorization = source.get().authorization
        return authorization.reveal() if authorization else None

    def chain() -> str:
        return users["users"]["jane"]["authorization"]

    yield difference_row(
        "credential, cached, sync",
        interleaved(seconds_per_call(ours, calls), seconds_per_call(chain, calls), rounds),
        peer_name="a chain of dictionary look-ups",
        goal=2.0,
    )

    async def ours_async() -> None:
        (await source.get_async()).authorization.reveal()  # type: ignore[union-attr]

    async def chain_async() -> None:
        users["users"]["jane"]["authorization"]

    yield difference_row(
        "credential, cached, async",
        interleaved(_awaited(ours_async, calls), _awaited(chain_async, calls), rounds),
        peer_name="the same chain in a coroutine",
        goal=2.0,
    )
    yield from _beside_client_go(folder, source, calls // 10, rounds)
    yield from _storms(folder, 1 if quick else 5, (1, 10, 100, 1000))


def _beside_client_go(folder: Path, source: RefreshedSource, calls: int, rounds: int) -> Iterator[Row]:
    """A request that gets its credential: cached; and with the plugin run for it, which is a shell script."""
    lasting, ended = (
        PluginDirectory(folder / f"go-{name}").script("plugin", f"echo '{_reply(seconds)}'\n")
        for name, seconds in (("lasting", 3600), ("ended", -60))
    )
    with peer.started(cores=2) as client_go:
        if client_go is None:
            return
        client_go.order("prepare exec", name="cached", command=str(lasting))
        client_go.order("prepare exec", name="refresh", command=str(ended))

        def ours() -> dict[str, str]:
            headers = {"accept": "*/*"}
            headers["authorization"] = source.get().authorization.reveal()  # type: ignore[union-attr]
            return headers

        readings = interleaved(seconds_per_call(ours, calls), client_go.seconds_per_call("cached", calls), rounds)
        yield ratio_row("credential, cached, put into a request", readings, peer_name="client-go", goal=None)
        config = ExecConfig(str(lasting), "client.authentication.k8s.io/v1", interactive_mode="Never")
        run = seconds_per_call(ExecPlugin(config, CLUSTER).make_credential, 10)
        others = {"client-go": client_go.seconds_per_call("refresh", 10)}
        others["the official Python client"] = seconds_per_call(official_client(lasting).run, 10)
        for name, other in others.items():
            readings = interleaved(run, other, rounds)
            yield ratio_row("credential, one run of the plugin", readings, peer_name=name, goal=None)


def official_client(command: Path) -> ExecProvider:
    from kubernetes.config.exec_provider import ExecProvider
    from kubernetes.config.kube_config import ConfigNode

    entry = {"command": str(command), "apiVersion": "client.authentication.k8s.io/v1"}
    return ExecProvider(ConfigNode("exec", entry), None)


def _reply(seconds: int) -> str:
    ends = datetime.fromtimestamp(time.time() + seconds, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    status = {"token": "t" * 900, "expirationTimestamp": ends}
    return json.dumps({"apiVersion": "client.authentication.k8s.io/v1", "kind": "ExecCredential", "status": status})


def _awaited(function: Callable[[], object], calls: int) -> Callable[[], float]:
    async def loop() -> float:
        started = time.perf_counter()
        for _ in range(calls):
            await function()  # type: ignore[misc]
        return (time.perf_counter() - started) / calls

    return lambda: asyncio.run(loop())


def _storms(folder: Path, rounds: int, sizes: tuple[int, ...]) -> Iterator[Row]:
    """So many callers at the moment of expiry: one run of the plugin serves them all, and how long the last one waits.

    The plugin takes a tenth of a second, in which every caller comes to wait for it.
    """
    readings: dict[str, dict[int, list[float]]] = {"threads": {}, "tasks": {}, "client-go": {}}
    counts: dict[tuple[str, int], list[tuple[int, int]]] = {}
    with peer.started(cores=2) as client_go:
        for number in range(rounds):
            for size in sizes:
                for kind in readings if client_go else ("threads", "tasks"):
                    plugin = StormPlugin(folder / f"storm-{number}-{kind}-{size}")
                    if client_go and kind == "client-go":  # a caller that is not served is an error there
                        found = client_go.order("storm", command=str(plugin.path), callers=size)["seconds"], size
                    else:
                        found = STORMS[kind](plugin.source(), size)
                    readings[kind].setdefault(size, []).append(found[0])
                    counts.setdefault((kind, size), []).append((plugin.runs, found[1]))
    told = f"each of {rounds}" if rounds > 1 else "one reading"
    for kind in STORMS:
        for size in sizes:
            name = f"{size:,} {kind if size > 1 else kind[:-1]} at expiry"
            runs, served = zip(*counts[kind, size], strict=True)
            yield count_row(f"{name}: runs", max(runs), 1, "runs", told)
            yield count_row(f"{name}: served", min(served), size, "callers", told)
            if readings["client-go"]:
                pair = (readings[kind][size], readings["client-go"][size])
                more = {"peer_name": "client-go, goroutines", "unit": "ms", "scale": 1e3}
                yield ratio_row(f"{name}: until all are served", pair, goal=None, **more)
        yield from growth_rows(f"{kind} at expiry, until all are served", readings[kind], None, unit="ms", scale=1e3)


class StormPlugin:
    """A shell script that takes its time and writes down that it ran."""

    def __init__(self, folder: Path) -> None:
        self._runs = folder / "runs"
        body = f"echo run >>{self._runs}\nsleep {STORM_SECONDS}\necho '{_reply(3600)}'\n"
        self.path = PluginDirectory(folder).script("plugin", body)

    @property
    def runs(self) -> int:
        return len(self._runs.read_text().splitlines())

    def source(self) -> RefreshedSource:
        config = ExecConfig(str(self.path), "client.authentication.k8s.io/v1", interactive_mode="Never")
        return RefreshedSource(ExecPlugin(config, CLUSTER).make_credential)


def _threads(source: RefreshedSource, callers: int) -> tuple[float, int]:
    served: list[object] = []
    threads = [threading.Thread(target=lambda: served.append(source.get().authorization)) for _ in range(callers)]
    begun = time.perf_counter()
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return time.perf_counter() - begun, len(served)


def _tasks(source: RefreshedSource, callers: int) -> tuple[float, int]:
    async def all_of_them() -> tuple[float, int]:
        begun = time.perf_counter()
        served = await asyncio.gather(*(source.get_async() for _ in range(callers)))
        return time.perf_counter() - begun, len(served)

    return asyncio.run(all_of_them())


STORMS = {"threads": _threads, "tasks": _tasks}
