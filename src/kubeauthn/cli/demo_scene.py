"""The stage of `kubeauthn demo`: an API server on loopback, and plugins made with the SDK that do as they are told."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

import kubeauthn
from kubeauthn._core.execwire import V1
from kubeauthn.testing import ApiServer, Leaf

PLUGIN = '''\
"""The demo's credential plugin: returns what the file `order` beside it says, and counts its runs."""

import json
import sys
from pathlib import Path

from kubeauthn.plugin import credential

home = Path(sys.argv[1])


def get_credential(request):
    with open(home / "runs", "a") as runs:
        runs.write("run\\n")
    order = json.loads((home / "order").read_text())
    if "refuse" in order:
        raise credential.Refuse(order["refuse"])
    return credential.Credential(**order)


credential.run(get_credential)
'''


class DemoPlugin:
    """One plugin: its orders, its runs, and its user entry in the kubeconfig."""

    def __init__(self, directory: Path, name: str) -> None:
        self.script = directory / "demo-plugin.py"
        self.home = directory / name
        self.home.mkdir()
        self.name = name

    def give_token(self, token: str, expires_at: float | None = None) -> None:
        self._order({"token": token, "expires_at": expires_at})

    def give_certificate(self, leaf: Leaf) -> None:
        self._order({"certificate": leaf.chain_pem.decode(), "key": leaf.key_pem.decode()})

    def refuse(self, why: str) -> None:
        self._order({"refuse": why})

    @property
    def runs(self) -> int:
        log = self.home / "runs"
        return len(log.read_text().splitlines()) if log.exists() else 0

    def user(self) -> dict[str, object]:
        # The package may be running from a place that a fresh interpreter would not find.
        found_at = os.path.dirname(os.path.dirname(os.path.abspath(kubeauthn.__file__)))
        search = os.pathsep.join(part for part in (found_at, os.environ.get("PYTHONPATH", "")) if part)
        return {
            "exec": {
                "apiVersion": V1,
                "command": sys.executable,
                "args": [str(self.script), str(self.home)],
                "env": [{"name": "PYTHONPATH", "value": search}],
                "interactiveMode": "Never",
            }
        }

    def _order(self, order: Mapping[str, object]) -> None:
        fresh = self.home / "order.new"
        fresh.touch(mode=0o600)
        fresh.write_text(json.dumps(order))
        fresh.replace(self.home / "order")


class Scene:
    def __init__(self, directory: Path, server: ApiServer) -> None:
        self.directory = directory
        self.server = server
        (directory / "demo-plugin.py").write_text(PLUGIN)

    def plugin(self, name: str) -> DemoPlugin:
        return DemoPlugin(self.directory, name)

    def kubeconfig(self, plugin: DemoPlugin) -> str:
        """A kubeconfig in which this plugin is the user."""
        path = self.directory / f"{plugin.name}.kubeconfig"
        self.server.write_kubeconfig(
            path, plugin.user(), context_name="demo", cluster_name="demo", user_name=plugin.name
        )
        return str(path)


@contextmanager
def scene() -> Iterator[Scene]:
    """Nothing of it is left when it ends. The directory is the owner's alone."""
    with TemporaryDirectory(prefix="kubeauthn-demo-") as directory, ApiServer() as server:
        yield Scene(Path(directory), server)
