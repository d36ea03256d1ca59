"""Watches of minutes over many changes of the credential: no event is lost, none comes twice, no connection ends.

They begin before all other tests, last beside them, and what came of them is judged last (conftest.py puts the two
tests there). They are looked at as soon as their time is over: some libraries end every request after five minutes.
"""

from __future__ import annotations

import itertools
import os
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from kubeauthn.testing import Issuer, ScriptedPlugin
from tests.e2e.cluster import Cluster
from tests.e2e.processes import Running, poll
from tests.integration.adapters.conftest import found_drivers
from tests.integration.adapters.driver import Client, Watch
from tests.peers import find

SECONDS = 120.0
"""How long every watch lasts."""
CREDENTIAL_SECONDS = 15
TICK_SECONDS = 5.0


class LongWatches:
    """One watch for each adapter, and two of kubectl: with a plugin, and through the bridge."""

    def __init__(self, directory: Path, cluster: Cluster, issuer: Issuer) -> None:
        self.cluster = cluster
        self._issuer = issuer
        self._directory = directory
        self._open = ExitStack()
        self._stop = threading.Event()
        self._number = itertools.count()
        self.plugins: dict[str, ScriptedPlugin] = {}
        self.clients: dict[str, Client] = {}
        self.watches: dict[str, Watch] = {}
        self.programs: dict[str, Running] = {}
        self.ticks: list[str] = []
        self.seen: dict[str, list[str]] = {}
        self.error: BaseException | None = None

    def begin(self) -> None:
        self.cluster.grant("first:watcher")
        with pytest.MonkeyPatch.context() as patch:
            patch.setenv("HOME", str(self._directory))
            patch.setenv("XDG_STATE_HOME", str(self._directory / "state"))
            for number, driver in enumerate(found_drivers()):
                name = f"{driver.name}-{number}"  # two drivers may be of one library
                patch.setenv("KUBECONFIG", str(self._kubeconfig(name)))
                client = self._open.enter_context(driver.session())
                self.clients[name], self.watches[name] = client, client.watch_namespaces()
            own = self._kubeconfig("kubectl")
            bridged = self._directory / "bridged"
            self._kubeauthn(
                "bridge", "kubeconfig", "--kubeconfig", str(self._kubeconfig("bridge")), "--write", str(bridged)
            )
            for name, file in (("kubectl", own), ("bridge", bridged)):
                command = [str(find("kubectl")), "--kubeconfig", str(file), "get", "ns", "--watch", "-o", "name"]
                self.programs[name] = Running(command, self._directory / f"{name}.out")
            self._environ = dict(os.environ)
        for name, watch in self.watches.items():
            poll(lambda watch=watch: watch.next(20) == "kube-system", 30, f"{name} watches", interval=0)
        for name in self.programs:
            poll(lambda name=name: "kube-system" in self.output(name), 30, f"{name} watches")
        self._thread = threading.Thread(target=self._run)
        self._thread.start()

    def wait(self) -> None:
        """Until they have been looked at."""
        self._thread.join(SECONDS + 120)
        if self.error is not None:
            raise self.error
        assert not self._thread.is_alive(), "the watches are not over"

    def end(self) -> None:
        self._stop.set()
        self._thread.join(60)
        for running in self.programs.values():
            running.stop()
        subprocess.run(
            [sys.executable, "-m", "kubeauthn", "bridge", "stop", "--all"],
            env=self._environ, check=True, capture_output=True, timeout=60,
        )  # fmt: skip
        self._open.close()

    def output(self, name: str) -> list[str]:
        return [line.partition("/")[2] for line in self.programs[name].log.read_text().split()]

    def _kubeconfig(self, name: str) -> Path:
        plugin = self.plugins[name] = ScriptedPlugin(self._directory / "plugins" / name / "plugin")
        self._renew(plugin)
        return self.cluster.write_kubeconfig(f"watch-{name}", plugin.user())

    def _renew(self, plugin: ScriptedPlugin) -> None:
        token = self._issuer.token("watcher", expires_in=600, jti=str(next(self._number)))
        plugin.reply(token=token, expires_at=time.time() + CREDENTIAL_SECONDS)

    def _run(self) -> None:
        """A new token for every plugin and a request that needs it, now and then; a namespace every few seconds."""
        over = time.monotonic() + SECONDS
        try:
            for number in itertools.count():
                name = f"tick-{number:03}"
                self.cluster.kubectl("create", "namespace", name)
                self.ticks.append(name)
                if number % 3 == 2:
                    for plugin in self.plugins.values():
                        self._renew(plugin)
                    for driver, client in self.clients.items():
                        outcome = client.list_namespaces()
                        assert outcome.error is None, (driver, outcome)
                if self._stop.wait(TICK_SECONDS):
                    return
                if time.monotonic() > over:
                    break
            self._look()
        except BaseException as error:
            self.error = error

    def _look(self) -> None:
        """What each has seen, and that it still goes on."""
        last = self.ticks[-1]
        for name, watch in self.watches.items():
            seen = self.seen[name] = []

            def complete(watch: Watch = watch, seen: list[str] = seen) -> bool:
                seen += [one for one in iter(lambda: _next(watch), "") if one.startswith("tick-")]
                return last in seen

            poll(complete, 20, f"{name} has seen the last event")
            assert not watch.ended.is_set(), (name, watch.error)
        for name, running in self.programs.items():
            poll(lambda name=name: last in self.output(name), 20, f"{name} has seen the last event")
            self.seen[name] = [one for one in self.output(name) if one.startswith("tick-")]
            running.check_alive()

    def _kubeauthn(self, *words: str) -> None:
        subprocess.run([sys.executable, "-m", "kubeauthn", *words], check=True, capture_output=True, timeout=60)


@pytest.fixture(scope="session")
def watches(
    direct: Cluster, issuers: tuple[Issuer, Issuer], tmp_path_factory: pytest.TempPathFactory
) -> Iterator[LongWatches]:
    made = LongWatches(tmp_path_factory.mktemp("watches"), direct, issuers[0])
    made.begin()
    yield made
    made.end()


def test_first_the_watches_begin(watches: LongWatches):
    assert len(watches.watches) >= 10


def test_last_no_watch_has_lost_anything(watches: LongWatches):
    watches.wait()
    assert len(watches.ticks) > SECONDS / TICK_SECONDS / 3
    assert set(watches.seen) == {*watches.watches, *watches.programs}
    for name, seen in watches.seen.items():
        assert seen == watches.ticks, name
    for name in watches.watches:
        assert watches.plugins[name].runs >= 3, name


def _next(watch: Watch) -> str:
    return "" if watch.events.empty() else watch.events.get()
