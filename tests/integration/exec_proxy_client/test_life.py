"""The client side of the exec proxy: life and death of the proxy."""

from __future__ import annotations

import fcntl
import os
import signal
import socket
import stat
import sys
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from kubeauthn._io.lockfile import ClientLock
from kubeauthn.client import connect
from kubeauthn.errors import (
    CredentialError,
)
from kubeauthn.testing import ApiServer, ProxyPlugin
from kubeauthn.testing._waiting import wait_for
from tests.integration.exec_proxy_client.clients import (
    CLIENT,
    PATH,
    end,
    ready,
    running,
    start_client,
    use,
    users,
)


def test_a_client_that_is_killed_takes_its_proxy_along(server: ApiServer, proxy: ProxyPlugin):
    client = start_client(CLIENT)
    try:
        ready(client)
        path = proxy.url.removeprefix("unix://")
        assert os.path.exists(path)
        client.kill()
        client.wait(40)
        wait_for(lambda: not proxy.alive, 5)
        wait_for(lambda: not os.path.exists(path), 5)
    finally:
        end(client)


def test_a_client_that_ends_leaves_nothing(server: ApiServer, proxy: ProxyPlugin):
    client = start_client(CLIENT)
    try:
        ready(client)
        client.communicate(b"\n", timeout=50)
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
        parent.wait(40)
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
import os, select, signal
from kubeauthn.client import connect
signal.signal(signal.SIGINT, lambda *_: print("interrupted", flush=True))
api = connect()
assert api.get({PATH!r}).status_code == 200
print("in front" if os.tcgetpgrp(0) == os.getpgrp() else "behind", flush=True)
# with a time limit: a signal between Python's last look at its flags and the read would wait for the next line
while not select.select([0], [], [], 0.1)[0]:
    pass
assert input() == "again"
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
