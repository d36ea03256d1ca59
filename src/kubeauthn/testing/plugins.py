"""Executable credential plugins, made by the test that runs them.

`PluginDirectory` holds plugins whose text the test writes. `ScriptedPlugin` is one fixed
shell script that reads what to do from files beside it, so a test can change the reply
between two runs and count the runs; it starts in a few milliseconds.
"""

from __future__ import annotations

import json
import os
import shlex
import sys
import time
from datetime import UTC, datetime
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Any

from kubeauthn.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Callable

    from kubeauthn.testing.pki import Leaf

API_VERSION = "client.authentication.k8s.io/v1"
HANG_SECONDS = 600
"""A plugin that hangs still ends by itself if nobody ends it."""

_SCRIPT = """\
#!/bin/sh
state={state}
env -0 >"$state/environment.$$"
printf '%s\\0' "$@" >"$state/arguments.$$"
# `>>` appends one line in one write: runs in parallel are all counted.
printf '%s\\n' "$$" >>"$state/runs"
. "$state/action"
"""


class PluginDirectory:
    """A directory of executables. Put it in `PATH`, or use the returned paths."""

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = Path(path).absolute()
        self.path.mkdir(parents=True, exist_ok=True)

    def script(self, name: str, body: str) -> Path:
        """A shell script; the first line is added."""
        return self._executable(name, f"#!/bin/sh\n{body}")

    def python(self, name: str, body: str) -> Path:
        """A Python program, run by the interpreter that runs the test."""
        if len(sys.executable) > 120 or " " in sys.executable:  # more than every kernel takes in a first line
            return self._executable(
                name, f"#!/bin/sh\n''''exec {shlex.quote(sys.executable)} \"$0\" \"$@\" #'''\n{body}"
            )
        return self._executable(name, f"#!{sys.executable}\n{body}")

    def scripted(self, name: str = "plugin") -> ScriptedPlugin:
        """A plugin whose replies the test controls."""
        return ScriptedPlugin(self.path / _bare(name))

    def _executable(self, name: str, text: str) -> Path:
        path = self.path / _bare(name)
        _write_executable(path, text)
        return path


class ScriptedPlugin:
    """A credential plugin that does what the test last told it to; at first it fails with exit code 1.

    `path` is where the executable is written; given a directory, it is `plugin` in there.
    Each order stands until the next one, for every run.
    """

    def __init__(self, path: str | os.PathLike[str], *, clock: Callable[[], float] = time.time) -> None:
        given = Path(path).absolute()
        self.path = given / "plugin" if given.is_dir() else given
        self._state = self.path.with_name(self.path.name + ".state")
        self._state.mkdir(parents=True, mode=0o700)
        self._clock = clock
        self._numbers = count(1)
        self._seconds = 0.0
        self._action = ""
        self.fail(1, stderr="the test has not said what this plugin should do\n")
        _write_executable(self.path, _SCRIPT.format(state=shlex.quote(str(self._state))))

    # what the next runs do

    def reply(
        self,
        *,
        token: str | None = None,
        certificate: Leaf | None = None,
        expires_in: float | None = None,
        expires_at: float | datetime | str | None = None,
        api_version: str = API_VERSION,
    ) -> None:
        """Print a credential. `expires_in` counts from this call, not from the run."""
        if expires_in is not None and expires_at is not None:
            raise UsageError("a reply takes expires_in or expires_at, not both")
        status: dict[str, str] = {}
        if token is not None:
            status["token"] = token
        if certificate is not None:
            status["clientCertificateData"] = certificate.chain_pem.decode()
            status["clientKeyData"] = certificate.key_pem.decode()
        if expires_in is not None:
            expires_at = self._clock() + expires_in
        if expires_at is not None:
            status["expirationTimestamp"] = _timestamp(expires_at)
        document = {"apiVersion": api_version, "kind": "ExecCredential", "status": status}
        self.raw(json.dumps(document).encode())

    def raw(self, output: bytes | str) -> None:
        """Print exactly this."""
        content = output.encode() if isinstance(output, str) else output
        self._order(f"exec cat {self._stored('reply', content)}")

    def fail(self, exit_code: int = 1, *, stderr: str = "") -> None:
        """End with this exit code, or by a signal if it is negative."""
        end = f"exit {exit_code}" if exit_code >= 0 else f"kill -{-exit_code} $$"
        self._order(f"cat {self._stored('stderr', stderr.encode())} >&2\n{end}")

    def hang(self) -> None:
        """Print nothing and do not end."""
        self._order(f"exec sleep {HANG_SECONDS}")

    def delay(self, seconds: float) -> None:
        """Wait this long before doing whatever is ordered. 0 ends it."""
        self._seconds = seconds
        self._order(self._action)

    # what was run

    @property
    def runs(self) -> int:
        """How many times it was started."""
        return len(self._pids())

    def environment(self) -> dict[str, str]:
        """The environment of the last run."""
        entries = self._last("environment").split(b"\0")
        pairs = (os.fsdecode(entry).partition("=") for entry in entries if entry)
        return {name: value for name, _, value in pairs}

    def arguments(self) -> list[str]:
        """The arguments of the last run."""
        recorded = self._last("arguments")
        # printf with no argument at all still prints its format once.
        return [] if recorded == b"\0" else [os.fsdecode(item) for item in recorded.split(b"\0")[:-1]]

    def exec_info(self) -> dict[str, Any]:
        """What the last run got in `KUBERNETES_EXEC_INFO`."""
        info = json.loads(self.environment()["KUBERNETES_EXEC_INFO"])
        if not isinstance(info, dict):
            raise TypeError(f"KUBERNETES_EXEC_INFO is expected to be an object, not {type(info).__name__}")
        return info

    def exec_entry(self, **overrides: object) -> dict[str, object]:
        """The kubeconfig `exec` entry that runs it. An override of None leaves the field out."""
        entry: dict[str, object] = {"apiVersion": API_VERSION, "command": str(self.path), "interactiveMode": "Never"}
        entry |= overrides
        return {name: value for name, value in entry.items() if value is not None}

    def user(self, **overrides: object) -> dict[str, object]:
        """The kubeconfig user entry with that `exec` entry."""
        return {"exec": self.exec_entry(**overrides)}

    def _last(self, kind: str) -> bytes:
        pids = self._pids()
        if not pids:
            raise UsageError(f"{self.path.name} was not run yet")
        return (self._state / f"{kind}.{pids[-1]}").read_bytes()

    def _pids(self) -> list[str]:
        try:
            return (self._state / "runs").read_text().splitlines()
        except FileNotFoundError:
            return []

    def _stored(self, kind: str, content: bytes) -> str:
        # A new name each time: a run that has begun reads the whole of the order it began with.
        path = self._state / f"{kind}-{next(self._numbers)}"
        path.write_bytes(content)
        return shlex.quote(str(path))

    def _order(self, action: str) -> None:
        self._action = action
        wait = f"sleep {self._seconds}\n" if self._seconds else ""
        fresh = self._state / "action.new"
        fresh.write_text(f"{wait}{action}\n")
        fresh.replace(self._state / "action")


def _bare(name: str) -> str:
    if not name or name != os.path.basename(name):
        raise UsageError(f"a plugin's name is a bare file name, not {name!r}")
    return name


def _write_executable(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text if text.endswith("\n") else text + "\n")
    path.chmod(0o755)


def _timestamp(moment: float | datetime | str) -> str:
    if isinstance(moment, str):
        return moment
    when = moment if isinstance(moment, datetime) else datetime.fromtimestamp(moment, UTC)
    return when.astimezone(UTC).isoformat().replace("+00:00", "Z")
