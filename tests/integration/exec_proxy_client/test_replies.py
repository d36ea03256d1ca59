"""The client side of the exec proxy: when a plugin is one, and what is refused."""

from __future__ import annotations

import os
import signal
import socket
import ssl
import subprocess
import time
from pathlib import Path

import pytest

from kubeauthn._core.execproxy import ProxyRoute
from kubeauthn._io.dialing import connect as dial
from kubeauthn._io.proxy_process import end_proxy, run_proxy_plugin
from kubeauthn.client import connect
from kubeauthn.client.exec_source import forget_shared_sources
from kubeauthn.errors import (
    KubeconfigError,
    PluginFailed,
    PluginReplyError,
    PluginTimeout,
    ProxyRefused,
    ProxyUnreachable,
)
from kubeauthn.testing import ApiServer, PluginDirectory, ProxyPlugin, ScriptedPlugin
from kubeauthn.testing._waiting import wait_for
from tests.integration.exec_proxy_client.clients import (
    EXTENSIONS,
    PATH,
    root_only,
    running,
    use,
    users,
)

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


def test_a_token_beside_the_proxy_goes_through_it_as_a_header(server: ApiServer, proxy: ProxyPlugin):
    proxy.order(status={"token": "one"})
    with connect() as api:
        assert api.get(PATH).status_code == 200
    (request,) = server.requests
    assert request.user == "jane"  # whose certificate the proxy shows
    assert {name.lower(): value for name, value in request.headers}["authorization"] == "Bearer one"


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


def test_a_plugin_that_prints_on_behind_its_reply_is_not_listened_to(tmp_path: Path):
    document = '{"apiVersion": "client.authentication.k8s.io/v1", "status": {"proxyConfig": {"url": "unix:///x"}}}'
    script = f"printf '{document}'; sleep 0.05; while sleep 0.02; do printf .; done"
    plugin = PluginDirectory(tmp_path / "plugins").script("prints", script)
    began = time.monotonic()
    code, output, pid = run_proxy_plugin(str(plugin), [str(plugin)], os.environ, interactive=False, seconds=20)
    assert pid is not None
    end_proxy(pid)
    assert time.monotonic() - began < 10
    assert (code, output.rstrip(b".")) == (0, document.encode())


def test_a_plugin_that_says_something_first_is_told_what_is_wrong(
    server: ApiServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    """It stays, as a proxy does, so its end cannot be waited for; that nobody typed is not the reason."""
    path = PluginDirectory(tmp_path / "plugins").script("odd", "echo starting; echo '{}'; exec sleep 600")
    entry = {"apiVersion": "client.authentication.k8s.io/v1", "command": str(path), "interactiveMode": "Never"}
    use(server, tmp_path, monkeypatch, {"exec": entry, "extensions": EXTENSIONS})
    with connect(plugin_timeout=1.0) as api, pytest.raises(PluginTimeout, match="does not begin with a doc") as told:
        api.get(PATH)
    assert told.value.hint == "a proxy plugin prints one ExecCredential to standard output, and nothing before it"


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
