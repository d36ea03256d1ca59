"""Somebody on the same machine against the bridge: its port, its files, its certificates, its kubeconfig."""

from __future__ import annotations

import json
import os
import socket
import ssl
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from kubeauthn._core.credential import ClientIdentity
from kubeauthn._io.tls import load_identity
from kubeauthn._secret import Secret
from kubeauthn.plugins.bridge import definition
from kubeauthn.testing import ApiServer
from tests.integration.proxy_parts import eventually
from tests.integration.test_bridge_kubectl import KUBEAUTHN, Home

OTHER_USER = 65534
root_only = pytest.mark.skipif(os.geteuid() != 0, reason="only root can become another user")

# No kubectl is needed here: this is what one does with the bridge's kubeconfig.
ASK = """
import sys
from kubeauthn.client import connect
print(connect().get("/api/v1/namespaces").status_code)
"""


@pytest.fixture
def server():
    with ApiServer(tokens={"good": "jane"}) as started:
        yield started


@pytest.fixture
def home(server: ApiServer, tmp_path: Path):
    made = Home(tmp_path, server)
    made.user({"token": "good"})
    yield made
    made.kubeauthn("bridge", "stop", "--all")


def ask_through(home: Home) -> subprocess.CompletedProcess[str]:
    return home.kubeauthn("bridge", "run", "--idle", "60", "--", sys.executable, "-c", ASK)


def credential(home: Home, name: str) -> dict:
    ended = home.run(
        sys.executable,
        "-m",
        "kubeauthn.plugins.bridge.credential",
        name,
        KUBERNETES_EXEC_INFO=json.dumps(
            {
                "apiVersion": "client.authentication.k8s.io/v1",
                "kind": "ExecCredential",
                "spec": {"interactive": False},
            }
        ),
    )
    assert ended.returncode == 0, ended.stderr
    return json.loads(ended.stdout)["status"]


def read_with(port: int, status: dict | None) -> bytes:
    """What the bridge answers to whoever shows this certificate."""
    context = ssl.create_default_context()
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    if status is not None:
        pem, key = status["clientCertificateData"].encode(), Secret(status["clientKeyData"])
        load_identity(context, ClientIdentity(pem, key, not_before=0, not_after=0))
    with socket.create_connection(("127.0.0.1", port), 10) as plain:
        with context.wrap_socket(plain, suppress_ragged_eofs=False) as connection:
            connection.sendall(b"GET /version HTTP/1.1\r\nHost: a\r\n\r\n")
            return connection.recv(100)


def test_the_certificate_of_another_run_is_worth_nothing(home: Home, server: ApiServer):
    assert ask_through(home).stdout == "200\n"
    (bridge,) = home.bridges()
    old = credential(home, bridge["name"])
    assert read_with(bridge["port"], old).startswith(b"HTTP/1.1 200 ")
    assert home.kubeauthn("bridge", "stop", "--all").returncode == 0
    new = credential(home, bridge["name"])
    assert home.bridges()[0]["port"] == bridge["port"]
    before = len(server.requests)
    with pytest.raises((ssl.SSLError, ConnectionError)):
        read_with(bridge["port"], old)
    assert len(server.requests) == before
    assert read_with(bridge["port"], new).startswith(b"HTTP/1.1 200 ")


def test_a_web_page_gets_nothing_from_the_port(home: Home, server: ApiServer):
    """A browser follows a link to the loopback: with plain HTTP, and with TLS, where it has no certificate."""
    assert ask_through(home).stdout == "200\n"
    (bridge,) = home.bridges()
    before = len(server.requests)
    with socket.create_connection(("127.0.0.1", bridge["port"]), 10) as plain:
        plain.settimeout(10)
        plain.sendall(b"POST /api/v1/namespaces HTTP/1.1\r\nHost: 127.0.0.1\r\nOrigin: https://evil.test\r\n\r\n")
        try:
            assert b"HTTP/" not in plain.recv(1000)
        except ConnectionError:
            pass
    with pytest.raises((ssl.SSLError, ConnectionError)):
        read_with(bridge["port"], None)
    assert len(server.requests) == before


def test_somebody_on_the_port_is_found_out_and_the_next_call_takes_another(home: Home, server: ApiServer):
    path = home.folder / "bridged"
    assert home.kubeauthn("bridge", "kubeconfig", "--write", str(path)).returncode == 0
    (bridge,) = home.bridges()
    with socket.create_server(("127.0.0.1", bridge["port"])):
        refused = home.run(sys.executable, "-c", ASK, KUBECONFIG=str(path))
        assert refused.returncode != 0
        assert f"127.0.0.1:{bridge['port']} cannot be listened on" in refused.stderr
        assert server.requests == []
        assert home.kubeauthn("bridge", "kubeconfig", "--write", str(path)).returncode == 0
        assert home.bridges()[0]["port"] != bridge["port"]
        assert home.run(sys.executable, "-c", ASK, KUBECONFIG=str(path)).stdout == "200\n"


@root_only
def test_another_user_cannot_read_what_it_keeps(home: Home):
    assert ask_through(home).stdout == "200\n"
    name = home.bridges()[0]["name"]
    state = home.folder / "state" / "kubeauthn" / "bridge"
    files = [path for path in state.rglob("*") if path.is_file()]
    assert {"definition.json", "running.json"} <= {path.name for path in files}
    for path in (state, state / name):
        assert stat.S_IMODE(path.stat().st_mode) == 0o700
    for path in files:
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
        assert "good" not in path.read_text()
    running = json.loads((state / name / "running.json").read_text())
    looked = subprocess.run(
        ["/bin/ls", running["socket"]], user=OTHER_USER, group=OTHER_USER, extra_groups=[], capture_output=True, cwd="/"
    )
    assert b"Permission denied" in looked.stderr


@root_only
def test_another_user_is_given_no_certificate(home: Home):
    """Even where the socket's directory is open: the kernel says who asks."""
    assert ask_through(home).stdout == "200\n"
    name = home.bridges()[0]["name"]
    path = json.loads((home.folder / "state/kubeauthn/bridge" / name / "running.json").read_text())["socket"]
    os.chmod(os.path.dirname(path), 0o711)  # noqa: S103
    os.chmod(path, 0o666)  # noqa: S103
    program = (
        "import os, socket, sys\n"
        f"os.setgid({OTHER_USER}); os.setuid({OTHER_USER})\n"
        "connection = socket.socket(socket.AF_UNIX)\nconnection.settimeout(10)\nconnection.connect(sys.argv[1])\n"
        "try:\n    connection.sendall(b'credential\\n')\n    answer = connection.recv(1000)\n"
        "except ConnectionError:\n    answer = b''\n"
        "sys.stdout.buffer.write(b'[' + answer + b']')\n"
    )
    asked = subprocess.run([sys.executable, "-c", program, path], capture_output=True, timeout=50)
    assert (asked.stdout, asked.returncode) == (b"[]", 0), asked.stderr


CROWD = """
import encodings.idna, os, resource, socket, sys  # all while it can still be read
os.setgid({user}); os.setuid({user})
resource.setrlimit(resource.RLIMIT_NOFILE, (1024, 1024))
held = []
for _ in range(300):
    held.append(socket.socket())
    try:
        held[-1].connect(("127.0.0.1", int(sys.argv[1])))
    except ConnectionError:
        pass  # turned away at once
print(len(held), flush=True)
sys.stdin.read()
"""


@root_only
def test_another_user_who_holds_every_place_keeps_nobody_out(home: Home, server: ApiServer):
    assert ask_through(home).stdout == "200\n"
    (bridge,) = home.bridges()
    command = [sys.executable, "-c", CROWD.format(user=OTHER_USER), str(bridge["port"])]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as crowd:
        assert crowd.stdout is not None
        assert crowd.stdout.readline() == "300\n"
        assert ask_through(home).stdout == "200\n"
        assert home.bridges()[0]["running"]["pid"] == bridge["running"]["pid"]
        crowd.communicate("", timeout=20)
    assert len(server.requests) == 2


def write(home: Home, path: Path) -> subprocess.CompletedProcess[str]:
    return home.kubeauthn("bridge", "kubeconfig", "--write", str(path))


def test_a_kubeconfig_that_holds_more_than_the_bridge_is_not_written_over(home: Home):
    """Somebody has put the bridge's user into a kubeconfig of their own."""
    path = home.folder / "merged"
    assert write(home, path).returncode == 0
    assert write(home, path).returncode == 0
    document = json.loads(path.read_text())
    document["users"].append({"name": "mine", "user": {"token": "precious"}})
    path.write_text(json.dumps(document))
    ended = write(home, path)
    assert ended.returncode == 4
    assert "is not a bridge's kubeconfig" in ended.stderr
    assert "precious" in path.read_text()


def test_links_lead_to_nothing_that_is_written_over(home: Home):
    precious = home.folder / "precious"
    precious.write_text("kubeauthn.plugins.bridge.credential")
    for target in (precious, home.folder / "not-there", Path("/dev/null")):
        link = home.folder / "link"
        link.symlink_to(target)
        ended = write(home, link)
        assert ended.returncode == 4, ended
        assert link.is_symlink()
        link.unlink()
    assert precious.read_text() == "kubeauthn.plugins.bridge.credential"
    assert not (home.folder / "not-there").exists()


@root_only
def test_a_file_that_somebody_laid_out_is_not_taken(home: Home):
    """It would stay theirs: they could make kubectl run a program of their choice."""
    path = home.folder / "laid-out"
    assert write(home, path).returncode == 0
    os.chown(path, OTHER_USER, OTHER_USER)
    assert "is another user's" in write(home, path).stderr
    os.chown(path, 0, 0)
    path.chmod(0o666)
    assert "others may write to it" in write(home, path).stderr


def test_where_nothing_can_be_kept_another_place_is_named(home: Home):
    """A container whose file system is read-only, for one."""
    (home.folder / "file").touch()
    ended = home.run(*KUBEAUTHN, "bridge", "list", XDG_STATE_HOME=str(home.folder / "file"))
    assert ended.returncode == 4
    assert ended.stderr.startswith(f"error: {home.folder / 'file'}")
    assert "hint: bridges are kept there; XDG_STATE_HOME names another place\n" in ended.stderr


def test_a_path_that_kubeconfig_cannot_name_is_told_and_not_split(home: Home):
    (home.folder / "a:b").mkdir()
    path = home.folder / "a:b" / "config"
    path.write_bytes((home.folder / "config").read_bytes())
    ended = home.kubeauthn("bridge", "kubeconfig", "--kubeconfig", str(path))
    assert (ended.returncode, ended.stdout) == (4, "")
    assert ended.stderr.startswith(f"error: {path}: the bridge gets its kubeconfig in KUBECONFIG, where : separates")
    assert home.bridges() == []


def test_variables_of_helm_do_not_lead_past_the_bridge(home: Home):
    show = "import os; print([name for name in os.environ if name.startswith('HELM_')])"
    ended = home.run(
        *KUBEAUTHN,
        "bridge",
        "run",
        "--",
        sys.executable,
        "-c",
        show,
        HELM_KUBEAPISERVER="https://evil.test",
        HELM_KUBETOKEN="x",
        HELM_NAMESPACE="default",
    )
    assert ended.stdout == "['HELM_NAMESPACE']\n", ended.stderr


def test_it_is_gone_after_all_that(home: Home):
    assert ask_through(home).stdout == "200\n"
    assert home.kubeauthn("bridge", "stop", "--all").returncode == 0
    eventually(lambda: home.bridges()[0]["running"] is None, "the bridge's end")


def test_a_bridge_that_is_not_there_is_told_with_how_to_find_those_that_are(home: Home):
    for name in ("nope", "../nope"):
        ended = home.kubeauthn("bridge", "stop", name)
        assert ended.returncode == 4
        assert "hint: kubeauthn bridge list shows those that are" in ended.stderr


def test_one_that_is_not_there_is_not_started(home: Home):
    command = [sys.executable, "-P", "-m", "kubeauthn.plugins.bridge.credential", "abc"]
    info = '{"apiVersion": "client.authentication.k8s.io/v1", "kind": "ExecCredential", "spec": {"interactive": false}}'
    ended = home.run(*command, KUBERNETES_EXEC_INFO=info)
    assert ended.returncode == 1
    assert "there is no bridge abc" in ended.stderr


def test_a_bridge_is_forgotten_once_it_does_not_run(home: Home, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("XDG_STATE_HOME", home.environ["XDG_STATE_HOME"])
    assert ask_through(home).stdout == "200\n"
    (bridge,) = home.bridges()
    assert definition.forget(bridge["name"]) is False
    assert [each["name"] for each in home.bridges()] == [bridge["name"]]
    assert home.kubeauthn("bridge", "stop", bridge["name"]).returncode == 0
    assert [each["name"] for each in home.bridges()] == [bridge["name"]]  # a kubeconfig that names it still starts it

    def forgotten() -> bool:
        return ", forgotten" in home.kubeauthn("bridge", "stop", bridge["name"], "--forget").stdout

    eventually(forgotten, "the bridge has ended")
    assert home.bridges() == []
    assert not Path(home.environ["XDG_STATE_HOME"], "kubeauthn", "bridge", bridge["name"]).exists()


def test_a_directory_full_of_modules_is_not_where_the_plugin_comes_from(home: Home, server: ApiServer):
    """kubectl runs the plugin where the person stands, and that may be somebody else's work tree."""
    trap = home.folder / "cloned"
    for name in ("kubeauthn/__init__.py", "json.py", "selectors.py"):
        (trap / name).parent.mkdir(parents=True, exist_ok=True)
        (trap / name).write_text(f"import os\nopen({str(home.folder / 'sprung')!r}, 'w').close()\nos._exit(9)\n")
    path = home.folder / "bridged"
    assert home.kubeauthn("bridge", "kubeconfig", "--write", str(path)).returncode == 0
    # `-P`: the asking program itself must not walk into it.
    argv = [sys.executable, "-P", "-c", ASK]
    environ = {**home.environ, "KUBECONFIG": str(path)}
    asked = subprocess.run(argv, cwd=trap, env=environ, capture_output=True, text=True, timeout=50)
    assert asked.stdout == "200\n", asked.stderr
    doctor = [sys.executable, "-P", "-m", "kubeauthn", "signer", "doctor", "--module", "/nonexistent.so"]
    subprocess.run(doctor, cwd=trap, env=environ, capture_output=True, timeout=50)
    assert not (home.folder / "sprung").exists()
