"""How long it takes to start: a plugin is started by every kubectl call."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from bench.measure import Row, interleaved, ratio_row
from kubeauthn.testing.plugins import PluginDirectory

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


def started(command: Sequence[str]) -> Callable[[], float]:
    environment = {**os.environ, "KUBERNETES_EXEC_INFO": EXEC_INFO}
    # An installed program has its byte code beside it; the first, unmeasured round writes ours.
    environment.pop("PYTHONDONTWRITEBYTECODE", None)

    def reading() -> float:
        started = time.perf_counter()
        subprocess.run(command, env=environment, stdout=subprocess.DEVNULL, check=True)
        return time.perf_counter() - started

    return reading
