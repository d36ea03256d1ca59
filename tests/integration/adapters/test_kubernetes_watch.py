"""The shared-informer part of the seed's test plan, with `kubernetes.watch` in a loop as controllers have it."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import pytest
from kubernetes import client, watch

from kubeauthn.client.kubernetes import api_client
from kubeauthn.errors import CredentialError, CredentialWaiting, InteractionRequired, PluginFailed
from kubeauthn.testing import ApiServer, PluginDirectory, ScriptedPlugin
from tests.conftest import in_ci

PAUSE_SECONDS = 0.02
SECONDS = 20


@pytest.fixture
def server() -> Iterator[ApiServer]:
    with ApiServer() as running:
        running.accept_token("one", "jane")
        yield running


@pytest.fixture
def plugin(tmp_path: Path) -> ScriptedPlugin:
    return ScriptedPlugin(tmp_path / "plugin")


@pytest.fixture
def kubeconfig(server: ApiServer, plugin: ScriptedPlugin, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    path = server.write_kubeconfig(tmp_path / "config", user=plugin.user())
    monkeypatch.setenv("KUBECONFIG", str(path))
    return path


class Informer:
    """Watches namespaces and begins anew whenever that ends, for whatever reason."""

    def __init__(self, core: client.CoreV1Api) -> None:
        self.seen: list[str] = []
        self.errors: list[Exception] = []
        self._core = core
        self._stopped = threading.Event()
        self._watch: watch.Watch | None = None
        self._thread = threading.Thread(target=self._run, daemon=True)

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        self._stopped.set()
        if self._watch is not None:
            self._watch.stop()
        self._thread.join(SECONDS)
        assert not self._thread.is_alive()

    def _run(self) -> None:
        while not self._stopped.wait(PAUSE_SECONDS):
            self._watch = watch.Watch()
            try:
                for event in self._watch.stream(self._core.list_namespace, timeout_seconds=60):
                    self.seen.append(event["object"].metadata.name)
            except Exception as error:
                self.errors.append(error)


@contextmanager
def informer() -> Iterator[Informer]:
    with api_client() as api:
        running = Informer(client.CoreV1Api(api))
        running.start()
        try:
            yield running
        finally:
            running.stop()


def recovers(server: ApiServer, plugin: ScriptedPlugin, wait_in_failure: Callable[[Informer], object]) -> float:
    """The plugin fails, and is healed when `wait_in_failure` returns. How many seconds it took for an event to come."""
    plugin.fail(1)
    started = time.monotonic()
    with informer() as running:
        wait_in_failure(running)
        assert server.connections == []
        plugin.reply(token="one")
        # The next waiting time is not longer than all that went before it, and a second.
        server.wait_for(lambda: "default" in running.seen, seconds=time.monotonic() - started + SECONDS)
        seconds = time.monotonic() - started
        errors = list(running.errors)
    assert {request.token for request in server.requests} == {"one"}
    # The loop kept asking all the while; almost every time it was told at once to wait, and why.
    assert len(errors) > 10
    assert {type(error) for error in errors} == {PluginFailed, CredentialWaiting}
    assert all("failed with exit code 1" in str(error) for error in errors)
    assert failures(errors) == plugin.runs - 1
    return seconds


def failures(errors: Sequence[Exception]) -> int:
    return sum(isinstance(error, PluginFailed) for error in errors)


def test_a_plugin_that_fails_twice(server: ApiServer, plugin: ScriptedPlugin, kubeconfig: Path):
    seconds = recovers(server, plugin, lambda running: server.wait_for(lambda: failures(running.errors) == 2, SECONDS))
    assert plugin.runs == 3
    assert seconds >= 3  # one after the first failure, two after the second


@pytest.mark.skipif(not in_ci(), reason="takes half a minute; CI runs it")
def test_a_plugin_that_fails_for_thirty_seconds(server: ApiServer, plugin: ScriptedPlugin, kubeconfig: Path):
    recovers(server, plugin, lambda running: time.sleep(30))
    assert plugin.runs == 6  # at 0, 1, 3, 7, 15 and 31 seconds


def test_a_plugin_that_must_ask_somebody_is_not_even_run_where_there_is_no_terminal(
    server: ApiServer, plugin: ScriptedPlugin, kubeconfig: Path
):
    server.write_kubeconfig(kubeconfig, user=plugin.user(interactiveMode="Always"))
    with informer() as running:
        server.wait_for(lambda: len(running.errors) > 5)
    assert isinstance(running.errors[0], InteractionRequired)
    assert all(isinstance(error, CredentialError) for error in running.errors)
    assert plugin.runs == 0
    assert server.connections == []


@pytest.mark.parametrize("mode", ["Never", "IfAvailable"])
def test_a_plugin_that_asks_anyway_hears_the_end_of_input_and_nothing_hangs(
    server: ApiServer, kubeconfig: Path, tmp_path: Path, mode: str
):
    asked = tmp_path / "asked"
    path = PluginDirectory(tmp_path / "plugins").script("asks", f'echo asked >>"{asked}"\nread answer || exit 9\n')
    entry = {"apiVersion": "client.authentication.k8s.io/v1", "command": str(path), "interactiveMode": mode}
    server.write_kubeconfig(kubeconfig, user={"exec": entry})
    started = time.monotonic()
    with informer() as running:
        server.wait_for(lambda: running.errors)
    assert time.monotonic() - started < SECONDS
    assert isinstance(running.errors[0], PluginFailed)
    assert running.errors[0].exit_code == 9
    assert len(asked.read_text().splitlines()) == sum(isinstance(error, PluginFailed) for error in running.errors)
    assert server.connections == []


def test_rotation_under_a_running_watch(server: ApiServer, plugin: ScriptedPlugin, kubeconfig: Path):
    old, new = server.ca.issue_client("jane"), server.ca.issue_client("jane")
    plugin.reply(certificate=old)
    with informer() as running:
        server.wait_for(lambda: "default" in running.seen)
        with api_client() as api:  # somebody else in the process, who shares the credential
            server.revoke_serial(old.serial)
            plugin.reply(certificate=new)
            assert client.CoreV1Api(api).list_namespace().items
        assert server.requests[-1].certificate_serial == new.serial
        server.emit("namespaces", "on-the-old-connection")
        server.wait_for(lambda: "on-the-old-connection" in running.seen)
        assert server.open_watches == 1
        # The server ends it, as it does after some minutes; the next one shows the new certificate.
        server.close_watches()
        server.wait_for(lambda: watched_with(server) == [old.serial, new.serial] and server.open_watches == 1)
        server.emit("namespaces", "on-the-new-connection")
        server.wait_for(lambda: "on-the-new-connection" in running.seen)
        assert running.errors == []
    assert watched_with(server) == [old.serial, new.serial]
    assert plugin.runs == 2


def watched_with(server: ApiServer) -> list[int | None]:
    """The certificates that watches were asked for with, in order."""
    return [request.certificate_serial for request in server.requests if request.is_watch]
