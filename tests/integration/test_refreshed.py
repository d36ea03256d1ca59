"""One run for many callers: threads, asyncio tasks, and both at once."""

from __future__ import annotations

import asyncio
import os
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from kubeauthn._core.credential import Credential
from kubeauthn._core.kubeconfig.model import Cluster, ExecConfig
from kubeauthn._secret import Secret
from kubeauthn.client.exec_source import ExecOptions, ExecPlugin, forget_shared_sources, shared_exec_source
from kubeauthn.client.refreshed import RefreshedSource
from kubeauthn.errors import CredentialError, CredentialWaiting, PluginFailed
from kubeauthn.testing.clock import FakeClock
from kubeauthn.testing.plugins import ScriptedPlugin

CLUSTER = Cluster(server="https://127.0.0.1:6443")


@pytest.fixture
def plugin(tmp_path: Path) -> ScriptedPlugin:
    scripted = ScriptedPlugin(tmp_path / "plugin")
    scripted.reply(token="t")
    return scripted


def source_of(plugin: ScriptedPlugin, clock: Callable[[], float] = time.time) -> RefreshedSource:
    config = ExecConfig(
        command=str(plugin.path), api_version="client.authentication.k8s.io/v1", interactive_mode="Never"
    )
    return RefreshedSource(ExecPlugin(config, CLUSTER, clock=clock).make_credential, clock=clock)


def test_used_across_many_requests(plugin: ScriptedPlugin) -> None:
    source = source_of(plugin)
    assert len({id(source.get()) for _ in range(50)}) == 1
    assert plugin.runs == 1


def test_expired_credentials_are_replaced(plugin: ScriptedPlugin) -> None:
    clock = FakeClock()
    plugin.reply(token="one", expires_at=clock() + 60)
    source = source_of(plugin, clock)
    first = source.get()
    clock.advance(60)
    assert source.get() is first
    plugin.reply(token="two", expires_at=clock() + 60)
    clock.advance(1)
    assert source.get() is not first
    assert plugin.runs == 2


def test_a_thousand_threads_one_run(plugin: ScriptedPlugin) -> None:
    plugin.delay(0.3)
    source = source_of(plugin)
    threads, seen = [], []
    for _ in range(1000):
        thread = threading.Thread(target=lambda: seen.append(source.get()))
        thread.start()
        threads.append(thread)
    for thread in threads:
        thread.join(20)
    assert len(seen) == 1000
    assert len({id(credential) for credential in seen}) == 1
    assert plugin.runs == 1


def test_a_thousand_tasks_one_run(plugin: ScriptedPlugin) -> None:
    plugin.delay(0.2)
    source = source_of(plugin)

    async def all_of_them() -> list[Credential]:
        return await asyncio.gather(*(source.get_async() for _ in range(1000)))

    seen = asyncio.run(all_of_them())
    assert len({id(credential) for credential in seen}) == 1
    assert plugin.runs == 1


@pytest.mark.parametrize("first", ["thread", "task"])
def test_threads_and_tasks_of_two_loops_share_one_run(plugin: ScriptedPlugin, first: str) -> None:
    plugin.delay(0.3)
    source = source_of(plugin)

    async def tasks() -> list[Credential]:
        return await asyncio.gather(*(source.get_async() for _ in range(10)))

    jobs: list[Callable[[], object]] = [
        source.get,
        source.get,
        lambda: asyncio.run(tasks()),
        lambda: asyncio.run(tasks()),
    ]
    if first == "task":
        jobs.reverse()
    with ThreadPoolExecutor(len(jobs)) as pool:
        futures = []
        for job in jobs:
            futures.append(pool.submit(job))
            time.sleep(0.02)  # so that the first one is the one to run the plugin
        results = [future.result(10) for future in futures]
    flat = [item for result in results for item in (result if isinstance(result, list) else [result])]
    assert len(flat) == 22
    assert len({id(credential) for credential in flat}) == 1
    assert plugin.runs == 1


def test_the_loop_goes_on_while_a_plugin_runs(plugin: ScriptedPlugin) -> None:
    plugin.delay(0.3)
    source = source_of(plugin)

    async def count_while_waiting() -> int:
        waiting = asyncio.ensure_future(source.get_async())
        turns = 0
        while not waiting.done():
            await asyncio.sleep(0.01)
            turns += 1
        await waiting
        return turns

    assert asyncio.run(count_while_waiting()) > 5


def test_a_cancelled_waiter_takes_nothing_from_the_others(plugin: ScriptedPlugin) -> None:
    plugin.delay(0.3)
    source = source_of(plugin)

    async def scene() -> Credential:
        first = asyncio.ensure_future(source.get_async())
        second = asyncio.ensure_future(source.get_async())
        await asyncio.sleep(0.05)
        first.cancel()
        return await second

    assert asyncio.run(scene()).token
    assert plugin.runs == 1


def test_a_loop_that_closes_meanwhile_harms_nobody(plugin: ScriptedPlugin) -> None:
    plugin.delay(0.4)
    source = source_of(plugin)

    async def give_up() -> None:
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(source.get_async(), 0.05)

    started = time.monotonic()
    asyncio.run(give_up())
    assert time.monotonic() - started < 0.35, "the loop waited for the plugin"
    assert source.get().token
    assert plugin.runs == 1


def test_waiters_share_the_failure_and_then_nobody_runs_in_a_hot_loop(plugin: ScriptedPlugin) -> None:
    clock = FakeClock()
    plugin.fail(7)
    plugin.delay(0.2)
    source = source_of(plugin, clock)

    def outcome() -> BaseException | None:
        try:
            source.get()
        except CredentialError as error:
            return error
        return None

    with ThreadPoolExecutor(10) as pool:
        errors = list(pool.map(lambda _: outcome(), range(10)))
    assert all(isinstance(error, PluginFailed | CredentialWaiting) for error in errors)
    assert plugin.runs == 1
    for _ in range(100):
        error = outcome()
        assert isinstance(error, CredentialWaiting)
    assert "failed with exit code 7; next attempt in 1.0 s" in str(error)
    assert plugin.runs == 1

    plugin.reply(token="t")
    clock.advance(1.01)
    assert outcome() is None
    assert plugin.runs == 2


def test_a_plugin_that_fails_for_half_a_minute_runs_six_times(plugin: ScriptedPlugin) -> None:
    clock = FakeClock()
    plugin.fail(1)
    source = source_of(plugin, clock)
    for tenth in range(400):
        if tenth == 300:
            plugin.reply(token="t")
        try:
            source.get()
            break
        except CredentialError:
            clock.advance(0.1)
    assert source.get().token
    assert tenth < 320
    assert plugin.runs == 6  # at 0, 1, 3, 7, 15 and 31 s


def test_refused_runs_once_and_only_if_not_already_replaced(plugin: ScriptedPlugin) -> None:
    source = source_of(plugin)
    old = source.get()
    source.accepted(old)
    with ThreadPoolExecutor(20) as pool:
        renewed = list(pool.map(lambda _: (source.refused(old), source.get())[1], range(20)))
    assert len({id(credential) for credential in renewed}) == 1
    assert renewed[0] is not old
    assert plugin.runs == 2


def test_clients_of_the_same_entry_and_cluster_share_one_run(plugin: ScriptedPlugin) -> None:
    def config() -> ExecConfig:
        return ExecConfig(str(plugin.path), "client.authentication.k8s.io/v1", interactive_mode="Never")

    forget_shared_sources()
    one = shared_exec_source(config(), Cluster(server="https://a"), ExecOptions())
    two = shared_exec_source(config(), Cluster(server="https://a"), ExecOptions())
    other = shared_exec_source(config(), Cluster(server="https://b"), ExecOptions())
    assert one is two
    assert other is not one
    one.get(), two.get(), other.get()
    assert plugin.runs == 2
    forget_shared_sources()
    shared_exec_source(config(), Cluster(server="https://a"), ExecOptions()).get()
    assert plugin.runs == 3


def test_an_interrupt_is_the_callers_own() -> None:
    def interrupted() -> Credential:
        raise KeyboardInterrupt

    source = RefreshedSource(interrupted)
    with pytest.raises(KeyboardInterrupt):
        source.get()
    with pytest.raises(KeyboardInterrupt):  # no waiting: the plugin has not failed
        source.get()


def test_a_thread_that_is_already_making_it_is_told_so_instead_of_waiting_for_itself() -> None:
    """A signal handler that sends a request while a plugin runs."""
    inner: list[str] = []

    def asks_again() -> Credential:
        with pytest.raises(CredentialError) as caught:
            source.get()
        inner.append(str(caught.value))
        return Credential(token=Secret("t"))

    source = RefreshedSource(asks_again)
    assert source.get().token
    assert inner == ["this thread is already getting the credential"]


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_a_child_forked_during_a_run_is_not_stuck() -> None:
    release = threading.Event()
    calls: list[int] = []

    def slow() -> Credential:
        calls.append(1)
        if len(calls) == 1:
            release.wait(10)
        return Credential(token=Secret("t"))

    source = RefreshedSource(slow)
    runner = threading.Thread(target=source.get)
    runner.start()
    while not calls:
        time.sleep(0.01)
    with source._lock:  # the worst moment: some thread holds the lock
        child = os.fork()
        if child == 0:
            os._exit(0 if source.get().token else 1)
    release.set()
    runner.join(5)
    deadline = time.monotonic() + 5
    status = None
    while time.monotonic() < deadline and status is None:
        done, status_now = os.waitpid(child, os.WNOHANG)
        status = status_now if done else None
        time.sleep(0.01)
    if status is None:
        os.kill(child, 9)
        os.waitpid(child, 0)
    assert status == 0


def test_where_no_thread_can_be_started_nobody_waits_for_ever(
    plugin: ScriptedPlugin, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = source_of(plugin)

    def full(thread: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    async def scene() -> Credential:
        with monkeypatch.context() as patched:
            patched.setattr(threading.Thread, "start", full)
            with pytest.raises(CredentialError, match="no thread to get the credential in: can't start new thread"):
                await source.get_async()
        async with asyncio.timeout(20):
            return await source.get_async()

    assert asyncio.run(scene()).token == Secret("t")
    assert plugin.runs == 1
