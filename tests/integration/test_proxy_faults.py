"""What goes wrong around a proxy of the SDK: either end killed, a server that misbehaves, somebody else's hands."""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import ssl
import struct
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import httpx2
import pytest

from kubeauthn._core.kubeconfig.model import Cluster
from kubeauthn.client import connect
from kubeauthn.client.exec_source import forget_shared_sources
from kubeauthn.testing import ApiServer, PluginDirectory
from kubeauthn.testing._waiting import wait_for
from tests.integration.proxy_parts import (
    PLAIN,
    RoughServer,
    ask,
    cluster_of,
    eventually,
    read_head,
    read_response,
    running,
)

NOTHING = "from kubeauthn.plugin import proxy\nproxy.run(lambda request: None)\n"
NAMESPACES = "/api/v1/namespaces"
OTHER_USER = 65534
RECORDING = """
import os
from kubeauthn.plugin import proxy
with open({record!r}, "a") as file:
    print(os.getpid(), file=file)
def handler(request):
    return proxy.Change({{"Authorization": "Bearer good"}})
proxy.run(handler)
"""
CLIENT = f"""
import os, sys, time
from kubeauthn.client import connect
api = connect()
assert api.get({NAMESPACES!r}).status_code == 200
print("ready", flush=True)
time.sleep(600)
"""
PREFORK = f"""
import os, sys, time
from kubeauthn.client import connect
api = connect()
for _ in range(2):
    if os.fork() == 0:
        for _ in range(3):
            assert api.get({NAMESPACES!r}).status_code == 200
        print("ready", flush=True)
        time.sleep(600)
os.wait()
"""


@pytest.fixture
def server() -> Iterator[ApiServer]:
    with ApiServer(tokens={"good": "jane"}) as started:
        yield started


class Plugin:
    """A proxy of the SDK in a kubeconfig, and the processes that it was."""

    def __init__(self, folder: Path, server: ApiServer) -> None:
        self.record = folder / "pids"
        self.runtime = folder / "run"
        self.runtime.mkdir(mode=0o700)
        path = PluginDirectory(folder / "plugins").python("proxy", RECORDING.format(record=str(self.record)))
        entry = {
            "apiVersion": "client.authentication.k8s.io/v1",
            "command": str(path),
            "interactiveMode": "Never",
            "provideClusterInfo": True,
        }
        switch = [{"name": "client.authentication.k8s.io/exec-proxy", "extension": {"enabled": True}}]
        self.config = server.write_kubeconfig(folder / "config", {"exec": entry, "extensions": switch})

    @property
    def pids(self) -> list[int]:
        return [int(line) for line in self.record.read_text().split()] if self.record.exists() else []

    def sockets(self) -> list[Path]:
        return [path for path in self.runtime.rglob("*") if path.is_socket()]


@pytest.fixture
def plugin(server: ApiServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Plugin]:
    forget_shared_sources()
    made = Plugin(tmp_path, server)
    monkeypatch.setenv("KUBECONFIG", str(made.config))
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(made.runtime))
    yield made
    forget_shared_sources()


def alive(pid: int) -> bool:
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
        # while a thread of it is left, its sockets are open
        return state != "Z" or len(list(Path(f"/proc/{pid}/task").iterdir())) > 1
    except OSError:
        return False


# -- either end is killed


def seconds_until_the_proxy_is_gone(plugin: Plugin) -> float:
    with subprocess.Popen([sys.executable, "-c", CLIENT], stdout=subprocess.PIPE) as client:
        assert client.stdout is not None
        try:
            assert client.stdout.readline() == b"ready\n"
            pid = plugin.pids[-1]
            assert len(plugin.sockets()) == 1
        finally:
            client.kill()
        began = time.monotonic()
        wait_for(lambda: not alive(pid), 20)
        return time.monotonic() - began


def test_a_client_that_is_killed_takes_its_proxy_along_within_a_second(plugin: Plugin):
    """The best of three: other processes may want the machine, too."""
    taken = []
    for _ in range(3):
        taken.append(seconds_until_the_proxy_is_gone(plugin))
        assert plugin.sockets() == []
        if taken[-1] < 1:
            break
    assert min(taken) < 1


def test_a_proxy_that_is_killed_while_idle_is_not_the_callers_trouble(plugin: Plugin, server: ApiServer):
    with connect() as api:
        assert api.get(NAMESPACES).status_code == 200
        os.kill(plugin.pids[0], signal.SIGKILL)
        wait_for(lambda: not alive(plugin.pids[0]), 10)
        assert api.post(NAMESPACES, json={"metadata": {"name": "made"}}).status_code == 201
    assert len(plugin.pids) == 2
    assert {request.user for request in server.requests} == {"jane"}


def test_a_watch_whose_proxy_is_killed_ends_with_an_error_and_the_next_one_works(plugin: Plugin, server: ApiServer):
    with connect() as api:
        with api.stream("GET", f"{NAMESPACES}?watch=true") as watch:
            lines = watch.iter_lines()
            server.emit("namespaces", "first")
            wait_for(lambda: "first" in next(lines), 10)
            os.kill(plugin.pids[0], signal.SIGKILL)
            with pytest.raises(httpx2.TransportError):
                for _ in lines:
                    pass
        with api.stream("GET", f"{NAMESPACES}?watch=true") as watch:
            lines = watch.iter_lines()
            server.emit("namespaces", "second")
            wait_for(lambda: "second" in next(lines), 10)
    assert len(plugin.pids) == 2


def test_the_workers_of_a_prefork_server_have_a_proxy_each(plugin: Plugin):
    with subprocess.Popen([sys.executable, "-c", PREFORK], stdout=subprocess.PIPE) as parent:
        assert parent.stdout is not None
        children = Path(f"/proc/{parent.pid}/task/{parent.pid}/children")
        workers: list[int] = []
        try:
            assert parent.stdout.readline() + parent.stdout.readline() == b"ready\nready\n"
            workers = [int(pid) for pid in children.read_text().split()]
            first, second = plugin.pids
            assert alive(first)
            assert alive(second)
            os.kill(workers[0], signal.SIGKILL)
            wait_for(lambda: alive(first) != alive(second), 10)
            assert len(plugin.sockets()) == 1
        finally:
            for worker in workers:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(worker, signal.SIGKILL)
            parent.kill()
    wait_for(lambda: not alive(first) and not alive(second), 10)
    assert plugin.sockets() == []


# -- another user


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become another user")
def test_another_user_who_can_reach_the_socket_is_refused_by_tls(server: ApiServer, tmp_path: Path):
    program = (
        "import os, socket, ssl, sys\n"
        "context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)\n"
        "context.check_hostname = False\ncontext.verify_mode = ssl.CERT_NONE\n"
        "plain = socket.socket(socket.AF_UNIX)\nplain.settimeout(10)\n"
        f"os.setgid({OTHER_USER}); os.setuid({OTHER_USER})\n"
        "plain.connect(sys.argv[1])\n"
        "try:\n"
        "    connection = context.wrap_socket(plain, suppress_ragged_eofs=False)\n"
        "    connection.recv(1)\n"
        "except ssl.SSLError as error:\n"
        "    sys.exit(13 if 'CERTIFICATE_REQUIRED' in str(error) else 1)\n"
    )
    # Under /tmp itself: the folders of pytest are closed to others.
    with running(tmp_path, cluster_of(server), XDG_RUNTIME_DIR="", TMPDIR="/tmp") as proxy:
        os.chmod(os.path.dirname(proxy.path), 0o711)  # noqa: S103
        os.chmod(proxy.path, 0o666)  # noqa: S103
        ended = subprocess.run([sys.executable, "-c", program, proxy.path], timeout=50, capture_output=True, text=True)
        assert ended.returncode == 13, ended.stderr
        assert proxy.ask("GET /version HTTP/1.1")[0] == 200
    assert len(server.requests) == 1


# -- the server


def read_all(connection: ssl.SSLSocket) -> bytes:
    got = b""
    while piece := connection.recv(100_000):
        got += piece
    return got


def test_a_server_that_never_shakes_hands_is_given_up(tmp_path: Path):
    hurried = f"import kubeauthn._io.carrier.wires as wires\nwires.HANDSHAKE_SECONDS = 0.2\n{NOTHING}"
    with socket.create_server(("127.0.0.1", 0)) as silent, RoughServer(lambda _: None) as rough:
        port = silent.getsockname()[1]
        cluster = Cluster(server=f"https://127.0.0.1:{port}", certificate_authority_data=rough.ca.certificate_pem)
        with running(tmp_path, cluster, hurried) as proxy:
            status, _, body = proxy.ask("GET /version HTTP/1.1")
    assert status == 504
    assert b"the TLS handshake took longer than 0.2 s" in body


def test_a_server_that_is_slow_is_waited_for(tmp_path: Path):
    """Byte by byte: no time limit on an answer, since watches last; each byte goes on as it comes."""
    answer = b"HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nslow"
    go_on = threading.Event()

    def serve(connection: ssl.SSLSocket) -> None:
        read_head(connection)
        for at in range(len(answer) - 1):
            connection.sendall(answer[at : at + 1])
        go_on.wait(20)
        connection.sendall(answer[-1:])

    with RoughServer(serve) as rough, running(tmp_path, rough.cluster, NOTHING) as proxy, proxy.connect() as connection:
        connection.sendall(b"GET / HTTP/1.1\r\nHost: a\r\n\r\n")
        got = b""
        while not got.endswith(b"\r\n\r\nslo"):
            got += connection.recv(100)
        go_on.set()
        assert connection.recv(100) == b"w"


def reset(connection: ssl.SSLSocket) -> None:
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    os.close(connection.detach())


def half_close(connection: ssl.SSLSocket) -> None:
    """Without a word of TLS: anybody on the way could have cut it."""
    plain = socket.socket(fileno=os.dup(connection.fileno()))
    plain.shutdown(socket.SHUT_WR)
    plain.settimeout(20)
    plain.recv(1)
    plain.close()


@pytest.mark.parametrize("break_off", [reset, half_close], ids=["reset", "half-closed"])
@pytest.mark.parametrize("framing", [b"Content-Length: 100", b"Transfer-Encoding: chunked", b"X-Until: the end"])
def test_a_body_that_is_cut_never_looks_whole(break_off, framing: bytes, tmp_path: Path):
    def serve(connection: ssl.SSLSocket) -> None:
        read_head(connection)
        connection.sendall(b"HTTP/1.1 200 OK\r\n" + framing + b"\r\n\r\n5\r\nshort\r\n")
        seen.wait(20)
        break_off(connection)

    seen = threading.Event()
    with RoughServer(serve) as rough, running(tmp_path, rough.cluster, NOTHING) as proxy, proxy.connect() as connection:
        connection.suppress_ragged_eofs = False
        connection.sendall(b"GET / HTTP/1.1\r\nHost: a\r\n\r\n")
        got = b""
        while b"short" not in got:
            got += connection.recv(1000)
        seen.set()
        with pytest.raises((ssl.SSLError, ConnectionError)):  # and not an orderly end
            read_all(connection)


@pytest.mark.parametrize("break_off", [reset, half_close], ids=["reset", "half-closed"])
def test_no_answer_is_a_502(break_off, tmp_path: Path):
    def serve(connection: ssl.SSLSocket) -> None:
        read_head(connection)
        break_off(connection)

    with RoughServer(serve) as rough, running(tmp_path, rough.cluster, NOTHING) as proxy, proxy.connect() as connection:
        status, _, body = ask(connection, "POST / HTTP/1.1", "Content-Length: 1", body=b"x")
        assert status == 502
        assert b"the server closed the connection" in body
        assert rough.accepted == 1  # a POST is not repeated


# -- a server with bad intentions

SMUGGLED = b"HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\nforged"
HOSTILE = {
    "two lengths": b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nContent-Length: 3\r\n\r\nabc",
    "both framings": b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
    "a line end in a header": b"HTTP/1.1 200 OK\r\nX: a\nSet-Cookie: b\r\nContent-Length: 0\r\n\r\n",
    "a bare carriage return": b"HTTP/1.1 200 OK\r\nX: a\rY: b\r\nContent-Length: 0\r\n\r\n",
    "a continued line": b"HTTP/1.1 200 OK\r\nX: a\r\n b\r\nContent-Length: 0\r\n\r\n",
    "a switch that nobody asked for": b"HTTP/1.1 101 Switching\r\nConnection: Upgrade\r\nUpgrade: spdy/3.1\r\n\r\n",
    "headers without end": b"HTTP/1.1 200 OK\r\n" + b"X: y\r\n" * 60_000,
    "a line without end": b"HTTP/1.1 200 OK\r\nX: " + b"y" * 300_000,
    "too many fields": b"HTTP/1.1 200 OK\r\n" + b"X: y\r\n" * 501 + b"Content-Length: 0\r\n\r\n",
    "a flood of 1xx": b"HTTP/1.1 100 Continue\r\n\r\n" * 10_000,
    "no HTTP": b"SSH-2.0-OpenSSH_9\r\n\r\n",
}


@pytest.mark.parametrize("answer", HOSTILE.values(), ids=HOSTILE)
def test_an_answer_that_could_deceive_is_a_502(answer: bytes, tmp_path: Path):
    def serve(connection: ssl.SSLSocket) -> None:
        read_head(connection)
        connection.sendall(answer)
        connection.recv(1)

    with RoughServer(serve) as rough, running(tmp_path, rough.cluster, NOTHING) as proxy, proxy.connect() as connection:
        status, headers, body = ask(connection, "GET / HTTP/1.1")
        assert status == 502, (status, headers)
        assert b"forged" not in body
        assert "set-cookie" not in headers


def test_an_answer_behind_the_answer_is_nobodys(tmp_path: Path):
    """Response splitting: what a server adds must not answer the next request."""

    def serve(connection: ssl.SSLSocket) -> None:
        while read_head(connection):
            mine = b"HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nreal"
            connection.sendall(mine + SMUGGLED)

    with RoughServer(serve) as rough, running(tmp_path, rough.cluster, NOTHING) as proxy, proxy.connect() as connection:
        for number in range(3):
            assert ask(connection, f"GET /{number} HTTP/1.1")[2] == b"real"
        assert rough.accepted == 3


def test_an_answer_to_no_request_ends_the_connection(tmp_path: Path):
    """Sent while the connection is idle, to lie in wait for the next request."""

    def serve(connection: ssl.SSLSocket) -> None:
        read_head(connection)
        connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nreal")
        answered.wait(20)
        connection.sendall(SMUGGLED)
        try:
            connection.recv(1)
        except OSError:
            pass
        gone.set()

    answered, gone = threading.Event(), threading.Event()
    with RoughServer(serve) as rough, running(tmp_path, rough.cluster, NOTHING) as proxy, proxy.connect() as connection:
        assert ask(connection, "GET /1 HTTP/1.1")[2] == b"real"
        answered.set()
        eventually(gone.is_set, "the end of the connection to the server")
        assert ask(connection, "GET /2 HTTP/1.1")[2] == b"real"
        assert rough.accepted == 2


@pytest.mark.parametrize(
    "trailer", [b"Content-Length: 5\r\n", b"Host: evil\r\n", b"X: a\nY: b\r\n", b"X : y\r\n", b"A: b\r\n" * 5000]
)
def test_a_bad_trailer_breaks_the_answer_off(trailer: bytes, tmp_path: Path):
    def serve(connection: ssl.SSLSocket) -> None:
        read_head(connection)
        head = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\n"
        connection.sendall(head)
        connection.sendall(trailer + b"\r\n" + SMUGGLED)
        connection.recv(1)

    with RoughServer(serve) as rough, running(tmp_path, rough.cluster, NOTHING) as proxy, proxy.connect() as connection:
        connection.suppress_ragged_eofs = False
        connection.sendall(b"GET / HTTP/1.1\r\nHost: a\r\n\r\n")
        try:
            got = read_all(connection)
        except (ssl.SSLError, ConnectionError):
            return
        # where all came at once, an answer in its place
        assert got.startswith(b"HTTP/1.1 502 ")
        assert b"forged" not in got


def test_plain_requests_still_work_after_all_that(server: ApiServer, tmp_path: Path):
    with running(tmp_path, cluster_of(server), PLAIN) as proxy, proxy.connect() as connection:
        connection.sendall(b"GET /version HTTP/1.1\r\nHost: a\r\n\r\n")
        assert read_response(connection)[0] == 200


FEW_FILES = """
import resource
resource.setrlimit(resource.RLIMIT_NOFILE, (64, resource.getrlimit(resource.RLIMIT_NOFILE)[1]))
"""


def test_a_small_limit_of_open_files_does_not_limit_watches(server: ApiServer, tmp_path: Path):
    """A login shell's usual limit is less than a thousand watches need. What the system allows is taken."""
    with running(tmp_path, cluster_of(server), FEW_FILES + PLAIN) as proxy, contextlib.ExitStack() as stack:
        for _ in range(60):
            connection = stack.enter_context(proxy.connect())
            connection.sendall(f"GET {NAMESPACES}?watch=true HTTP/1.1\r\nHost: a\r\n\r\n".encode())
            assert read_head(connection).startswith(b"HTTP/1.1 200")
        assert server.open_watches == 60
