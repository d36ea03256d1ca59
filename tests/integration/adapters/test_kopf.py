"""A real operator, logged in by `kubeauthn.client.kopf.login`: the shared-informer part of KEP-541's test plan."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import aiohttp
import kopf
import pytest

from kubeauthn._io import kubeconfig as kubeconfig_shell
from kubeauthn.client.kopf import login
from kubeauthn.errors import CredentialError, PluginFailed
from kubeauthn.testing import PluginDirectory
from tests.conftest import in_ci
from tests.integration.adapters.lab import Lab


class Operator:
    """An operator that watches configmaps, in a thread of its own."""

    def __init__(self, param: Any = None) -> None:
        self.logins = 0
        self.seen: list[str] = []
        self.result: Future[None] = Future()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._stop: asyncio.Event | None = None
        self._registry = kopf.OperatorRegistry()
        self._settings = kopf.OperatorSettings()
        self._settings.posting.enabled = False
        # Ten times a second, to see that it is not kopf's patience that bounds the runs of the plugin.
        self._settings.networking.error_backoffs = [0.1] * 1000
        self._register(param)
        self._thread = threading.Thread(target=self._run, daemon=True)

    def _register(self, param: Any) -> None:
        @kopf.on.login(registry=self._registry, param=param)
        async def counted_login(**kwargs: Any) -> kopf.AiohttpSession | None:
            self.logins += 1
            return await login(**kwargs)

        @kopf.on.event("configmaps", registry=self._registry)
        async def note(name: str, **_: Any) -> None:
            self.seen.append(name)

        @kopf.on.create("secrets", registry=self._registry)
        async def mark(patch: kopf.Patch, **_: Any) -> None:
            patch.metadata.labels["marked"] = "yes"

    def _run(self) -> None:
        try:
            asyncio.run(self._operate())
        except BaseException as error:
            self.result.set_exception(error)
        else:
            self.result.set_result(None)

    async def _operate(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._stop = asyncio.Event()
        try:
            await kopf.operator(
                registry=self._registry,
                settings=self._settings,
                standalone=True,
                clusterwide=True,
                stop_flag=self._stop,
            )
        finally:
            await asyncio.sleep(0.1)  # aiohttp says goodbye to TLS connections in the background

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        if self._loop is not None and self._stop is not None:
            with suppress(RuntimeError):  # the loop is closed: it has ended by itself
                self._loop.call_soon_threadsafe(self._stop.set)
        self._thread.join(20)
        assert not self._thread.is_alive()


@contextmanager
def running(lab: Lab, param: Any = None) -> Iterator[Operator]:
    operator = Operator(param)
    operator.start()
    try:
        lab.server.emit("configmaps", "at-the-start")
        wait(lab, lambda: "at-the-start" in operator.seen)
        wait(lab, lambda: watches(lab, "configmaps"))
        yield operator
    finally:
        operator.stop()
    operator.result.result(0)  # it ended because it was told to, and not by an error


def wait(lab: Lab, predicate: Callable[[], object], seconds: float = 15.0) -> None:
    lab.wait_for(predicate, seconds)


def watches(lab: Lab, plural: str) -> list[Any]:
    return [each for each in lab.server.requests if each.is_watch and each.path.endswith(f"/{plural}")]


def open_serials(lab: Lab) -> set[int | None]:
    return {each.certificate_serial for each in lab.server.connections if each.is_open}


@pytest.fixture
def ready(lab: Lab) -> Lab:
    lab.server.accept_token("one", user="jane")
    lab.plugin.reply(token="one")
    lab.use()
    return lab


def test_a_new_token_does_not_disturb_a_running_watch_nor_the_next(ready: Lab):
    with running(ready) as operator:
        ready.plugin.reply(token="two")
        ready.server.accept_only("two", user="jane")
        ready.server.emit("configmaps", "on-the-old-watch")
        wait(ready, lambda: "on-the-old-watch" in operator.seen)
        before = len(watches(ready, "configmaps"))
        ready.server.close_watches()
        wait(ready, lambda: [each.token for each in watches(ready, "configmaps")[before:]][-1:] == ["two"])
        ready.server.emit("configmaps", "on-the-new-watch")
        wait(ready, lambda: "on-the-new-watch" in operator.seen)
    assert operator.logins == 1
    assert ready.plugin.runs == 2


def test_a_new_certificate_is_used_by_the_next_watch(lab: Lab):
    old, new = lab.ca.issue_client("old"), lab.ca.issue_client("new")
    lab.plugin.reply(certificate=old)
    lab.use()
    with running(lab) as operator:
        lab.server.revoke_serial(old.serial)
        lab.plugin.reply(certificate=new)
        lab.server.emit("configmaps", "on-the-old-watch")
        wait(lab, lambda: "on-the-old-watch" in operator.seen)
        lab.server.close_watches()
        wait(lab, lambda: watches(lab, "configmaps")[-1].certificate_serial == new.serial)
        lab.server.emit("configmaps", "on-the-new-watch")
        wait(lab, lambda: "on-the-new-watch" in operator.seen)
        wait(
            lab, lambda: old.serial not in [each.certificate_serial for each in lab.server.connections if each.is_open]
        )
    assert operator.logins == 1
    assert lab.plugin.runs == 2


def test_a_patch_that_is_refused_does_not_end_the_watches(ready: Lab):
    """kopf would drop its session, and all watches with it, to log in again; then it would repeat the patch."""
    with running(ready) as operator:
        ready.plugin.reply(token="two")
        ready.server.accept_only("two", user="jane")
        open_before = ready.server.open_watches
        ready.server.emit("secrets", "new")
        wait(ready, lambda: "yes" in (ready.server.objects("secrets")[0]["metadata"].get("labels") or {}).values())
        assert ready.server.open_watches == open_before
    assert operator.logins == 1
    assert [each.token for each in ready.server.requests if each.method == "PATCH"][:2] == ["one", "two"]


def recovers(lab: Lab, seconds: float) -> int:
    """The plugin fails for so long while the operator must log in anew. How often was it run?"""
    with running(lab) as operator:
        before = lab.plugin.runs
        lab.plugin.fail(1)
        lab.server.accept_only("two", user="jane")
        lab.server.close_watches()
        wait(lab, lambda: lab.plugin.runs > before)
        deadline = time.monotonic() + seconds
        wait(lab, lambda: time.monotonic() > deadline, seconds + 5)
        failed_runs = lab.plugin.runs - before
        lab.plugin.reply(token="two")
        lab.server.emit("configmaps", "after-the-failure")
        wait(lab, lambda: "after-the-failure" in operator.seen, 2 * seconds + 15)
        assert lab.plugin.runs - before <= failed_runs + 2
    return failed_runs


def test_an_operator_outlives_a_plugin_that_fails_for_six_seconds(ready: Lab):
    assert 2 <= recovers(ready, 6) <= 4  # after 0, 1 and 3 s, and one to spare for a slow machine


@pytest.mark.skipif(not in_ci(), reason="takes a minute; CI runs it")
@pytest.mark.timeout(150)
def test_an_operator_outlives_a_plugin_that_fails_for_half_a_minute(ready: Lab):
    assert 3 <= recovers(ready, 30) <= 6  # after 0, 1, 3, 7 and 15 s, and one to spare


# -- no credential at the start ----------------------------------------------------------------------------------------


def test_a_plugin_that_must_have_a_terminal_ends_the_operator_with_an_error(
    ready: Lab, caplog: pytest.LogCaptureFixture
):
    ready.use(interactiveMode="Always")
    operator = Operator()
    operator.start()
    try:
        error = operator.result.exception(30)
    finally:
        operator.stop()
    assert isinstance(error, kopf.LoginError)
    assert "no login: exec plugin cannot support interactive mode: standard input is not a terminal" in caplog.text
    assert ready.plugin.runs == 0
    assert not ready.server.requests


def test_a_plugin_that_prompts_without_a_terminal_fails_and_does_not_hang(lab: Lab, tmp_path: Path):
    path = PluginDirectory(tmp_path / "bin").script("prompts", 'printf "password: " >&2; read -r answer || exit 9\n')
    entry = {"apiVersion": "client.authentication.k8s.io/v1", "command": str(path), "interactiveMode": "IfAvailable"}
    lab.use({"exec": entry})
    started = time.monotonic()
    with pytest.raises(kopf.TemporaryError) as caught:
        asyncio.run(login())
    assert time.monotonic() - started < 10
    assert isinstance(caught.value.__cause__, PluginFailed)
    assert caught.value.__cause__.exit_code == 9
    assert not lab.server.requests


def test_a_plugin_that_fails_at_the_start_is_tried_again(ready: Lab, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("kubeauthn.client.kopf.RETRY_SECONDS", 0.2)
    ready.plugin.fail(1)
    operator = Operator()
    operator.start()
    try:
        wait(ready, lambda: operator.logins >= 3)
        assert ready.plugin.runs == 1  # the others came before the second run was due
        ready.plugin.reply(token="one")
        ready.server.emit("configmaps", "after-the-failure")
        wait(ready, lambda: "after-the-failure" in operator.seen)
    finally:
        operator.stop()
    assert ready.plugin.runs == 2


@pytest.mark.parametrize(
    ("kubeconfig", "param", "reason"),
    [
        ("contexts: 3\n", None, "contexts"),
        ("{}\n", 3, "expected to be a context's name or options, not int"),
        ("{}\n", "nowhere", "nowhere"),
    ],
)
def test_what_no_waiting_will_mend_is_no_login(
    lab: Lab, caplog: pytest.LogCaptureFixture, kubeconfig: str, param: Any, reason: str
):
    (lab.folder / "config").write_text(kubeconfig)
    lab.use_files(lab.folder / "config")
    assert asyncio.run(login(param=param)) is None
    assert reason in caplog.text


# -- what the session is -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("param", [None, "test", {"context": "test", "namespace": "shop"}])
def test_the_param_says_which_context(ready: Lab, param: Any):
    async def main() -> str | None:
        info = await login(param=param)
        assert info is not None
        async with info.aiohttp_session:
            assert info.server == ready.server.url
            return info.default_namespace

    assert asyncio.run(main()) == ("shop" if isinstance(param, dict) else "default")


def test_without_a_credential_kopf_sees_an_error_after_which_it_tries_again(ready: Lab):
    async def main() -> None:
        info = await login()
        assert info is not None
        async with info.aiohttp_session as api:
            ready.plugin.fail(1)
            ready.server.unauthorized(1)
            await api.get(f"{info.server}/version")
            with pytest.raises(aiohttp.ClientConnectionError, match="failed with exit code 1") as caught:
                await api.get(f"{info.server}/version")
            assert isinstance(caught.value, CredentialError)

    asyncio.run(main())


def test_in_a_pod_the_service_account_is_used(lab: Lab, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    account = tmp_path / "serviceaccount"
    account.mkdir()
    (account / "token").write_text("pod-token")
    (account / "ca.crt").write_bytes(lab.ca.certificate_pem)
    (account / "namespace").write_text("shop")
    monkeypatch.setitem(kubeconfig_shell.load.__kwdefaults__, "service_account", str(account))
    monkeypatch.setenv("KUBERNETES_SERVICE_HOST", "127.0.0.1")
    monkeypatch.setenv("KUBERNETES_SERVICE_PORT", str(lab.server.port))
    lab.server.accept_token("pod-token", user="system:serviceaccount:shop:operator")
    with running(lab):
        pass
    assert {each.user for each in lab.server.requests} == {"system:serviceaccount:shop:operator"}
