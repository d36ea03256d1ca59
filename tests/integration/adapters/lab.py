"""A server, a plugin, and the kubeconfig between them: where every adapter is tried."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from kubeauthn.client.access import Access, open_access
from kubeauthn.client.exec_source import ExecPlugin
from kubeauthn.client.refreshed import RefreshedSource
from kubeauthn.errors import KubeauthnError
from kubeauthn.testing import ApiServer, CertificateAuthority, FakeClock, ScriptedPlugin


class Lab:
    """A server, a plugin, and a kubeconfig that `KUBECONFIG` names."""

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch, stack: ExitStack) -> None:
        self.folder = folder
        self._monkeypatch = monkeypatch
        self._stack = stack
        self.ca = CertificateAuthority()
        self.clock = FakeClock()
        self.server = self.start_server()
        self.plugin = ScriptedPlugin(folder / "plugin", clock=self.clock)

    def start_server(self, **options: Any) -> ApiServer:
        return self._stack.enter_context(ApiServer(ca=self.ca, **options))

    def use(
        self,
        user: dict[str, Any] | None = None,
        *,
        cluster: dict[str, Any] | None = None,
        server: ApiServer | None = None,
        **entry: Any,
    ) -> None:
        """Write the kubeconfig: by default the plugin's user on the server; `entry` overrides fields of `exec`."""
        user = user if user is not None else self.plugin.user(**entry)
        path = (server or self.server).write_kubeconfig(self.folder / "config", user, cluster=cluster)
        self._monkeypatch.setenv("KUBECONFIG", str(path))

    def use_files(self, *paths: Path) -> None:
        self._monkeypatch.setenv("KUBECONFIG", ":".join(map(str, paths)))

    def access(self) -> Access:
        """The access that the kubeconfig gives, with a clock that the test moves."""
        access = open_access()
        assert access.target is not None
        assert access.target.user.exec is not None
        plugin = ExecPlugin(access.target.user.exec, access.cluster, clock=self.clock)
        access.source = RefreshedSource(plugin.make_credential, clock=self.clock)
        return access

    def listings(self, server: ApiServer | None = None) -> list[Any]:
        """The recorded requests for the list of namespaces, watches left out."""
        requests = (server or self.server).requests
        return [each for each in requests if each.path == "/api/v1/namespaces" and not each.is_watch]

    def tokens(self) -> list[str | None]:
        return [each.token for each in self.listings()]

    def serials(self) -> list[int | None]:
        return [each.certificate_serial for each in self.listings()]

    def wait_for(self, predicate: Callable[[], object], seconds: float = 5.0) -> None:
        self.server.wait_for(predicate, seconds)


def our_error(error: BaseException | None) -> BaseException | None:
    """The error itself if it is ours, else the one of ours that caused it."""
    for _ in range(20):
        if error is None or isinstance(error, KubeauthnError):
            return error
        error = error.__cause__ or error.__context__
    return None
