"""What the tests of proxies share: a client that holds the lock and speaks raw bytes, and a server that is rough."""

from __future__ import annotations

import base64
import contextlib
import fcntl
import json
import os
import socket
import ssl
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from kubeauthn._core import execproxy, execwire
from kubeauthn._core.credential import ClientIdentity
from kubeauthn._core.kubeconfig.model import Cluster
from kubeauthn._io.tls import load_identity
from kubeauthn._secret import Secret
from kubeauthn.testing import ApiServer
from kubeauthn.testing.pki import CertificateAuthority

SECONDS = 20.0

PLAIN = """
from kubeauthn.plugin import proxy
async def handler(request):
    return proxy.Change({"Authorization": "Bearer good"})
proxy.run(handler)
"""


def eventually(condition: Callable[[], object], what: str, seconds: float = SECONDS) -> None:
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, f"waited for: {what}"
        time.sleep(0.01)


def cluster_of(server: ApiServer, **fields) -> Cluster:
    return Cluster(server=server.url, certificate_authority_data=server.ca.certificate_pem, **fields)


class RunningProxy:
    """A proxy plugin's process, as a client sees it."""

    def __init__(self, process: subprocess.Popen[bytes], lock: int, reply: dict) -> None:
        self.process = process
        self.lock = lock
        self.status = reply["status"]
        self.url: str = self.status["proxyConfig"]["url"]
        self.authority = base64.b64decode(self.status["proxyConfig"]["certificate-authority-data"])
        self.path = self.url.removeprefix("unix://")

    def context(self, *, with_certificate: bool = True) -> ssl.SSLContext:
        context = ssl.create_default_context(cadata=self.authority.decode())
        if with_certificate:
            pem, key = self.status["clientCertificateData"].encode(), Secret(self.status["clientKeyData"])
            load_identity(context, ClientIdentity(pem, key, not_before=0, not_after=0))
        return context

    def raw(self) -> socket.socket:
        if self.url.startswith("unix://"):
            plain = socket.socket(socket.AF_UNIX)
            plain.settimeout(SECONDS)
            plain.connect(self.path)
            return plain
        return socket.create_connection(("127.0.0.1", int(self.url.rpartition(":")[2])), SECONDS)

    def connect(self) -> ssl.SSLSocket:
        return self.context().wrap_socket(self.raw(), server_hostname="localhost")

    def ask(self, *lines: str, body: bytes = b"") -> tuple[int, dict[str, str], bytes]:
        with self.connect() as connection:
            return ask(connection, *lines, body=body)

    def let_go(self) -> None:
        """As when the client dies."""
        os.close(self.lock)
        self.lock = -1


def ask(connection: ssl.SSLSocket, *lines: str, body: bytes = b"") -> tuple[int, dict[str, str], bytes]:
    connection.sendall("\r\n".join((lines[0], "Host: api.test", *lines[1:], "", "")).encode() + body)
    return read_response(connection, lines[0].split(" ")[0])


def read_response(connection: socket.socket, method: str = "GET") -> tuple[int, dict[str, str], bytes]:
    """One response, its body without chunks. Reads no byte too many, so that what follows can be read after it."""
    import http.client

    response = http.client.HTTPResponse(connection, method=method)
    response.begin()
    return response.status, {name.lower(): value for name, value in response.getheaders()}, response.read()


@contextlib.contextmanager
def running(
    folder: Path, cluster: Cluster, source: str = PLAIN, *, argv: list[str] | None = None, **environment: str
) -> Iterator[RunningProxy]:
    lock_path = folder / f"lock-{os.urandom(4).hex()}"
    lock = os.open(lock_path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    fcntl.flock(lock, fcntl.LOCK_EX)
    info = execproxy.encode_exec_info(execwire.V1, interactive=False, cluster=cluster, lock_file_path=str(lock_path))
    process = subprocess.Popen(
        argv or [sys.executable, "-c", source],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env={**os.environ, **environment, execwire.VARIABLE: info},
    )
    assert process.stdout is not None
    assert process.stderr is not None
    proxy = None
    try:
        text = process.stdout.readline()
        assert text, process.stderr.read().decode()
        proxy = RunningProxy(process, lock, json.loads(text))
        yield proxy
    finally:
        if proxy is None or proxy.lock >= 0:
            os.close(lock)
        try:
            process.wait(SECONDS)
        finally:
            process.kill()
            process.stdout.close()
            process.stderr.close()


class RoughServer:
    """A TLS server that reads what comes and answers what it was told, byte for byte."""

    def __init__(self, serve: Callable[[ssl.SSLSocket], None]) -> None:
        import threading

        self.ca = CertificateAuthority()
        self.faults: list[str] = []
        self.serve = serve
        self._socket = socket.create_server(("127.0.0.1", 0))
        self._context = self.ca.server_context()
        self.port = self._socket.getsockname()[1]
        self.accepted = 0
        self._thread = threading.Thread(target=self._run, daemon=True)

    def __enter__(self) -> RoughServer:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._socket.close()

    @property
    def cluster(self) -> Cluster:
        return Cluster(server=f"https://127.0.0.1:{self.port}", certificate_authority_data=self.ca.certificate_pem)

    def _run(self) -> None:
        import threading

        while True:
            try:
                plain, _ = self._socket.accept()
            except OSError:
                return
            self.accepted += 1
            threading.Thread(target=self._one, args=(plain,), daemon=True).start()

    def _one(self, plain: socket.socket) -> None:
        try:
            plain.settimeout(SECONDS)
            with self._context.wrap_socket(plain, server_side=True) as connection:
                self.serve(connection)
        except OSError as error:
            self.faults.append(str(error))


def read_head(connection: socket.socket) -> bytes:
    data = b""
    while b"\r\n\r\n" not in data:
        more = connection.recv(65536)
        if not more:
            return data
        data += more
    return data
