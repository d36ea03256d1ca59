"""The proxies that are measured, each running, and how to get a connection through it."""

from __future__ import annotations

import asyncio
import base64
import fcntl
import json
import os
import socket
import ssl
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path

from bench.processes import resident_megabytes
from kubeauthn._core import execproxy, execwire
from kubeauthn._core.credential import ClientIdentity
from kubeauthn._core.kubeconfig.model import Cluster
from kubeauthn._io.carrier.wires import PlainWire, TlsWire
from kubeauthn._io.tls import load_identity
from kubeauthn._secret import Secret

PLUGIN = "from kubeauthn.plugin import proxy\nproxy.run(lambda request: None)\n"
ASK = b"GET /version HTTP/1.1\r\nHost: bench\r\n\r\n"

Maker = Callable[[], AbstractContextManager["Way"]]


class Way:
    """How to get a connection through one of them: as streams, as a wire, or as a socket that waits."""

    def __init__(self, name: str, open_connection, dial, connect: Callable[[], socket.socket], pid: int) -> None:
        self.name = name
        self.open = open_connection
        self.dial = dial
        self.connect = connect
        self.pid = pid

    def memory(self) -> float:
        return resident_megabytes(self.pid)


@contextmanager
def fast_server() -> Iterator[dict[str, str]]:
    command = [sys.executable, "-m", "bench.proxy_server"]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, cwd=Path(__file__).parent.parent
    ) as process:
        assert process.stdout is not None
        try:
            yield json.loads(process.stdout.readline())
        finally:
            process.terminate()


@contextmanager
def our_proxy(folder: Path, server: dict[str, str]) -> Iterator[Way]:
    lock_path = folder / f"lock-{os.urandom(4).hex()}"
    lock = os.open(lock_path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    fcntl.flock(lock, fcntl.LOCK_EX)
    cluster = Cluster(server=server["url"], certificate_authority_data=server["ca"].encode())
    info = execproxy.encode_exec_info(execwire.V1, interactive=False, cluster=cluster, lock_file_path=str(lock_path))
    environ = {**os.environ, execwire.VARIABLE: info}
    with subprocess.Popen([sys.executable, "-c", PLUGIN], stdout=subprocess.PIPE, env=environ) as process:
        assert process.stdout is not None
        status = json.loads(process.stdout.readline())["status"]
        authority = base64.b64decode(status["proxyConfig"]["certificate-authority-data"])
        context = ssl.create_default_context(cadata=authority.decode())
        pem, key = status["clientCertificateData"].encode(), Secret(status["clientKeyData"])
        load_identity(context, ClientIdentity(pem, key, not_before=0, not_after=0))
        path = status["proxyConfig"]["url"].removeprefix("unix://")

        def connect() -> socket.socket:
            plain = socket.socket(socket.AF_UNIX)
            plain.connect(path)
            return context.wrap_socket(plain, server_hostname="localhost")

        way = Way(
            "ours",
            lambda: asyncio.open_unix_connection(path, ssl=context, server_hostname="localhost", limit=1 << 20),
            lambda end: asyncio.get_running_loop().create_unix_connection(
                lambda: TlsWire(end, context, "localhost"), path
            ),
            connect,
            process.pid,
        )
        try:
            yield way
        finally:
            os.close(lock)


def kubeconfig_for(folder: Path, server: dict[str, str]) -> Path:
    config = folder / "config"
    cluster = {"server": server["url"], "certificate-authority-data": base64.b64encode(server["ca"].encode()).decode()}
    config.write_text(
        json.dumps(
            {
                "apiVersion": "v1",
                "kind": "Config",
                "current-context": "b",
                "clusters": [{"name": "b", "cluster": cluster}],
                "users": [{"name": "b", "user": {"token": "bench"}}],
                "contexts": [{"name": "b", "context": {"cluster": "b", "user": "b"}}],
            }
        )
    )
    return config


@contextmanager
def kubectl_proxy(folder: Path, server: dict[str, str], program: str, name: str) -> Iterator[Way]:
    config = kubeconfig_for(folder, server)
    command = [program, "--kubeconfig", str(config), "proxy", "--port=0", "--accept-hosts=.*", "--reject-methods=^$"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        try:
            port = int(process.stdout.readline().rpartition(":")[2])
            yield Way(
                name,
                lambda: asyncio.open_connection("127.0.0.1", port, limit=1 << 20),
                lambda end: asyncio.get_running_loop().create_connection(lambda: PlainWire(end), "127.0.0.1", port),
                lambda: socket.create_connection(("127.0.0.1", port)),
                process.pid,
            )
        finally:
            process.terminate()
