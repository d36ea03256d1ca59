"""The credential on the hot path: cached and valid, asked for by every request."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path

from bench import peer
from bench.measure import Row, count_row, difference_row, interleaved, ratio_row, seconds_per_call
from kubeauthn._core.kubeconfig.model import Cluster, ExecConfig
from kubeauthn.client.exec_source import ExecPlugin
from kubeauthn.client.refreshed import RefreshedSource
from kubeauthn.testing.plugins import PluginDirectory, ScriptedPlugin

CLUSTER = Cluster(server="https://127.0.0.1:6443")


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
    for callers in (1, 10, 100) if quick else (1, 10, 100, 1000):
        yield from _storms(folder, callers)


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
        readings = interleaved(run, client_go.seconds_per_call("refresh", 10), rounds)
        yield ratio_row("credential, one run of the plugin", readings, peer_name="client-go", goal=None)


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


def _storms(folder: Path, callers: int) -> Iterator[Row]:
    import threading

    source, plugin = scripted_source(folder, f"threads-{callers}")
    plugin.delay(0.3)
    served: list[object] = []
    threads = [threading.Thread(target=lambda: served.append(source.get())) for _ in range(callers)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    yield count_row(f"{callers:,} {'thread' if callers == 1 else 'threads'} at expiry: runs", plugin.runs, 1, "runs")
    yield count_row(
        f"{callers:,} {'thread' if callers == 1 else 'threads'} at expiry: served", len(served), callers, "callers"
    )

    source, plugin = scripted_source(folder, f"tasks-{callers}")
    plugin.delay(0.3)

    async def all_of_them() -> int:
        return len(await asyncio.gather(*(source.get_async() for _ in range(callers))))

    count = asyncio.run(all_of_them())
    yield count_row(f"{callers:,} {'task' if callers == 1 else 'tasks'} at expiry: runs", plugin.runs, 1, "runs")
    yield count_row(f"{callers:,} {'task' if callers == 1 else 'tasks'} at expiry: served", count, callers, "callers")
