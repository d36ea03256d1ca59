"""Memory of the servers that a user keeps running: at rest, and after more and more of their work.

The webhook's and the exec proxy's are measured where these are under load (`webhook`, `proxy`); here are the bridge,
the signer agent and the playground. Beside each stands a bare Python that waits; beside the bridge `kubectl proxy` too,
which does nearly its work. Every repetition starts anew. Figures are what the kernel says is resident.
"""

from __future__ import annotations

import hashlib
import http.client
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path

from bench.measure import Row, growth_rows, ratio_row
from bench.processes import resident_megabytes
from bench.proxy import kubectls
from bench.proxy_ways import ASK, fast_server, kubeconfig_for, kubectl_proxy
from bench.tokens import EXAMPLE
from kubeauthn._core.signerwire import SigningAlgorithm
from kubeauthn.client import connect
from kubeauthn.client.exec_source import forget_shared_sources
from kubeauthn.plugin.signer import Configuration
from kubeauthn.plugins.agent.client import through_agent
from kubeauthn.plugins.agent.wire import VARIABLE
from kubeauthn.testing import CertificateAuthority
from tests.integration.playground_process import PlaygroundProcess

SIZES = (1, 10, 100, 1000)
BARE = "a bare Python"
KUBEAUTHN = [sys.executable, "-m", "kubeauthn"]
PATIENCE = 30.0

# A running server: its process, and one piece of its work.
Running = tuple[int, Callable[[], object]]


def rows(folder: Path, *, quick: bool) -> Iterator[Row]:
    rounds, sizes = (1, SIZES[:3]) if quick else (3, SIZES)
    with fast_server() as server:
        bridge = {"the bridge": partial(running_bridge, folder, server), BARE: bare_python}
        for program, name in kubectls(quick=True)[:1]:
            bridge[name] = partial(running_kubectl, folder, server, program, name)
        yield from _server_rows(bridge, "requests", sizes, rounds)
        agent = {"the signer agent": partial(running_agent, folder), BARE: bare_python}
        yield from _server_rows(agent, "signatures", sizes, rounds)
        page = {"the playground": running_playground, BARE: bare_python}
        yield from _server_rows(page, "verdicts", sizes, rounds)


def _server_rows(servers: dict[str, Callable], work: str, sizes: tuple[int, ...], rounds: int) -> Iterator[Row]:
    """The first is ours."""
    rest: dict[str, list[float]] = {name: [] for name in servers}
    after: dict[str, dict[int, list[float]]] = {name: {size: [] for size in sizes} for name in servers}
    for _ in range(rounds):
        for name, start in servers.items():
            with start() as (pid, one):
                rest[name].append(resident_megabytes(pid))
                done = 0
                for size in sizes:
                    while done < size:
                        one()
                        done += 1
                    after[name][size].append(resident_megabytes(pid))
    ours, *others = servers
    for other in others:
        pair = (rest[ours], rest[other])
        yield ratio_row(f"memory: {ours} at rest", pair, peer_name=other, goal=None, unit="MB", scale=1)
        if other != BARE:
            pair = (after[ours][sizes[-1]], after[other][sizes[-1]])
            title = f"memory: {ours} after {sizes[-1]:,} {work}"
            yield ratio_row(title, pair, peer_name=other, goal=None, unit="MB", scale=1)
    yield from growth_rows(f"memory: {ours}, {work}", after[ours], None, unit="MB", scale=1)


@contextmanager
def bare_python() -> Iterator[Running]:
    command = [sys.executable, "-c", "import sys; print(flush=True); sys.stdin.read()"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdout.readline()
        yield process.pid, lambda: None
        process.stdin.close()


@contextmanager
def running_bridge(folder: Path, server: dict[str, str]) -> Iterator[Running]:
    """Started by the first request through the kubeconfig that leads to it, as with kubectl."""
    kubeconfig, bridged = kubeconfig_for(folder, server), folder / "bridged"
    os.environ["XDG_STATE_HOME"] = str(folder / "state")  # the plugin that starts it looks there as well

    def told(*words: str) -> str:
        command = [*KUBEAUTHN, "bridge", *words]
        return subprocess.run(command, capture_output=True, text=True, check=True, timeout=PATIENCE).stdout

    try:
        told("kubeconfig", "--kubeconfig", str(kubeconfig), "--write", str(bridged))
        with connect(kubeconfig=str(bridged)) as client:
            client.get("/version").raise_for_status()
            (found,) = json.loads(told("list", "--output", "json"))["bridges"]
            yield found["running"]["pid"], lambda: client.get("/version").raise_for_status()
    finally:
        told("stop", "--all")
        forget_shared_sources()  # what the next one starts with is not this one's certificate
        bridged.unlink(missing_ok=True)
        del os.environ["XDG_STATE_HOME"]


@contextmanager
def running_kubectl(folder: Path, server: dict[str, str], program: str, name: str) -> Iterator[Running]:
    with kubectl_proxy(folder, server, program, name) as way, way.connect() as connection:

        def ask() -> None:
            connection.sendall(ASK)
            connection.recv(4096)

        ask()
        yield way.pid, ask


@contextmanager
def running_agent(folder: Path) -> Iterator[Running]:
    """With a key in a file, so that the agent's own memory is seen and no module's."""
    place = folder / "agent"
    place.mkdir(mode=0o700, exist_ok=True)
    leaf, socket = CertificateAuthority().issue_client("jane"), place / "socket"
    key, certificate = place / "key.pem", place / "cert.pem"
    key.touch(mode=0o600)
    key.write_bytes(leaf.key_pem)
    certificate.write_bytes(leaf.chain_pem)
    entry = {"pathKey": str(key), "pathCert": str(certificate), "allowPlainKey": "true"}
    command = [*KUBEAUTHN, "signer", "agent", "--socket", str(socket), "--signer", "file"]
    command += [word for name, value in entry.items() for word in ("--set", f"{name}={value}")]
    digest = hashlib.sha256(b"hello").digest()
    with subprocess.Popen(command, stdin=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
        try:
            _until(socket.exists, "the signer agent")
            os.environ[VARIABLE] = str(socket)
            signer = through_agent("file", Configuration(**entry))
            if signer is None:
                raise RuntimeError("the signer agent does not know its key")
            yield process.pid, lambda: signer.sign(digest, SigningAlgorithm("ec", hash="sha256"))
        finally:
            os.environ.pop(VARIABLE, None)
            process.send_signal(signal.SIGTERM)


@contextmanager
def running_playground() -> Iterator[Running]:
    asked = json.dumps({"configuration": EXAMPLE, "claims": json.dumps({"sub": "jane"})})
    with PlaygroundProcess("--no-browser", "--port", "0") as command:

        def judged() -> None:
            connection = http.client.HTTPConnection("127.0.0.1", command.port, timeout=PATIENCE)
            connection.request("POST", "/judge", asked, {"Content-Type": "application/json"})
            response = connection.getresponse()
            if response.status != 200 or not response.read():
                raise RuntimeError(f"the playground answers with {response.status}")
            connection.close()

        yield command.process.pid, judged


def _until(holds: Callable[[], bool], what: str) -> None:
    ends = time.monotonic() + PATIENCE
    while not holds():
        if time.monotonic() > ends:
            raise RuntimeError(f"{what} does not start")
        time.sleep(0.01)
