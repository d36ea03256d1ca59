"""Where one probe takes place: a server, a plugin and a kubeconfig of its own."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from itertools import count
from pathlib import Path
from typing import Any

from kubeauthn.testing import ApiServer, Leaf, RecordedRequest, ScriptedPlugin
from tests.integration.adapters.driver import Client, Driver, Outcome

V1 = "client.authentication.k8s.io/v1"
V1BETA1 = "client.authentication.k8s.io/v1beta1"


class NotOpened(Client):
    """Stands for a client that could not be made: some libraries run the plugin at that moment already."""

    def __init__(self, error: BaseException) -> None:
        self._outcome = Outcome(error=error)

    def list_namespaces(self) -> Outcome:
        return self._outcome

    def create_namespace(self, name: str) -> Outcome:
        return self._outcome

    def close(self) -> None:
        """There is nothing to close."""


class Scene:
    """The server takes the tokens `one` and `two`; the plugin does what the probe says."""

    def __init__(self, stage: Stage, folder: Path, server: ApiServer) -> None:
        self._stage = stage
        self.folder = folder
        self.server = server
        self.plugin = ScriptedPlugin(folder / "bin" / "plugin")
        self.kubeconfig = folder / "config"
        for token in ("one", "two"):
            server.accept_token(token)

    def reply(
        self, token: str | None = None, certificate: Leaf | None = None, *, expires_in: float | None = None
    ) -> None:
        """What the plugin returns from now on, in a version that the library understands."""
        self.plugin.reply(
            token=token, certificate=certificate, expires_in=expires_in, api_version=self._stage.api_version
        )

    def use(self, *, cluster: dict[str, Any] | None = None, **entry: Any) -> None:
        """Write the kubeconfig. `entry` overrides fields of `exec`."""
        user = self.plugin.user(**{"apiVersion": self._stage.api_version, **entry})
        self.use_user(user, cluster=cluster)

    def use_user(self, user: dict[str, Any], *, cluster: dict[str, Any] | None = None) -> None:
        self.server.write_kubeconfig(self.kubeconfig, user, cluster=cluster)
        self.use_files(self.kubeconfig)

    def use_files(self, *paths: Path) -> None:
        os.environ["KUBECONFIG"] = os.pathsep.join(map(str, paths))

    @contextmanager
    def client(self, *, ours: dict[str, Any] | None = None) -> Iterator[Client]:
        """An open client. `ours`: options that only kubeauthn has."""
        try:
            client = self._stage.driver.open(**(ours or {} if self._stage.ours else {}))
        except Exception as error:
            client = NotOpened(error)
        try:
            yield client
        finally:
            client.close()

    def call(self, *, ours: dict[str, Any] | None = None) -> Outcome:
        """One request by a client that lives no longer."""
        with self.client(ours=ours) as client:
            return client.list_namespaces()

    # what the server saw

    def listings(self) -> list[RecordedRequest]:
        """Some libraries ask for more than what was called for, such as the server's version."""
        return [each for each in self.server.requests if each.path == "/api/v1/namespaces"]

    def anonymous(self) -> bool:
        """Whether any request came without a credential."""
        return any(each.token is None and each.certificate_serial is None for each in self.server.requests)


class Stage:
    """One column's process: the library that is tried, and a new scene for each probe."""

    def __init__(self, driver: Driver, folder: Path, *, ours: bool) -> None:
        self.driver = driver
        self.ours = ours
        self.api_version = V1
        """The newest version that the library takes; the first probe finds out."""
        self.left_by_probe: dict[str, list[str]] = {}
        """Key files that were still there when a client was closed, by row. Looked for again after the process."""
        self._folder = folder
        self._numbers = count(1)

    @contextmanager
    def scene(self) -> Iterator[Scene]:
        folder = self._folder / str(next(self._numbers))
        folder.mkdir()
        with ExitStack() as stack:
            server = stack.enter_context(ApiServer())
            stack.callback(os.environ.pop, "KUBECONFIG", None)
            yield Scene(self, folder, server)


def wait_until(moment: float) -> None:
    """Wait for a moment of the real clock: the libraries read no other."""
    while (left := moment - time.time()) > 0:
        time.sleep(min(left, 0.1))
