"""The credential of an exec plugin: KEP-541, client side.

The path of one run is `ExecPlugin.make_credential`, in numbered steps.
"""

from __future__ import annotations

import os
import threading
import time
import weakref
from collections.abc import Callable

from kubeauthn._core import execwire, limits
from kubeauthn._core.credential import Credential
from kubeauthn._core.execproxy import ENVIRONMENT, switched_on
from kubeauthn._core.hints import HintLimit
from kubeauthn._core.interaction import gets_the_terminal
from kubeauthn._core.kubeconfig.model import Cluster, ExecConfig, User
from kubeauthn._core.kubeconfig.proxy import proxy_from_environment
from kubeauthn._core.policy import PluginPolicy, permitted_path
from kubeauthn._core.record import record
from kubeauthn._io.lookup import find_executable, find_unexecutable, why_not_started
from kubeauthn._io.process import run_plugin
from kubeauthn._io.terminal import stdin_is_terminal
from kubeauthn.client import metrics
from kubeauthn.client.refreshed import Clock, RefreshedSource
from kubeauthn.errors import KubeconfigError, PluginDenied, PluginFailed, PluginNotFound


@record(frozen=True, slots=True)
class ExecOptions:
    """What the caller, not the kubeconfig, decides about plugins."""

    policy: PluginPolicy = PluginPolicy()
    seconds: float | None = limits.PLUGIN_SECONDS
    """Time limit of a run without a person; None: no limit."""
    stdin_taken: str | None = None
    """Why standard input is not free for the plugin (may be empty), None if it is."""
    exec_proxy: bool = False
    """Whether the plugin may be a proxy (KEP-2718)."""


class ExecPlugin:
    """One exec entry with the cluster it is for."""

    def __init__(
        self,
        config: ExecConfig,
        cluster: Cluster,
        options: ExecOptions = ExecOptions(),
        *,
        clock: Clock = time.time,
        is_terminal: Callable[[], bool] = stdin_is_terminal,
    ) -> None:
        if config.api_version not in execwire.VERSIONS:
            raise KubeconfigError(f'exec plugin: invalid apiVersion "{config.api_version}"')
        self.config = config
        self._cluster = cluster
        self._options = options
        self._clock = clock
        self._is_terminal = is_terminal
        self._hints = HintLimit()
        self._last: Credential | None = None
        self._source: Callable[[], RefreshedSource | None] = lambda: None
        if config.api_version == execwire.V1ALPHA1:
            _warn_of_v1alpha1(config.command)

    def new_source(self) -> RefreshedSource:
        """A source of this plugin's credentials, which hears what becomes of those with an external signer."""
        source = RefreshedSource(self.make_credential, clock=self._clock)
        self._source = weakref.ref(source)  # it holds us already
        return source

    def make_credential(self) -> Credential:
        config = self.config
        # 1. Does a person take part? Decided first: without a terminal an `Always` plugin is not even looked for.
        interactive = gets_the_terminal(
            config.interactive_mode,
            stdin_is_terminal=self._is_terminal(),
            stdin_taken=self._options.stdin_taken,
        )
        # 2. The input: our environment, then the entry's, then the one document.
        environment = dict(os.environ)
        environment.update(config.env)
        environment[execwire.VARIABLE] = self._exec_info(
            interactive, self._cluster if config.provide_cluster_info else None
        )
        # 3. The policy names the path to run, or refuses.
        path = self._permitted_path()
        # 4. The run.
        output = self._run(path, environment, interactive)
        # 5. The output: a credential, or the plugin author's fault.
        credential = self._decode(output)
        if credential.signer:
            from kubeauthn.client.signer_source import signed_credential

            credential = signed_credential(credential, self._options, refused=self._refused_by_alert, unfit=self._unfit)
        # 6. What the metrics want to know of certificates.
        self._note_certificate(credential)
        return credential

    # Three steps that are others for a plugin that may be a proxy (`proxy_plugin.py`).

    def _exec_info(self, interactive: bool, cluster: Cluster | None) -> str:
        return execwire.encode_exec_info(self.config.api_version, interactive=interactive, cluster=cluster)

    def _execute(self, path: str, environment: dict[str, str], interactive: bool) -> tuple[int, bytes]:
        argv = [self.config.command, *self.config.args]
        return run_plugin(path, argv, environment, interactive=interactive, seconds=self._options.seconds)

    def _decode(self, output: bytes) -> Credential:
        return execwire.decode_reply(output, self.config.api_version, self._clock())

    def _permitted_path(self) -> str | None:
        try:
            path = permitted_path(self._options.policy, self.config.command, find_executable)
        except PluginDenied:
            metrics.listener().policy_decided(metrics.DENIED)
            raise
        metrics.listener().policy_decided(metrics.ALLOWED)
        return path

    def _run(self, path: str | None, environment: dict[str, str], interactive: bool) -> bytes:
        name = self.config.command
        count = self._count_call
        try:
            # Not found: a path is tried all the same, for the system's own reason; a bare name is not,
            # because the system would search it again, and by other rules.
            code, output = self._execute(path or _as_path(name), environment, interactive)
        except (OSError, ValueError) as error:
            count(1, metrics.PLUGIN_NOT_FOUND_ERROR)
            raise self._not_found(error) from None
        except PluginFailed:
            count(1, metrics.PLUGIN_EXECUTION_ERROR)
            raise
        except BaseException:
            count(1, metrics.CLIENT_INTERNAL_ERROR)
            raise
        if code != 0:
            count(max(code, -1), metrics.PLUGIN_EXECUTION_ERROR)  # -1 for every signal, as Kubernetes counts them
            ending = f"failed with exit code {code}" if code > 0 else f"was ended by signal {-code}"
            raise PluginFailed(f"exec: executable {name} {ending}", exit_code=code)
        count(0, metrics.NO_ERROR)
        return output

    def _count_call(self, code: int, status: str) -> None:
        metrics.listener().plugin_called(code, status)

    def _not_found(self, error: OSError | ValueError) -> PluginNotFound:
        name = self.config.command
        if isinstance(error, FileNotFoundError | PermissionError) and (path := find_unexecutable(name)):
            # It is installed: the install hint would mislead.
            return PluginNotFound(
                f"exec: executable {name} is not executable: Permission denied", hint=f"chmod +x {path}"
            )
        detail, remedy = "", ""
        found_at = find_executable(name)
        # Of what is not there, FileNotFoundError says no more than the sentence itself; anything else is worth telling.
        if found_at or not isinstance(error, FileNotFoundError):
            reason, remedy = why_not_started(found_at or name, error)
            detail = f": {reason}"
        if remedy:
            return PluginNotFound(f"exec: executable {name} not found{detail}", hint=remedy)
        hint = self._hints.allow(self.config.install_hint, self._clock())
        found = PluginNotFound(f"exec: executable {name} not found{detail}", hint=hint)
        if hint:
            found.add_note(hint)
        return found

    def _refused_by_alert(self, chain: tuple[bytes, ...]) -> None:
        source, credential = self._source(), with_chain(self._last, chain)
        if source is not None and credential is not None:
            source.refused(credential)

    def _unfit(self, chain: tuple[bytes, ...], reason: str) -> None:
        source, credential = self._source(), with_chain(self._last, chain)
        if source is not None and credential is not None:
            source.lost(credential, reason)

    def _note_certificate(self, credential: Credential) -> None:
        old = self._last.identity if self._last else None
        new = credential.identity
        if old is not None and old != new:
            metrics.listener().certificate_rotated(self._clock() - old.not_before)
        metrics.set_certificate_expiry(self, new.not_after if new else None)
        self._last = credential


def with_chain(last: Credential | None, chain: tuple[bytes, ...]) -> Credential | None:
    """What was made last, if it shows this chain. Connections are still made with contexts of an earlier one."""
    return last if last is not None and getattr(last.identity, "chain", None) == chain else None


def exec_proxy_switched_on(user: User, asked: bool | None = None) -> bool:
    """Whether this user's plugin may be a proxy: what the caller says, else the environment, else the entry."""
    return switched_on(asked, os.environ.get(ENVIRONMENT), user.exec_proxy)


def exec_plugin(
    config: ExecConfig, cluster: Cluster, options: ExecOptions = ExecOptions(), *, clock: Clock = time.time
) -> ExecPlugin:
    """The plugin of an entry: one that may be a proxy where that is switched on."""
    if not options.exec_proxy:
        return ExecPlugin(config, cluster, options, clock=clock)
    from kubeauthn.client.proxy_plugin import ProxyPlugin

    return ProxyPlugin(config, cluster, options, clock=clock)


_shared: dict[tuple[ExecConfig, Cluster, ExecOptions, str], RefreshedSource] = {}
_shared_lock = threading.Lock()


def shared_exec_source(config: ExecConfig, cluster: Cluster, options: ExecOptions) -> RefreshedSource:
    """One source for all clients in the process that were built from the same entry, cluster and options."""
    key = (config, cluster, options, _proxy_in_between(cluster) if options.exec_proxy else "")
    with _shared_lock:
        source = _shared.get(key)
        if source is None:
            source = _shared[key] = exec_plugin(config, cluster, options).new_source()
        return source


def _proxy_in_between(cluster: Cluster) -> str:
    """A local proxy stays, and goes the way to the server that the environment named when it was started."""
    try:
        return proxy_from_environment(cluster.server, os.environ)
    except ValueError:
        return "of no use"  # which the local proxy will say itself


def forget_shared_sources() -> None:
    """Drop every cached credential: the next request runs its plugin."""
    with _shared_lock:
        _shared.clear()


def forget_shared_source(source: object) -> None:
    """Drop one, for a program that goes on without it: a local proxy ends when nothing leads through it any more."""
    with _shared_lock:
        for key in [key for key, shared in _shared.items() if shared is source]:
            del _shared[key]


def _after_fork_in_child() -> None:
    global _shared_lock
    _shared_lock = threading.Lock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork_in_child)


def _as_path(command: str) -> str:
    if os.path.basename(command) == command:
        raise FileNotFoundError(command)
    return command


def _warn_of_v1alpha1(command: str) -> None:
    import logging

    logging.getLogger("kubeauthn").warning(
        "exec plugin %s is configured for %s, which Kubernetes' own clients no longer accept; use %s",
        command,
        execwire.V1ALPHA1,
        execwire.V1,
    )
