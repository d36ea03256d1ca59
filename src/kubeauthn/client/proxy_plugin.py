"""The exec plugin that may be a proxy: KEP-2718, client side.

A run takes the lock first, and what it returns carries the hold on it. The hold goes when the last credential and the
last connection that lead through the proxy are gone, and then the proxy ends: a proxy that was replaced finishes
what goes through it and stays no longer. At the end of the process the system lets go of every lock.
"""

from __future__ import annotations

from typing import Any

from kubeauthn._core import execproxy
from kubeauthn._core.credential import Credential
from kubeauthn._core.kubeconfig.model import Cluster
from kubeauthn._io.lockfile import ClientLock
from kubeauthn._io.proxy_process import end_proxy, run_proxy_plugin
from kubeauthn.client import metrics
from kubeauthn.client.exec_source import ExecPlugin
from kubeauthn.errors import KubeconfigError


class Lease:
    """A client's hold on one run of a proxy."""

    def __init__(self) -> None:
        self.lock = ClientLock()
        self.pid: int | None = None

    def abandon(self) -> None:
        """Nothing came of the run: end what it may have left."""
        if self.pid is not None:
            end_proxy(self.pid)
        self.lock.release()

    def __del__(self) -> None:
        if hasattr(self, "lock") and self.lock.held:
            self.lock.release()


class ProxyPlugin(ExecPlugin):
    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        if self.config.api_version not in execproxy.VERSIONS:
            raise KubeconfigError(
                f'exec plugin: apiVersion "{self.config.api_version}" knows no proxies',
                hint=f"use {' or '.join(execproxy.VERSIONS)}",
            )
        self._lease: Lease | None = None
        """Of the run that is under way; there is one at a time."""

    def make_credential(self) -> Credential:
        lease = self._lease = Lease()
        try:
            credential = super().make_credential()
        except BaseException:
            lease.abandon()
            raise
        finally:
            self._lease = None
        if credential.route is None:
            lease.lock.release()  # an ordinary credential
        return credential

    def _exec_info(self, interactive: bool, cluster: Cluster | None) -> str:
        return execproxy.encode_exec_info(
            self.config.api_version,
            interactive=interactive,
            cluster=cluster,
            lock_file_path=self._lease.lock.path if self._lease else "",
        )

    def _execute(self, path: str, environment: dict[str, str], interactive: bool) -> tuple[int, bytes]:
        code, output, pid = run_proxy_plugin(
            path,
            [self.config.command, *self.config.args],
            environment,
            interactive=interactive,
            seconds=self._options.seconds,
        )
        if self._lease is not None:
            self._lease.pid = pid
        return code, output

    def _decode(self, output: bytes) -> Credential:
        return execproxy.decode_reply(output, self.config.api_version, self._clock(), self._lease)

    def _count_call(self, code: int, status: str) -> None:
        super()._count_call(code, status)
        # A listener that was written before there were proxies need not know of them.
        told = getattr(metrics.listener(), "proxy_plugin_called", None)
        if told is not None:
            told(code, status)
