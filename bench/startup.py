"""How long it takes to start: a plugin is started by every kubectl call."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path

from bench import report, startup_server
from bench.kubeconfig import synthetic_kubeconfig
from bench.measure import Row, growth_rows, in_turns, interleaved, ratio_row
from bench.tokens import EXAMPLE
from kubeauthn.testing import Issuer
from kubeauthn.testing.plugins import PluginDirectory
from tests.integration.oidc_scene import OidcScene

SDK_PLUGIN = "from kubeauthn.plugin import credential\ncredential.run(lambda request: credential.Token('t'))\n"
EXEC_INFO = json.dumps(
    {"apiVersion": "client.authentication.k8s.io/v1", "kind": "ExecCredential", "spec": {"interactive": False}}
)
SIZES = (1, 10, 100, 1000)
AT_A_TIME = 4
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
        interleaved(started([sys.executable, str(sdk)]), started(bare), rounds, elsewhere=True),
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
            elsewhere=True,
        ),
        peer_name="python -c 'import yaml, json, argparse, subprocess'",
        goal=1.5,
        unit="ms",
        scale=1e3,
    )
    rounds = 1 if quick else 21
    yield from _help_rows(_commands(folder), rounds)
    yield from _help_rows(_plugins(), rounds)
    yield from _credentials(folder, rounds)
    yield from _growing(folder, plugin, 1 if quick else 9)
    yield from startup_server.rows(folder, quick=quick)


def _commands(folder: Path) -> dict[str, Callable[[], float]]:
    """Each command up to its help, which loads all that it needs to read its arguments; and two that do their work."""
    from kubeauthn.cli.main import COMMANDS

    script = str(Path(sys.executable).with_name("kubeauthn"))
    configuration, claims = folder / "authn.yaml", folder / "claims.json"
    configuration.write_text(EXAMPLE)
    claims.write_text('{"sub": "jane"}')
    lines = {f"kubeauthn {name} --help": started([script, *name.split(), "--help"]) for name in COMMANDS}
    lines["kubeauthn check FILE"] = started([script, "check", str(configuration)])
    lines["kubeauthn cel"] = started([script, "cel", "claims.sub", "--claims", str(claims)])
    return lines


def _plugins() -> dict[str, Callable[[], float]]:
    """Each program that we install beside the command, up to its help; a signer, up to its refusal to be called so."""
    scripts = sorted(Path(sys.executable).parent.glob("kubeauthn-*"))
    return {f"{script.name} --help": started([str(script), "--help"], refused=True) for script in scripts}


def _help_rows(lines: Mapping[str, Callable[[], float]], rounds: int) -> Iterator[Row]:
    """Some at a time, in turns with bare Python and kubectl, which are near enough to each of so few."""
    others = {"python -c pass": started([sys.executable, "-c", "pass"])}
    if kubectl := report.kubectl():
        others["kubectl --help"] = started([kubectl, "--help"])
    names = list(lines)
    for first in range(0, len(names), AT_A_TIME):
        some = {name: lines[name] for name in names[first : first + AT_A_TIME]}
        readings = in_turns({**some, **others}, rounds, elsewhere=True)
        for name in some:
            for other in others:
                pair = (readings[name], readings[other])
                yield ratio_row(f"start-up: {name}", pair, peer_name=other, goal=None, unit="ms", scale=1e3)


def _growing(folder: Path, plugin: Path, rounds: int) -> Iterator[Row]:
    """`kubeauthn credential` with a kubeconfig of so many contexts."""
    readers = {}
    for contexts in SIZES:
        kubeconfig = folder / f"config-{contexts}"
        kubeconfig.write_text(synthetic_kubeconfig(contexts, command=str(plugin)))
        command = [str(Path(sys.executable).with_name("kubeauthn")), "credential", "--kubeconfig", str(kubeconfig)]
        readers[str(contexts)] = started(command)
    readings = in_turns(readers, rounds, elsewhere=True)
    found = {contexts: readings[str(contexts)] for contexts in SIZES}
    yield from growth_rows("start-up: kubeauthn credential, contexts", found, None, unit="ms", scale=1e3)


def _credentials(folder: Path, rounds: int) -> Iterator[Row]:
    """The shipped credential plugins up to the credential, as a client meets them between two logins: one is kept."""
    script, bare = str(Path(sys.executable).with_name("kubeauthn")), started([sys.executable, "-c", "pass"])
    home = folder / "home"
    home.mkdir()
    environment = {"HOME": str(home), "XDG_CACHE_HOME": str(home / "cache")}
    reply = json.dumps(
        {
            "apiVersion": "client.authentication.k8s.io/v1",
            "kind": "ExecCredential",
            "status": {"token": "t", "expirationTimestamp": "2999-01-01T00:00:00Z"},
        }
    )
    wrapped = PluginDirectory(home / "plugins").script("wrapped", f"echo '{reply}'\n")
    aws = {"AWS_ACCESS_KEY_ID": "AKIDEXAMPLE", "AWS_SECRET_ACCESS_KEY": "s", "AWS_EC2_METADATA_DISABLED": "true"}
    eks = [script, "plugin", "eks", "--cluster-name", "c", "--region", "eu-central-1"]
    with Issuer() as issuer:
        issuer.log_in_as("jane")
        oidc = [script, *_logged_in(issuer, home, environment)]
        lines = {
            "plugin oidc, a token kept": started(oidc, more=environment),
            "plugin cache, a credential kept": started(
                [script, "plugin", "cache", "--", str(wrapped)], more=environment
            ),
            "plugin eks": started(eks, more={**environment, **aws}),
        }
        for name, reader in lines.items():
            readings = interleaved(reader, bare, rounds, elsewhere=True)
            told = f"start-up: kubeauthn {name}"
            yield ratio_row(told, readings, peer_name="python -c pass", goal=None, unit="ms", scale=1e3)


def _logged_in(issuer: Issuer, home: Path, environment: dict[str, str]) -> list[str]:
    """The words of `plugin oidc`, after a login with a program in the browser's place."""
    scene = OidcScene(issuer, home)
    words = ["plugin", "oidc", *scene.words]
    done = scene.run("--login", **environment)
    if done.returncode:
        raise RuntimeError(f"the login failed: {done.stderr}")
    return words


def started(
    command: Sequence[str], *, refused: bool = False, more: Mapping[str, str] | None = None
) -> Callable[[], float]:
    environment = {**os.environ, "KUBERNETES_EXEC_INFO": EXEC_INFO, **(more or {})}
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
