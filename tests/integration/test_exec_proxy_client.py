"""The client side of the exec proxy: life and death of the proxy, and what is refused."""

from __future__ import annotations

import fcntl
import json
import os
import signal
import socket
import ssl
import stat
import subprocess
import sys
import time
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from kubeauthn._core.execproxy import ProxyRoute
from kubeauthn._io.dialing import connect as dial
from kubeauthn._io.lockfile import ClientLock
from kubeauthn.client import connect, connect_async, metrics
from kubeauthn.client.exec_source import forget_shared_sources
from kubeauthn.errors import (
    CredentialError,
    KubeconfigError,
    PluginFailed,
    PluginReplyError,
    PluginTimeout,
    ProxyRefused,
    ProxyUnreachable,
)
from kubeauthn.testing import ApiServer, PluginDirectory, ProxyPlugin, ScriptedPlugin
from kubeauthn.testing._waiting import wait_for

PATH = "/api/v1/namespaces"
EXTENSIONS = [{"name": "client.authentication.k8s.io/exec-proxy", "extension": {"enabled": True}}]
root_only = pytest.mark.skipif(os.geteuid() != 0, reason="changes the owner of files")


@pytest.fixture(autouse=True)
def no_proxy_from_another_test() -> Iterator[None]:
    forget_shared_sources()
    yield
    forget_shared_sources()


@pytest.fixture
def server() -> Iterator[ApiServer]:
    with ApiServer() as running:
        yield running


@pytest.fixture
def proxy(server: ApiServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> ProxyPlugin:
    plugin = ProxyPlugin(tmp_path / "proxy", upstream=server.ca.issue_client("jane"))
    monkeypatch.setenv("KUBECONFIG", str(server.write_kubeconfig(tmp_path / "config", plugin.user())))
    return plugin


def use(server: ApiServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, user: dict[str, object]) -> None:
    monkeypatch.setenv("KUBECONFIG", str(server.write_kubeconfig(tmp_path / "config", user)))


def users(server: ApiServer) -> list[str | None]:
    return [each.user for each in server.requests]


def start_client(code: str) -> subprocess.Popen[bytes]:
    return subprocess.Popen([sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE)


CLIENT = f"""
import sys
from kubeauthn.client import connect
api = connect()
assert api.get({PATH!r}).status_code == 200
print("ready", flush=True)
sys.stdin.readline()
"""


def ready(client: subprocess.Popen[bytes]) -> None:
    assert client.stdout is not None
    assert client.stdout.readline() == b"ready\n"


def running(pid: int) -> bool:
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
        # while a thread of it is left, its sockets are open
        return state != "Z" or len(list(Path(f"/proc/{pid}/task").iterdir())) > 1
    except OSError:
        return False


def end(process: subprocess.Popen[bytes]) -> None:
    process.kill()
    process.wait(10)
    for pipe in (process.stdin, process.stdout):
        if pipe is not None:
            pipe.close()


# -- switched on or not


def test_not_switched_on_the_plugin_sees_what_it_always_saw_and_its_proxy_is_refused(
    server: ApiServer, proxy: ProxyPlugin, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    proxy.order(daemon=True, form="https")
    use(server, tmp_path, monkeypatch, proxy.user(switched_on=False))
    with connect() as api, pytest.raises(PluginReplyError, match="the exec proxy is not switched on for it") as caught:
        api.get(PATH)
    wait_for(lambda: (proxy.folder / "serving").exists(), 10)  # the daemon may still be on its way
    os.kill(proxy.serving_pid, signal.SIGKILL)
    assert "KUBEAUTHN_EXEC_PROXY=1" in (caught.value.hint or "")
    assert proxy.info()["spec"].keys() == {"interactive", "cluster"}
    assert server.requests == []


def test_the_variable_and_the_argument_switch_it_on(
    server: ApiServer, proxy: ProxyPlugin, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    use(server, tmp_path, monkeypatch, proxy.user(switched_on=False))
    with connect(exec_proxy=True) as api:
        assert api.get(PATH).status_code == 200
    forget_shared_sources()
    monkeypatch.setenv("KUBEAUTHN_EXEC_PROXY", "1")
    with connect() as api:
        assert api.get(PATH).status_code == 200
    assert users(server) == ["jane", "jane"]
    assert proxy.runs == 2


def test_an_ordinary_credential_is_still_one(server: ApiServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    plugin = ScriptedPlugin(tmp_path / "plugin")
    plugin.reply(token="one")
    server.accept_token("one", user="joe")
    use(server, tmp_path, monkeypatch, {**plugin.user(), "extensions": EXTENSIONS})
    with connect() as api:
        assert api.get(PATH).status_code == 200
    assert users(server) == ["joe"]
    assert not os.path.exists(plugin.exec_info()["spec"]["lockFilePath"])  # nobody is there to watch it


def test_v1alpha1_knows_no_proxies(
    server: ApiServer, proxy: ProxyPlugin, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    use(server, tmp_path, monkeypatch, proxy.user(apiVersion="client.authentication.k8s.io/v1alpha1"))
    with pytest.raises(KubeconfigError, match="knows no proxies"):
        connect()


# -- what a plugin may say


@pytest.mark.parametrize(
    ("change", "text"),
    [
        ({"proxyConfig": {"url": "http://127.0.0.1:1", "certificate-authority-data": "eA=="}}, "is not unix:///PATH"),
        ({"proxyConfig": {"url": "https://10.0.0.1:1", "certificate-authority-data": "eA=="}}, "is not unix:///PATH"),
        ({"proxyConfig": {"url": "https://127.0.0.1:1@h:2", "certificate-authority-data": "eA=="}}, "is not unix"),
        ({"proxyConfig": {"url": "unix:///tmp/x"}}, "without certificate-authority-data"),
        ({"proxyConfig": {"url": "unix:///tmp/x", "certificate-authority-data": "eA=="}}, "holds no PEM certificate"),
        ({"proxyConfig": {"certificate-authority-data": "eA=="}}, "without url"),
        ({"proxyConfig": "yes"}, "must be an object"),
        ({"clientKeyData": "", "clientCertificateData": ""}, "without clientCertificateData and clientKeyData"),
    ],
)
def test_a_reply_that_is_not_right_ends_the_proxy(
    server: ApiServer, proxy: ProxyPlugin, change: dict[str, object], text: str
):
    proxy.order(status=change)
    with connect() as api, pytest.raises(PluginReplyError, match=text):
        api.get(PATH)
    pid = int((proxy.folder / "runs").read_text())
    wait_for(lambda: not running(pid), 5)
    assert server.requests == []


@pytest.mark.parametrize(
    ("script", "error"),
    [
        ("echo garbage", PluginReplyError),
        ('echo \'{"status": {"proxyConfig": {}}} and more\'', PluginReplyError),
        ("exec sleep 600", PluginTimeout),
        ("printf '{'; exec sleep 600", PluginTimeout),
        ("while :; do printf ' '; sleep 0.02; done", PluginTimeout),
        ('printf \'{"status": "\'; exec yes', PluginReplyError),
        ("head -c 99999 /dev/zero | tr '\\0' '['; head -c 99999 /dev/zero | tr '\\0' ']'", PluginReplyError),
        ("exit 3", PluginFailed),
    ],
)
def test_a_plugin_that_does_not_answer_properly(
    server: ApiServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, script: str, error: type[Exception]
):
    path = PluginDirectory(tmp_path / "plugins").script("odd", script)
    entry = {"apiVersion": "client.authentication.k8s.io/v1", "command": str(path), "interactiveMode": "Never"}
    use(server, tmp_path, monkeypatch, {"exec": entry, "extensions": EXTENSIONS})
    with connect(plugin_timeout=1.0) as api, pytest.raises(error):
        api.get(PATH)
    assert server.requests == []


def test_the_name_of_the_proxy_is_checked(server: ApiServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    plugin = ProxyPlugin(tmp_path / "other", upstream=server.ca.issue_client("jane"), name="elsewhere")
    use(server, tmp_path, monkeypatch, plugin.user())
    with connect() as api, pytest.raises(ProxyUnreachable, match="is not the proxy that the plugin started"):
        api.get(PATH)
    assert server.requests == []


def test_a_directory_that_others_can_write_is_refused(server: ApiServer, proxy: ProxyPlugin):
    proxy.order(mode=0o770)
    with connect() as api, pytest.raises(ProxyRefused, match="can be written by other users"):
        api.get(PATH)
    assert proxy.runs == 1
    assert server.requests == []


@root_only
@pytest.mark.parametrize("what", ["directory", "socket"])
def test_what_belongs_to_somebody_else_is_refused(server: ApiServer, proxy: ProxyPlugin, what: str):
    with connect() as api:
        assert api.get(PATH).status_code == 200
    path = proxy.url.removeprefix("unix://")
    os.chown(os.path.dirname(path) if what == "directory" else path, 65534, 65534)
    with connect() as api, pytest.raises(ProxyRefused, match="belongs to user 65534"):
        api.get(PATH)


@root_only
def test_another_user_is_kept_out_by_the_directory_and_by_tls(server: ApiServer, proxy: ProxyPlugin):
    with connect() as api:
        assert api.get(PATH).status_code == 200
        path = proxy.url.removeprefix("unix://")
        # A child of another user cannot even see it. (Not a Python: the interpreter may be out of that user's reach.)
        other = subprocess.run(
            ["/bin/ls", path], user=65534, group=65534, extra_groups=[], capture_output=True, cwd="/"
        )
        assert b"Permission denied" in other.stderr
        with socket.socket(socket.AF_UNIX) as plain:  # past the directory, and then without the certificate
            plain.settimeout(10)
            plain.connect(path)
            context = ssl.create_default_context(cadata=proxy.ca.certificate_pem.decode())
            with context.wrap_socket(plain, server_hostname="localhost") as encrypted:
                with pytest.raises(OSError, match="(?i)certificate required|reset|broken|eof"):
                    _ask(encrypted)
    assert users(server) == ["jane"]


def _ask(connection: ssl.SSLSocket) -> None:
    connection.sendall(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n")
    if not connection.recv(1):
        raise ConnectionResetError("reset")


@pytest.mark.parametrize("kind", ["symlink", "file"])
def test_what_is_no_socket_is_refused(tmp_path: Path, kind: str):
    directory = tmp_path / "d"
    directory.mkdir(mode=0o700)
    if kind == "symlink":
        (directory / "s").symlink_to("/run/other.sock")
    else:
        (directory / "s").touch()
    with pytest.raises(ProxyRefused, match="is not a socket"):
        dial(ProxyRoute(f"unix://{directory}/s", b""), 1.0)


def test_a_directory_that_is_gone_means_that_nobody_listens(tmp_path: Path):
    with pytest.raises(ProxyUnreachable, match="the directory is gone"):
        dial(ProxyRoute(f"unix://{tmp_path}/gone/s", b""), 1.0)


def test_a_path_that_is_too_long_for_a_socket_address(server: ApiServer, proxy: ProxyPlugin):
    proxy.order(long=True)
    with connect() as api:
        assert api.get(PATH).status_code == 200
    assert len(proxy.url) > 120
    assert users(server) == ["jane"]


# -- life and death


def test_a_client_that_is_killed_takes_its_proxy_along(server: ApiServer, proxy: ProxyPlugin):
    client = start_client(CLIENT)
    try:
        ready(client)
        path = proxy.url.removeprefix("unix://")
        assert os.path.exists(path)
        client.kill()
        client.wait(10)
        wait_for(lambda: not proxy.alive, 5)
        wait_for(lambda: not os.path.exists(path), 5)
    finally:
        end(client)


def test_a_client_that_ends_leaves_nothing(server: ApiServer, proxy: ProxyPlugin):
    client = start_client(CLIENT)
    try:
        ready(client)
        client.communicate(b"\n", timeout=20)
        assert client.returncode == 0
        wait_for(lambda: not proxy.alive, 5)
        assert not os.path.exists(proxy.info()["spec"]["lockFilePath"])
    finally:
        end(client)


def test_two_clients_have_two_proxies(server: ApiServer, proxy: ProxyPlugin):
    first = start_client(CLIENT)
    second = None
    try:
        ready(first)
        first_pid = proxy.serving_pid
        proxy.show_upstream(server.ca.issue_client("joe"))
        second = start_client(CLIENT)
        ready(second)
        assert proxy.serving_pid != first_pid
        assert users(server) == ["jane", "joe"]
        first.kill()
        wait_for(lambda: not running(first_pid), 5)
        assert proxy.alive
    finally:
        end(first)
        if second is not None:
            end(second)


FORKING = f"""
import os, sys, time
from kubeauthn.client import connect
api = connect()
assert api.get({PATH!r}).status_code == 200
if os.fork() == 0:
    assert api.get({PATH!r}).status_code == 200
    print("ready", flush=True)
    time.sleep(600)
time.sleep(600)
"""


def test_a_forked_child_has_a_proxy_of_its_own_and_does_not_keep_its_parents(server: ApiServer, proxy: ProxyPlugin):
    parent = start_client(FORKING)
    children = Path(f"/proc/{parent.pid}/task/{parent.pid}/children")
    child = None
    try:
        ready(parent)
        assert proxy.runs == 2
        first, second = map(int, (proxy.folder / "runs").read_text().split())
        assert running(first)
        assert running(second)
        child = next(int(pid) for pid in children.read_text().split() if int(pid) not in (first, second))
        parent.kill()
        parent.wait(10)
        wait_for(lambda: not running(first), 5)
        assert running(second)
        os.kill(child, signal.SIGKILL)
        wait_for(lambda: not running(second), 5)
    finally:
        if child is not None and running(child):
            os.kill(child, signal.SIGKILL)
        end(parent)


def test_a_proxy_whose_certificate_has_ended_is_replaced_and_ends(
    server: ApiServer, proxy: ProxyPlugin, monkeypatch: pytest.MonkeyPatch
):
    ends = datetime.now(UTC) + timedelta(seconds=3)
    soon = proxy.ca.issue_client("short", not_after=ends)
    proxy.order(
        status={"clientCertificateData": soon.chain_pem.decode(), "clientKeyData": soon.key_pem.decode()},
    )
    with connect() as api:
        assert api.get(PATH).status_code == 200
        first = proxy.serving_pid
        proxy.order(status={})
        wait_for(lambda: time.time() > ends.timestamp() + 0.1, 10)
        assert api.get(PATH).status_code == 200
        assert proxy.runs == 2
        wait_for(lambda: not running(first), 10)
        assert proxy.alive


def test_a_watch_goes_on_through_the_proxy_that_was_replaced(server: ApiServer, proxy: ProxyPlugin):
    with connect() as api:
        with api.stream("GET", PATH, params={"watch": "1"}, timeout=20) as watch:
            lines = watch.iter_lines()
            first = proxy.serving_pid
            server.unauthorized(times=1)
            assert api.get(PATH).status_code == 200  # by the second proxy
            assert proxy.serving_pid != first
            server.emit("namespaces", "later")
            assert any("later" in next(lines) for _ in range(10))
            assert running(first)
            del lines
        del watch
        wait_for(lambda: not running(first), 10)
        assert api.get(PATH).status_code == 200
    assert proxy.runs == 2


TERMINAL = f"""
import os, signal
from kubeauthn.client import connect
signal.signal(signal.SIGINT, lambda *_: print("interrupted", flush=True))
api = connect()
assert api.get({PATH!r}).status_code == 200
print("in front" if os.tcgetpgrp(0) == os.getpgrp() else "behind", flush=True)
while input() != "again":
    pass
print(api.get({PATH!r}).status_code, flush=True)
"""


def test_a_plugin_asks_at_the_terminal_and_its_proxy_does_not_hear_ctrl_c(
    server: ApiServer, proxy: ProxyPlugin, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    import pty
    import select

    proxy.order(asks=True)
    use(server, tmp_path, monkeypatch, proxy.user(interactiveMode="Always"))
    pid, terminal = pty.fork()
    if pid == 0:
        os.execv(sys.executable, [sys.executable, "-c", TERMINAL])  # noqa: S606  the child of a terminal's fork
    seen = b""

    def expect(text: bytes) -> None:
        nonlocal seen
        while text not in seen:
            assert select.select([terminal], [], [], 20)[0], seen
            seen += os.read(terminal, 4096)
        seen = seen.partition(text)[2]

    try:
        expect(b"PIN: ")
        os.write(terminal, b"1234\n")
        expect(b"in front")
        assert (proxy.folder / "typed").read_text() == "1234\n"
        assert os.getpgid(proxy.serving_pid) == proxy.serving_pid != os.getpgid(pid)
        os.write(terminal, b"\x03")
        expect(b"interrupted")
        assert proxy.alive
        os.write(terminal, b"again\n")
        expect(b"200")
        assert proxy.runs == 1
    finally:
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)
        os.close(terminal)


def test_a_plugin_that_leaves_a_daemon(server: ApiServer, proxy: ProxyPlugin):
    proxy.order(daemon=True)
    client = start_client(CLIENT)
    try:
        ready(client)
        assert proxy.serving_pid != int((proxy.folder / "runs").read_text())
        client.kill()
        wait_for(lambda: not proxy.alive, 5)
    finally:
        end(client)


def test_nobody_ever_listens(server: ApiServer, proxy: ProxyPlugin, tmp_path: Path):
    directory = tmp_path / "stale"
    directory.mkdir(mode=0o700)
    stale = socket.socket(socket.AF_UNIX)
    stale.bind(str(directory / "s"))
    stale.close()
    os.chmod(directory / "s", 0o600)
    from base64 import b64encode

    authority = b64encode(proxy.ca.certificate_pem).decode()
    proxy.order(status={"proxyConfig": {"url": f"unix://{directory}/s", "certificate-authority-data": authority}})
    with connect() as api:
        with pytest.raises(CredentialError, match="nobody listens at unix://"):
            api.get(PATH)
        with pytest.raises(CredentialError, match="next attempt in"):
            api.get(PATH)
    assert proxy.runs == 2
    assert server.requests == []


# -- the rest


def test_a_large_body_and_a_post_that_streams(server: ApiServer, proxy: ProxyPlugin):
    document = {"metadata": {"name": "large"}, "data": {"text": "x" * 3_000_000}}
    body = json.dumps(document).encode()

    def chunks() -> Iterator[bytes]:
        for start in range(0, len(body), 100_000):
            yield body[start : start + 100_000]

    with connect() as api:
        assert api.get(PATH).status_code == 200
        proxy.kill()
        wait_for(lambda: not proxy.alive, 5)
        path = "/api/v1/namespaces/default/configmaps"
        response = api.post(path, content=chunks(), headers={"Content-Type": "application/json"})
        assert response.status_code == 201
        assert len(api.get(path).content) > 3_000_000


def test_async_callers_share_one_run(server: ApiServer, proxy: ProxyPlugin):
    import asyncio

    async def many() -> list[int]:
        async with connect_async() as api:
            return [each.status_code for each in await asyncio.gather(*(api.get(PATH) for _ in range(20)))]

    assert asyncio.run(many()) == [200] * 20
    assert proxy.runs == 1


def test_runs_are_counted(server: ApiServer, proxy: ProxyPlugin):
    calls: list[tuple[str, int, str]] = []

    class Listener(metrics.Unheard):
        def plugin_called(self, code: int, status: str) -> None:
            calls.append(("plugin", code, status))

        def proxy_plugin_called(self, code: int, status: str) -> None:
            calls.append(("proxy", code, status))

    before = metrics.listener()
    metrics.install(Listener())
    try:
        with connect() as api:
            assert api.get(PATH).status_code == 200
    finally:
        metrics.install(before)
    assert calls == [("plugin", 0, "no_error"), ("proxy", 0, "no_error")]


def test_exec_and_port_forward_of_the_official_client(server: ApiServer, proxy: ProxyPlugin):
    pytest.importorskip("kubernetes")
    from kubernetes import client
    from kubernetes.stream import portforward, stream

    from kubeauthn.client.kubernetes import api_client

    server.add_pod("web")
    core = client.CoreV1Api(api_client())
    command = ["echo", "through", "the", "proxy"]
    answer = stream(
        core.connect_get_namespaced_pod_exec, "web", "default", command=command, stdout=True, stderr=True, stdin=False
    )
    assert answer == "through the proxy\n"
    forwarded = portforward(core.connect_get_namespaced_pod_portforward, "web", "default", ports="8080")
    connection = forwarded.socket(8080)
    connection.setblocking(True)
    connection.settimeout(20)
    connection.sendall(b"round trip")
    assert connection.recv(100) == b"round trip"
    connection.close()
    assert set(users(server)) == {"jane"}


def test_exec_of_kubernetes_asyncio(server: ApiServer, proxy: ProxyPlugin):
    pytest.importorskip("kubernetes_asyncio")
    import asyncio

    from kubernetes_asyncio import client
    from kubernetes_asyncio.stream import WsApiClient

    from kubeauthn.client.access import open_access
    from kubeauthn.client.kubernetes_asyncio import configure

    server.add_pod("web")

    async def run() -> str:
        configuration = client.Configuration()
        configure(configuration, open_access())
        async with WsApiClient(configuration) as api:
            core = client.CoreV1Api(api)
            answer: str = await core.connect_get_namespaced_pod_exec(
                "web", "default", command=["echo", "through"], stdout=True, stderr=True, stdin=False
            )
            return answer

    assert asyncio.run(run()) == "through\n"
    assert set(users(server)) == {"jane"}


def test_exec_of_kr8s(server: ApiServer, proxy: ProxyPlugin):
    pytest.importorskip("kr8s")
    import kr8s.objects

    from kubeauthn.client.kr8s import api as api_of

    server.add_pod("web")
    pod = kr8s.objects.Pod.get("web", "default", api=api_of())
    assert pod.exec(["echo", "through"]).stdout == b"through\n"
    assert set(users(server)) == {"jane"}


def test_exec_of_aiohttp(server: ApiServer, proxy: ProxyPlugin):
    pytest.importorskip("aiohttp")
    import asyncio

    from kubeauthn.client import aiohttp as adapter

    server.add_pod("web")
    path = "/api/v1/namespaces/default/pods/web/exec?command=echo&command=through&stdout=true"

    async def run() -> list[bytes]:
        async with adapter.session() as session, session.ws_connect(path, protocols=["v4.channel.k8s.io"]) as socket:
            return [message.data async for message in socket]

    assert b"\x01through\n" in asyncio.run(run())
    assert set(users(server)) == {"jane"}


def test_the_lock_is_exclusive_private_and_not_inherited():
    lock = ClientLock()
    try:
        directory = os.path.dirname(lock.path)
        assert stat.S_IMODE(os.stat(directory).st_mode) == 0o700
        with open(lock.path, "r+") as again, pytest.raises(BlockingIOError):
            fcntl.flock(again, fcntl.LOCK_EX | fcntl.LOCK_NB)
        held = [fd for fd in os.listdir("/proc/self/fd") if _leads_to(fd, lock.path)]
        assert held
        assert not os.get_inheritable(int(held[0]))
    finally:
        lock.release()
    assert not os.path.exists(directory)
    lock.release()


def _leads_to(descriptor: str, path: str) -> bool:
    try:
        return os.readlink(f"/proc/self/fd/{descriptor}") == path
    except OSError:
        return False


def test_what_killed_clients_left_is_removed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    runtime = tmp_path / "runtime"
    runtime.mkdir(mode=0o700)
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(runtime))
    left = runtime / "kubeauthn-client-left"
    left.mkdir(mode=0o700)
    (left / "lock").touch()
    os.utime(left / "lock", (1, 1))
    live = ClientLock()
    os.utime(live.path, (1, 1))
    other = ClientLock()
    try:
        assert not left.exists()
        assert os.path.exists(live.path)
        assert live.path.startswith(str(runtime))
    finally:
        live.release()
        other.release()
