"""A plugin or signer that fails behind the bridge: its reason is in the log, and the answer names the log."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from kubeauthn.testing import ApiServer
from tests.integration.signer_scene import SignerProgram
from tests.integration.test_bridge_kubectl import Home

ASK = """
from kubeauthn.client import connect
answer = connect().get("/api/v1/namespaces")
print(answer.status_code, answer.text)
"""
SECRET = "eyJhbGciOiJub25lIn0.eyJzdWIiOiJqYW5lIn0.c2lnbmF0dXJl"


@pytest.fixture
def server():
    with ApiServer(tokens={"good": "jane"}) as started:
        yield started


@pytest.fixture
def home(server: ApiServer, tmp_path: Path):
    made = Home(tmp_path, server)
    yield made
    made.kubeauthn("bridge", "stop", "--all")


def ask_through(home: Home) -> tuple[str, Path]:
    """The answer, and the log of the one bridge."""
    ended = home.kubeauthn("bridge", "run", "--idle", "60", "--", sys.executable, "-c", ASK)
    (bridge,) = home.bridges()
    return ended.stdout + ended.stderr, home.folder / "state" / "kubeauthn" / "bridge" / bridge["name"] / "log"


def test_the_reason_of_a_plugin_is_in_the_log_that_the_answer_names(home: Home, server: ApiServer):
    plugin = home.folder / "plugin"
    # More than a pipe holds: whoever fills it must not wait for ever.
    plugin.write_text(
        f"#!{sys.executable}\nimport sys\nsys.stderr.write('noise\\n' * 50000)\n"
        f"sys.exit('log in again \\x1b[31m {SECRET}')\n"
    )
    plugin.chmod(0o700)
    entry = {"apiVersion": "client.authentication.k8s.io/v1", "command": str(plugin), "interactiveMode": "Never"}
    home.user({"exec": entry})
    answer, log = ask_through(home)
    assert f"plugin failed with exit code 1; see {log}" in answer
    kept = log.read_text()
    assert "last on standard error: log in again \\x1b[31m (left out)\n" in kept
    assert SECRET not in kept + answer
    assert len(kept) < 4000
    assert log.stat().st_mode & 0o077 == 0
    assert server.requests == []


def test_the_reason_of_a_signer_is_in_the_log_that_the_answer_names(home: Home, server: ApiServer):
    signer = SignerProgram(home.folder / "token", server.ca)
    user = signer.user()
    program = Path(user["auth-provider"]["config"]["pathExec"])
    program.rename(program.with_name("whole"))
    # It gives its certificate, and does not sign.
    program.write_text(
        f"#!{sys.executable}\nimport os, sys\n"
        "if '\"Sign' in os.environ['EXTERNAL_SIGNER_PLUGIN_CONFIG']:\n    sys.exit('the token was pulled out')\n"
        f"os.execv({str(program.with_name('whole'))!r}, sys.argv)\n"
    )
    program.chmod(0o700)
    home.user(user)
    answer, log = ask_through(home)
    assert f"failed with exit code 1; see {log}" in answer
    assert "last on standard error: the token was pulled out\n" in log.read_text()


def test_the_reason_of_a_proxy_is_in_the_log(home: Home, server: ApiServer):
    plugin = home.folder / "proxy.py"
    source = "from kubeauthn.plugin import proxy\ndef fail(request):\n    raise KeyError('good')\nproxy.run(fail)\n"
    plugin.write_text(f"#!{sys.executable}\n{source}")
    plugin.chmod(0o700)
    entry = {
        "apiVersion": "client.authentication.k8s.io/v1",
        "command": str(plugin),
        "interactiveMode": "Never",
        "provideClusterInfo": True,
    }
    switch = [{"name": "client.authentication.k8s.io/exec-proxy", "extension": {"enabled": True}}]
    home.user({"exec": entry, "extensions": switch})
    answer, log = ask_through(home)
    assert answer.startswith("500 the proxy's function failed: KeyError\n")
    kept = log.read_text()
    assert "through the proxy plugin came status 500; last on standard error: " in kept
    assert "the proxy's function failed: KeyError (proxy.py:4)\n" in kept
    assert server.requests == []
