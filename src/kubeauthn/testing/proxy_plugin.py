"""A proxy plugin (KEP-2718) for tests: a real process, written without the SDK and without kubeauthn.

::

    plugin = ProxyPlugin(folder, upstream=server.ca.issue_client("jane"))
    server.write_kubeconfig(path, plugin.user())
    ...  # the program under test: the server sees jane, whose key it never had
    assert plugin.runs == 1
"""

from __future__ import annotations

import contextlib
import json
import os
import shlex
import shutil
import signal
import sys
import weakref
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from kubeauthn.testing import _proxy_script
from kubeauthn.testing.pki import CertificateAuthority, Leaf

if TYPE_CHECKING:
    from collections.abc import Mapping

API_VERSION = "client.authentication.k8s.io/v1"
SWITCH = {"name": "client.authentication.k8s.io/exec-proxy", "extension": {"enabled": True}}


class ProxyPlugin:
    """Carries each connection to the server of `spec.cluster`, where it shows `upstream` as its certificate.

    `daemon`: it leaves a process behind and exits, rather than staying. `form`: where it listens. `status` is laid
    over the status that it prints; `mode` is that of the socket's directory, `long` makes its path a long one.
    `asks`: it first reads a line from its standard input, and leaves it in the file `typed`.
    """

    def __init__(
        self,
        folder: str | os.PathLike[str],
        *,
        upstream: Leaf | None = None,
        daemon: bool = False,
        form: Literal["unix", "https"] = "unix",
        status: Mapping[str, Any] | None = None,
        mode: int = 0o700,
        long: bool = False,
        asks: bool = False,
        name: str = "localhost",
    ) -> None:
        self.folder = Path(folder)
        self.folder.mkdir(parents=True, exist_ok=True)
        self.path = self.folder / "proxy-plugin"
        self.ca = CertificateAuthority("kubeauthn test proxy CA")
        server, client = self.ca.issue_server([name]), self.ca.issue_client("the client")
        self._write("ca.pem", self.ca.certificate_pem)
        self._write("server.pem", server.chain_pem + server.key_pem)
        self._write("client.crt", client.chain_pem)
        self._write("client.key", client.key_pem)
        if upstream is not None:
            self.show_upstream(upstream)
        self._orders: dict[str, Any] = {
            "state": str(self.folder),
            "daemon": daemon,
            "form": form,
            "status": dict(status or {}),
            "mode": mode,
            "long": long,
            "asks": asks,
        }
        self.order()
        command = shlex.join([sys.executable, "-I", _proxy_script.__file__, str(self.folder / "orders")])
        self.path.write_text(f"#!/bin/sh\nexec {command}\n")
        self.path.chmod(0o755)
        weakref.finalize(self, _remove_directories, self.folder / "directories")

    def order(self, **changes: Any) -> None:
        """Change what the next run does: `daemon`, `form`, `status`, `mode`, `long`, `asks`."""
        self._orders |= changes
        self._write("orders", json.dumps(self._orders).encode())

    def show_upstream(self, leaf: Leaf) -> None:
        """The certificate that the next run shows to the server."""
        self._write("upstream.pem", leaf.chain_pem + leaf.key_pem)

    @property
    def runs(self) -> int:
        """How often it was started."""
        return len(self._pids())

    @property
    def serving_pid(self) -> int:
        """The process that carries the connections."""
        return int((self.folder / "serving").read_text().split()[0])

    @property
    def url(self) -> str:
        """Where the last run listens."""
        return (self.folder / "serving").read_text().split()[1]

    def info(self, run: int = -1) -> dict[str, Any]:
        """The ExecCredential that a run was given."""
        found: dict[str, Any] = json.loads((self.folder / f"info.{self._pids()[run]}").read_text())
        return found

    def kill(self) -> None:
        """End the proxy, as a crash would."""
        with contextlib.suppress(ProcessLookupError):
            os.kill(self.serving_pid, signal.SIGKILL)

    @property
    def alive(self) -> bool:
        """Whether the last proxy runs. One that has ended and was not waited for does not."""
        process = Path(f"/proc/{self.serving_pid}")
        try:
            state = (process / "stat").read_text().rpartition(")")[2].split()[0]
            # Its sockets are open until the last of its threads is gone, and the first one may be gone before.
            return state != "Z" or len(list((process / "task").iterdir())) > 1
        except OSError:
            return False

    def exec_entry(self, **overrides: object) -> dict[str, object]:
        """The kubeconfig `exec` entry that runs it."""
        entry: dict[str, object] = {
            "apiVersion": API_VERSION,
            "command": str(self.path),
            "interactiveMode": "Never",
            "provideClusterInfo": True,
        }
        return entry | overrides

    def user(self, *, switched_on: bool = True, **overrides: object) -> dict[str, object]:
        """The kubeconfig user entry, with the extension that lets the plugin be a proxy."""
        entry: dict[str, object] = {"exec": self.exec_entry(**overrides)}
        return entry | {"extensions": [SWITCH]} if switched_on else entry

    def _pids(self) -> list[str]:
        try:
            return (self.folder / "runs").read_text().split()
        except FileNotFoundError:
            return []

    def _write(self, name: str, content: bytes) -> None:
        fresh = self.folder / f"{name}.new"
        fresh.write_bytes(content)
        fresh.replace(self.folder / name)


def _remove_directories(listed: Path) -> None:
    """What proxies leave that were killed."""
    with contextlib.suppress(OSError):
        for directory in listed.read_text().splitlines():
            shutil.rmtree(directory, ignore_errors=True)
