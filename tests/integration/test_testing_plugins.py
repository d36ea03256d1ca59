"""The executable plugins of `kubeauthn.testing`."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime

import pytest

from kubeauthn.errors import UsageError
from kubeauthn.testing import CertificateAuthority, FakeClock, PluginDirectory, ScriptedPlugin


def run(path, *arguments: str, **environment: str) -> subprocess.CompletedProcess[bytes]:
    return subprocess.run([path, *arguments], capture_output=True, env={**os.environ, **environment}, timeout=30)


@pytest.fixture
def plugin(tmp_path) -> ScriptedPlugin:
    return ScriptedPlugin(tmp_path / "dir with space" / "my-plugin", clock=FakeClock(1_700_000_000))


def test_it_fails_until_told_what_to_do(plugin):
    result = run(plugin.path)
    assert result.returncode == 1
    assert b"the test has not said" in result.stderr
    assert plugin.runs == 1


def test_reply_with_a_token(plugin):
    plugin.reply(token="t0k'en", expires_in=60)
    assert json.loads(run(plugin.path).stdout) == {
        "apiVersion": "client.authentication.k8s.io/v1",
        "kind": "ExecCredential",
        "status": {"token": "t0k'en", "expirationTimestamp": "2023-11-14T22:14:20Z"},
    }


def test_reply_with_a_certificate(plugin):
    leaf = CertificateAuthority().issue_client("jane")
    plugin.reply(certificate=leaf, api_version="client.authentication.k8s.io/v1beta1")
    reply = json.loads(run(plugin.path).stdout)
    assert reply["apiVersion"] == "client.authentication.k8s.io/v1beta1"
    assert reply["status"] == {
        "clientCertificateData": leaf.chain_pem.decode(),
        "clientKeyData": leaf.key_pem.decode(),
    }


@pytest.mark.parametrize(
    "moment", [1_700_000_000.0, datetime.fromtimestamp(1_700_000_000, UTC), "2023-11-14T22:13:20Z"]
)
def test_expiry_as_a_number_a_time_or_a_text(plugin, moment):
    plugin.reply(token="t", expires_at=moment)
    assert json.loads(run(plugin.path).stdout)["status"]["expirationTimestamp"] == "2023-11-14T22:13:20Z"


def test_two_expiries_are_refused(plugin):
    with pytest.raises(UsageError):
        plugin.reply(token="t", expires_in=1, expires_at=1.0)


def test_the_reply_changes_between_runs(plugin):
    plugin.reply(token="one")
    assert b"one" in run(plugin.path).stdout
    plugin.reply(token="two")
    assert b"two" in run(plugin.path).stdout
    assert plugin.runs == 2


def test_fail(plugin):
    plugin.fail(7, stderr="no such 'thing'\n")
    result = run(plugin.path)
    assert (result.returncode, result.stdout, result.stderr) == (7, b"", b"no such 'thing'\n")


def test_fail_by_signal(plugin):
    plugin.fail(-signal.SIGTERM)
    assert run(plugin.path).returncode == -signal.SIGTERM


def test_raw(plugin):
    plugin.raw(bytes(range(256)))
    assert run(plugin.path).stdout == bytes(range(256))


def test_hang(plugin):
    plugin.hang()
    with subprocess.Popen([plugin.path], stdout=subprocess.PIPE) as process:
        with pytest.raises(subprocess.TimeoutExpired):
            process.wait(0.3)
        process.kill()
    assert plugin.runs == 1


def test_delay(plugin):
    plugin.reply(token="t")
    plugin.delay(0.2)
    begun = time.monotonic()
    assert b'"t"' in run(plugin.path).stdout
    assert time.monotonic() - begun >= 0.2
    plugin.reply(token="still delayed")
    begun = time.monotonic()
    run(plugin.path)
    assert time.monotonic() - begun >= 0.2
    plugin.delay(0)
    assert b"still delayed" in run(plugin.path).stdout
    assert "sleep" not in (plugin.path.parent / "my-plugin.state" / "action").read_text()


def test_runs_in_parallel_are_all_counted(plugin):
    plugin.reply(token="t")
    with ThreadPoolExecutor(16) as pool:
        results = list(pool.map(lambda _: run(plugin.path), range(64)))
    assert {result.returncode for result in results} == {0}
    assert plugin.runs == 64


def test_environment_and_arguments_of_the_last_run(plugin):
    with pytest.raises(UsageError, match="not run yet"):
        plugin.environment()
    plugin.reply(token="t")
    run(plugin.path, FIRST="yes")
    run(plugin.path, "a b", "", "c\nd", KUBERNETES_EXEC_INFO='{"kind":"ExecCredential"}', TWO_LINES="a\nb=c")
    assert "FIRST" not in plugin.environment()
    assert plugin.environment()["TWO_LINES"] == "a\nb=c"
    assert plugin.exec_info() == {"kind": "ExecCredential"}
    assert plugin.arguments() == ["a b", "", "c\nd"]
    run(plugin.path)
    assert plugin.arguments() == []


def test_exec_entry(plugin):
    assert plugin.exec_entry() == {
        "apiVersion": "client.authentication.k8s.io/v1",
        "command": str(plugin.path),
        "interactiveMode": "Never",
    }
    entry = plugin.exec_entry(interactiveMode=None, args=["x"], apiVersion="client.authentication.k8s.io/v1beta1")
    assert entry == {
        "apiVersion": "client.authentication.k8s.io/v1beta1",
        "command": str(plugin.path),
        "args": ["x"],
    }
    assert plugin.user(args=["x"])["exec"]["args"] == ["x"]


def test_what_it_stores_is_for_the_owner_alone(plugin):
    assert (plugin.path.parent / "my-plugin.state").stat().st_mode & 0o077 == 0


def test_given_a_directory_it_goes_in_there(tmp_path):
    assert ScriptedPlugin(tmp_path).path == tmp_path / "plugin"


def test_a_directory_of_plugins(tmp_path):
    plugins = PluginDirectory(tmp_path / "bin")
    assert run(plugins.script("shell", 'echo "shell $1"'), "x").stdout == b"shell x\n"
    python = plugins.python("python", "import sys\nprint(sys.executable, sys.argv[1])")
    assert run(python, "x").stdout.decode() == f"{sys.executable} x\n"
    scripted = plugins.scripted("scripted")
    scripted.raw("hello")
    found = subprocess.run(["scripted"], env={"PATH": f"{plugins.path}:{os.defpath}"}, capture_output=True, timeout=30)
    assert found.stdout == b"hello"
    for wrong in ("", "a/b", "/abs"):
        with pytest.raises(UsageError):
            plugins.script(wrong, "")


def test_python_where_the_interpreters_path_does_not_fit_a_first_line(tmp_path, monkeypatch):
    folder = tmp_path / "with space"
    folder.mkdir()
    (folder / "python").symlink_to(sys.executable)
    monkeypatch.setattr(sys, "executable", str(folder / "python"))
    path = PluginDirectory(tmp_path / "bin").python("program", "import sys\nprint(sys.argv[1:])")
    assert run(path, "a b").stdout == b"['a b']\n"
