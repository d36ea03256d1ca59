"""How long it takes to start: a plugin is started by every kubectl call."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from bench.measure import Row, in_turns, interleaved, ratio_row
from bench.tokens import EXAMPLE
from kubeauthn.testing.plugins import PluginDirectory
from tests.peers.programs import find

SDK_PLUGIN = "from kubeauthn.plugin import credential\ncredential.run(lambda request: credential.Token('t'))\n"
EXEC_INFO = json.dumps(
    {"apiVersion": "client.authentication.k8s.io/v1", "kind": "ExecCredential", "spec": {"interactive": False}}
)
KUBECONFIG = """\
apiVersion: v1
kind: Config
current-context: c
clusters: [{{name: c, cluster: {{server: "https://127.0.0.1:6443"}}}}]
contexts: [{{name: c, context: {{cluster: c, user: u}}}}]
users:
- name: u
  user:
    exec: {{apiVersion: client.authentication.k8s.io/v1, command: {command}, interactiveMode: Never}}
"""


def rows(folder: Path, *, quick: bool) -> Iterator[Row]:
    rounds = 15 if quick else 41
    bare = [sys.executable, "-c", "pass"]
    sdk = folder / "sdk_plugin.py"
    sdk.write_text(SDK_PLUGIN)
    yield ratio_row(
        "start-up: a plugin written with the SDK",
        interleaved(started([sys.executable, str(sdk)]), started(bare), rounds),
        peer_name="python -c pass",
        goal=2.5,
        unit="ms",
        scale=1e3,
    )

    # The plugin is a shell script that prints a file; its own time is taken off by measuring it beside.
    reply = json.dumps(
        {"apiVersion": "client.authentication.k8s.io/v1", "kind": "ExecCredential", "status": {"token": "t"}}
    )
    plugin = PluginDirectory(folder / "plugins").script("plugin", f"echo '{reply}'\n")
    kubeconfig = folder / "config"
    kubeconfig.write_text(KUBECONFIG.format(command=plugin))
    # As a user starts it: the installed script, beside the interpreter.
    script = Path(sys.executable).with_name("kubeauthn")
    command = [str(script), "credential", "--kubeconfig", str(kubeconfig)]
    with_plugin, alone = started(command), started([str(plugin)])
    yield ratio_row(
        "start-up: kubeauthn credential, the plugin's own time excluded",
        interleaved(
            lambda: with_plugin() - alone(),
            started([sys.executable, "-c", "import yaml, json, argparse, subprocess"]),
            rounds,
        ),
        peer_name="python -c 'import yaml, json, argparse, subprocess'",
        goal=1.5,
        unit="ms",
        scale=1e3,
    )
    yield from _commands(folder, 1 if quick else 21)
    yield from _plugins(1 if quick else 21)


def _commands(folder: Path, rounds: int) -> Iterator[Row]:
    """Each command up to its help, which loads all that it needs to read its arguments; and two that do their work."""
    from kubeauthn.cli.main import COMMANDS

    script, bare = str(Path(sys.executable).with_name("kubeauthn")), [sys.executable, "-c", "pass"]
    configuration, claims = folder / "authn.yaml", folder / "claims.json"
    configuration.write_text(EXAMPLE)
    claims.write_text('{"sub": "jane"}')
    lines = {f"kubeauthn {name} --help": [script, *name.split(), "--help"] for name in COMMANDS}
    lines["kubeauthn check FILE"] = [script, "check", str(configuration)]
    lines["kubeauthn cel"] = [script, "cel", "claims.sub", "--claims", str(claims)]
    kubectl = find("kubectl") or shutil.which("kubectl")
    if kubectl is None:
        print("      there is no kubectl: rows beside it are left out", flush=True)
    for name, command in lines.items():
        readers = {"ours": started(command), "python -c pass": started(bare)}
        if kubectl and name in ("kubeauthn whoami --help", "kubeauthn credential --help"):
            readers["kubectl --help"] = started([str(kubectl), "--help"])
        readings = in_turns(readers, rounds)
        for other in list(readers)[1:]:
            pair = (readings["ours"], readings[other])
            yield ratio_row(f"start-up: {name}", pair, peer_name=other, goal=None, unit="ms", scale=1e3)


def _plugins(rounds: int) -> Iterator[Row]:
    """Each program that we install beside the command, up to its help; a signer, up to its refusal to be called so."""
    bare = [sys.executable, "-c", "pass"]
    for script in sorted(Path(sys.executable).parent.glob("kubeauthn-*")):
        readings = interleaved(started([str(script), "--help"], refused=True), started(bare), rounds)
        name = f"start-up: {script.name} --help"
        yield ratio_row(name, readings, peer_name="python -c pass", goal=None, unit="ms", scale=1e3)


def started(command: Sequence[str], *, refused: bool = False) -> Callable[[], float]:
    environment = {**os.environ, "KUBERNETES_EXEC_INFO": EXEC_INFO}
    # An installed program has its byte code beside it; the first, unmeasured round writes ours.
    environment.pop("PYTHONDONTWRITEBYTECODE", None)

    def reading() -> float:
        started = time.perf_counter()
        done = subprocess.run(
            command,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL if refused else None,
            check=False,
        )
        if done.returncode > (1 if refused else 0):
            raise RuntimeError(f"{command} ended with status {done.returncode}")
        return time.perf_counter() - started

    return reading
