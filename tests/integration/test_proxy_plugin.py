"""The proxy SDK as a process: how it begins, whom it lets in, how it ends, and what its author's function can do."""

from __future__ import annotations

import hashlib
import json
import os
import re
import signal
import socket
import ssl
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from kubeauthn._core import execproxy, execwire
from kubeauthn.testing import ApiServer
from tests.integration.proxy_parts import PLAIN, cluster_of, eventually, running

OTHER_USER = 65534


@pytest.fixture
def server():
    with ApiServer(tokens={"good": "jane"}) as started:
        yield started


def run_once(source: str, info: str | None) -> subprocess.CompletedProcess[str]:
    environ = {name: value for name, value in os.environ.items() if name != execwire.VARIABLE}
    if info is not None:
        environ[execwire.VARIABLE] = info
    return subprocess.run([sys.executable, "-c", source], env=environ, capture_output=True, text=True, timeout=50)


def test_a_caller_that_knows_no_proxies_is_sent_to_the_bridge(server: ApiServer):
    """Plain kubectl: else it would show the proxy's certificate to the API server."""
    info = execwire.encode_exec_info(execwire.V1, interactive=False, cluster=cluster_of(server))
    ended = run_once(PLAIN, info)
    assert ended.returncode == 1
    assert ended.stdout == ""
    assert "knows no proxies: spec.lockFilePath is missing" in ended.stderr
    assert "kubeauthn kubectl -- ARGS" in ended.stderr
    assert server.requests == []


def test_without_cluster_information_the_entry_is_named(tmp_path: Path):
    info = execproxy.encode_exec_info(
        execwire.V1, interactive=False, cluster=None, lock_file_path=str(tmp_path / "lock")
    )
    ended = run_once(PLAIN, info)
    assert ended.returncode == 1
    assert ended.stdout == ""
    assert "hint: set provideClusterInfo: true" in ended.stderr


def test_a_lock_that_is_not_there(server: ApiServer, tmp_path: Path):
    info = execproxy.encode_exec_info(
        execwire.V1, interactive=False, cluster=cluster_of(server), lock_file_path=str(tmp_path / "none")
    )
    assert run_once(PLAIN, info).returncode == 1


def test_a_lock_that_nobody_holds_ends_the_proxy_at_once(server: ApiServer, tmp_path: Path):
    lock = tmp_path / "lock"
    lock.touch(0o600)
    info = execproxy.encode_exec_info(
        execwire.V1, interactive=False, cluster=cluster_of(server), lock_file_path=str(lock)
    )
    ended = run_once(PLAIN, info)
    assert ended.returncode == 0
    assert not os.path.exists(json.loads(ended.stdout)["status"]["proxyConfig"]["url"].removeprefix("unix://"))


def test_the_proxy_ends_with_its_client(server: ApiServer, tmp_path: Path):
    with running(tmp_path, cluster_of(server)) as proxy, proxy.connect() as connection:
        connection.sendall(b"GET /api/v1/namespaces?watch=true HTTP/1.1\r\nHost: a\r\n\r\n")
        connection.recv(1000)
        proxy.let_go()
        eventually(lambda: proxy.process.poll() is not None, "the end of the proxy")
        assert proxy.process.returncode == 0
        assert not os.path.exists(os.path.dirname(proxy.path))


def test_a_function_that_hangs_does_not_keep_it(server: ApiServer, tmp_path: Path):
    source = "import time\nfrom kubeauthn.plugin import proxy\nproxy.run(lambda request: time.sleep(600))\n"
    with running(tmp_path, cluster_of(server), source) as proxy, proxy.connect() as connection:
        connection.sendall(b"GET / HTTP/1.1\r\nHost: a\r\n\r\n")
        proxy.let_go()
        eventually(lambda: proxy.process.poll() is not None, "the end of the proxy")
        assert not os.path.exists(proxy.path)


def test_it_is_private_and_in_a_process_group_of_its_own(server: ApiServer, tmp_path: Path):
    with running(tmp_path, cluster_of(server)) as proxy:
        assert stat.S_IMODE(os.lstat(os.path.dirname(proxy.path)).st_mode) == 0o700
        assert stat.S_IMODE(os.lstat(proxy.path).st_mode) == 0o600
        assert os.getpgid(proxy.process.pid) == proxy.process.pid
        assert "PRIVATE KEY" not in Path(f"/proc/{proxy.process.pid}/environ").read_text()


def talk(context: ssl.SSLContext, plain: socket.socket) -> None:
    with context.wrap_socket(plain, suppress_ragged_eofs=False) as connection:
        connection.sendall(b"GET /version HTTP/1.1\r\nHost: a\r\n\r\n")
        connection.recv(100)


def test_no_certificate_or_another_one_is_not_let_in(server: ApiServer, tmp_path: Path):
    with running(tmp_path, cluster_of(server)) as proxy, running(tmp_path, cluster_of(server)) as other:
        for context in (proxy.context(with_certificate=False), other.context()):
            context.check_hostname = False
            context.verify_mode = ssl.CERT_NONE
            with proxy.raw() as plain, pytest.raises((ssl.SSLError, ConnectionError)):
                talk(context, plain)
        assert proxy.ask("GET /version HTTP/1.1")[0] == 200
    assert len(server.requests) == 1


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become another user")
def test_another_user_is_kept_out_by_the_mode(server: ApiServer, tmp_path: Path):
    program = (
        "import os, socket, sys\n"
        f"os.setgid({OTHER_USER}); os.setuid({OTHER_USER})\n"
        "try:\n    socket.socket(socket.AF_UNIX).connect(sys.argv[1])\n"
        "except PermissionError:\n    sys.exit(13)\n"
    )
    with running(tmp_path, cluster_of(server)) as proxy:
        assert subprocess.run([sys.executable, "-c", program, proxy.path], timeout=50).returncode == 13


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become another user")
def test_another_user_is_kept_out_by_tls_where_there_is_no_mode(server: ApiServer, tmp_path: Path):
    """On the loopback anybody can connect; what they lack is the certificate."""
    program = (
        "import os, socket, ssl, sys\n"
        "context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)\n"
        "context.check_hostname = False\ncontext.verify_mode = ssl.CERT_NONE\n"
        f"os.setgid({OTHER_USER}); os.setuid({OTHER_USER})\n"
        "plain = socket.socket()\nplain.settimeout(10)\nplain.connect(('127.0.0.1', int(sys.argv[1])))\n"
        "try:\n"
        "    connection = context.wrap_socket(plain, suppress_ragged_eofs=False)\n"
        "    connection.sendall(b'GET /version HTTP/1.1\\r\\nHost: a\\r\\n\\r\\n')\n"
        "    connection.recv(1)\n"
        "except (ssl.SSLError, ConnectionError):\n    sys.exit(13)\n"
    )
    source = PLAIN.replace("proxy.run(handler)", "proxy.run(handler, listen='loopback')")
    with running(tmp_path, cluster_of(server), source) as proxy:
        assert proxy.url.startswith("https://127.0.0.1:")
        assert proxy.ask("GET /version HTTP/1.1")[0] == 200
        port = proxy.url.rpartition(":")[2]
        assert subprocess.run([sys.executable, "-c", program, port], timeout=50).returncode == 13
    assert len(server.requests) == 1


def test_a_long_path_is_replaced_by_a_short_one(server: ApiServer, tmp_path: Path):
    deep = tmp_path / ("d" * 100)
    deep.mkdir()
    with running(tmp_path, cluster_of(server), XDG_RUNTIME_DIR=str(deep), TMPDIR=str(deep)) as proxy:
        assert len(proxy.path.encode()) <= execproxy.SOCKET_PATH_BYTES
        assert proxy.ask("GET /version HTTP/1.1")[0] == 200


def test_two_clients_have_two_proxies(tmp_path: Path):
    with ApiServer(tokens={"one": "anna", "two": "bert"}) as server:
        with running(tmp_path, cluster_of(server), PLAIN.replace("good", "two")) as second:
            with running(tmp_path, cluster_of(server), PLAIN.replace("good", "one")) as first:
                assert first.path != second.path
                assert first.ask("GET /version HTTP/1.1")[0] == 200
            assert second.ask("GET /version HTTP/1.1")[0] == 200
        assert [request.user for request in server.requests] == ["anna", "bert"]


def test_a_stopped_proxy_cleans_up(server: ApiServer, tmp_path: Path):
    with running(tmp_path, cluster_of(server)) as proxy:
        proxy.process.send_signal(signal.SIGTERM)
        eventually(lambda: proxy.process.poll() is not None, "the end of the proxy")
        assert not os.path.exists(proxy.path)


FUNCTION = """
import hashlib
from kubeauthn.plugin import proxy
async def handler(request):
    if request.target == "/refused":
        raise proxy.Refuse("not on Sundays", status=451)
    if request.target == "/broken":
        raise RuntimeError("Bearer good")
    if request.target == "/newline":
        return proxy.Change({"X-A": "a\\r\\nX-B: b"})
    if request.target == "/number":
        return proxy.Change({"X-A": 1})
    if request.target == "/twice":
        return proxy.Change({"X-A": "1", "x-a": "2"})
    if request.target == "/length":
        return proxy.Change({"Content-Length": "5"})
    body = await request.body()
    return proxy.Change(
        {"Authorization": "Bearer good", "X-Sum": hashlib.sha256(body).hexdigest(), "X-Seen": request.method},
        remove=["X-Gone"],
    )
proxy.run(handler, body_limit=1000)
"""


def test_what_the_function_can_do(server: ApiServer, tmp_path: Path):
    with running(tmp_path, cluster_of(server), FUNCTION) as proxy:
        body = b'{"metadata": {"name": "x"}}'
        assert proxy.ask("POST /nowhere HTTP/1.1", "X-Gone: 1", f"Content-Length: {len(body)}", body=body)[0] == 404
        seen = {name.lower(): value for name, value in server.requests[0].headers}
        assert seen["x-sum"] == hashlib.sha256(body).hexdigest()
        assert seen["x-seen"] == "POST"
        assert "x-gone" not in seen
        chunked = b"5\r\nhello\r\n1\r\n!\r\n0\r\n\r\n"
        proxy.ask("POST /nowhere HTTP/1.1", "Transfer-Encoding: chunked", body=chunked)
        assert dict(server.requests[1].headers)["X-Sum"] == hashlib.sha256(b"hello!").hexdigest()
        before = len(server.requests)
        refused = {
            "/refused": (451, "not on Sundays"),
            "/broken": (500, "the proxy's function failed: RuntimeError"),
            "/newline": (500, "the value of 'X-A' has characters that no header may carry, or blanks at its ends"),
            "/number": (500, "the value of 'X-A' must be a str, not int"),
            "/twice": (500, "a header is set twice: upper and lower case make no difference"),
            "/length": (500, "Content-Length is set by the harness, because it says where a message ends or goes"),
        }
        for target, (status, message) in refused.items():
            answer = proxy.ask(f"GET {target} HTTP/1.1")
            assert (answer[0], answer[2].decode().strip()) == (status, message)
        assert proxy.ask("PUT /big HTTP/1.1", "Content-Length: 1001", body=b"x" * 1001)[0] == 413
        assert len(server.requests) == before
        proxy.let_go()
        proxy.process.wait(20)
        assert proxy.process.stderr is not None
        complained = proxy.process.stderr.read().decode()
        assert "Bearer good" not in complained
        for reason, line in [
            ("function failed: RuntimeError", "raise Runtime"),
            ("must be a str, not int", '"X-A": 1}'),
        ]:
            where = next(number for number, text in enumerate(FUNCTION.splitlines(), 1) if line in text)
            assert re.search(rf"{reason} \(\S+:{where}\)\n", complained), complained
        assert "not on Sundays\n" in complained


@pytest.mark.parametrize("given", ["'x'", "None, tls='x'"])
def test_what_is_no_function_is_told_before_any_request(given: str):
    ended = run_once(f"from kubeauthn.plugin import proxy\nproxy.run({given})\n", None)
    assert (ended.returncode, ended.stdout) == (1, "")
    assert "a proxy needs functions, and was given a str" in ended.stderr


def test_the_harness_tells_a_waiting_client_to_send_its_body(server: ApiServer, tmp_path: Path):
    with running(tmp_path, cluster_of(server), FUNCTION) as proxy, proxy.connect() as connection:
        connection.sendall(b"PUT /x HTTP/1.1\r\nHost: a\r\nContent-Length: 4\r\nExpect: 100-continue\r\n\r\n")
        assert connection.recv(100) == b"HTTP/1.1 100 Continue\r\n\r\n"
        connection.sendall(b"body")
        assert b"HTTP/1.1 404" in connection.recv(1000)
        assert "expect" not in {name.lower() for name, _ in server.requests[0].headers}


CANCELLED = """
import asyncio, pathlib
from kubeauthn.plugin import proxy
async def handler(request):
    try:
        print("waits", file=open({folder!r} + "/waits", "w"))
        await asyncio.sleep(600)
    finally:
        pathlib.Path({folder!r}, "left").touch()
proxy.run(handler)
"""


def test_the_function_is_not_kept_waiting_for_a_client_that_left(server: ApiServer, tmp_path: Path):
    with running(tmp_path, cluster_of(server), CANCELLED.format(folder=str(tmp_path))) as proxy:
        with proxy.connect() as connection:
            connection.sendall(b"GET / HTTP/1.1\r\nHost: a\r\n\r\n")
            eventually((tmp_path / "waits").exists, "the function's begin")
        eventually((tmp_path / "left").exists, "the function's end")
    assert server.requests == []


OWN_CONTEXT = """
import ssl
from kubeauthn.plugin import proxy
proxy.run(tls=lambda cluster: ssl.create_default_context(cadata=cluster.certificate_authority_data.decode()))
"""


def test_the_servers_name_is_the_kubeconfigs_in_a_context_of_the_authors_too(tmp_path: Path):
    with ApiServer(allow_anonymous=True, server_names=["cluster.internal"]) as server:
        with running(tmp_path, cluster_of(server, tls_server_name="cluster.internal"), OWN_CONTEXT) as proxy:
            assert proxy.ask("GET /version HTTP/1.1")[0] == 200
        with running(tmp_path, cluster_of(server, tls_server_name="other.internal"), OWN_CONTEXT) as proxy:
            assert proxy.ask("GET /version HTTP/1.1")[0] == 502
    assert len(server.requests) == 1


@pytest.mark.parametrize(("verifies", "what"), [("CERT_NONE", "certificate"), ("CERT_REQUIRED", "name")])
def test_a_context_that_verifies_too_little_is_refused(server: ApiServer, tmp_path: Path, verifies: str, what: str):
    source = (
        "import ssl\nfrom kubeauthn.plugin import proxy\n"
        "def tls(cluster):\n    context = proxy.server_context(cluster)\n    context.check_hostname = False\n"
        f"    context.verify_mode = ssl.{verifies}\n    return context\nproxy.run(tls=tls)\n"
    )
    info = execproxy.encode_exec_info(
        execwire.V1, interactive=False, cluster=cluster_of(server), lock_file_path=str(tmp_path / "lock")
    )
    ended = run_once(source, info)
    assert ended.returncode == 1
    assert f"does not verify its {what}" in ended.stderr
