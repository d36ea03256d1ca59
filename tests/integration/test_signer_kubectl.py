"""From an empty token to the first `kubectl get pods`, as docs/signers.md tells it: kubectl itself is Debian's."""

from __future__ import annotations

import os
import pty
import select
import subprocess
import sys
import threading
import time
from base64 import b64encode
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest

from kubeauthn.client import kubeconfig
from kubeauthn.plugins.agent import wire
from kubeauthn.testing import ApiServer
from tests.integration.signer_scene import SignerProgram
from tests.integration.softhsm import MODULE, PIN, SoftHsm

pytestmark = pytest.mark.needs("kubectl", "softhsm2-util", "pkcs11-tool")

KUBEAUTHN = [sys.executable, "-m", "kubeauthn"]
KEYRING = f"""
from keyring.backend import KeyringBackend
class Shelf(KeyringBackend):
    priority = 9
    def get_password(self, service, name):
        return {PIN!r} if (service, name) == ("kubeauthn", "desk") else None
    def set_password(self, service, name, password): ...
"""


class Desk:
    """A person's machine: a token with a key and nothing else, a keyring, the signer on PATH, a file to begin with."""

    def __init__(self, folder: Path, server: ApiServer) -> None:
        self.folder = folder
        self.server = server
        self.hsm = SoftHsm(folder / "softhsm")
        self.hsm.make_key("02", "EC:prime256v1")
        self.config = folder / "config"
        admin = server.ca.issue_client("admin")
        user = {"client-certificate-data": b64encode(admin.chain_pem).decode()}
        user["client-key-data"] = b64encode(admin.key_pem).decode()
        server.write_kubeconfig(self.config, user)
        (folder / "shelf.py").write_text(KEYRING)
        (folder / "bin").mkdir()
        program = folder / "bin" / "kubeauthn-signer-pkcs11"
        program.write_text(f"#!{sys.executable}\nfrom kubeauthn.plugins.signer_pkcs11 import main\nmain()\n")
        program.chmod(0o700)
        self.environ = {
            **self.hsm.environ,
            "KUBECONFIG": str(self.config),
            "PATH": f"{folder / 'bin'}:{os.environ['PATH']}",
            "PYTHONPATH": str(folder),
            "PYTHON_KEYRING_BACKEND": "shelf.Shelf",
            "XDG_STATE_HOME": str(folder / "state"),
        }
        self.said = ""

    def run(self, *argv: str, code: int = 0, **environ: str) -> str:
        done = subprocess.run(
            argv,
            env={**self.environ, **environ},
            capture_output=True,
            text=True,
            timeout=50,
            stdin=subprocess.DEVNULL,
            start_new_session=True,
        )
        self.said += done.stdout + done.stderr
        assert done.returncode == code, done.stdout + done.stderr
        return done.stdout + done.stderr

    def kubeauthn(self, *words: str, **options: object) -> str:
        return self.run(*KUBEAUTHN, *words, **options)

    def use_prompting_entry(self) -> None:
        config = {"pathExec": str(self.folder / "bin" / "kubeauthn-signer-pkcs11"), "pathLib": MODULE}
        config |= {"tokenLabel": "desk", "objectId": "2"}
        with kubeconfig.edit(self.config) as edit:
            edit.set_user("jane", {"auth-provider": {"name": "externalSigner", "config": config}})
        self.run("kubectl", "config", "set-context", "jane", "--cluster", "test", "--user", "jane")

    def get_pods(self, *, code: int = 0, **environ: str) -> str:
        return self.kubeauthn(
            "kubectl", "--idle", "60", "--context", "jane", "--", "get", "pods", "-o", "name", code=code, **environ
        )


@pytest.fixture
def desk(tmp_path: Path) -> Iterator[Desk]:
    with ApiServer(client_certificates="required") as server:
        server.add_pod("web")
        made = Desk(tmp_path, server)
        try:
            yield made
        finally:
            made.kubeauthn("bridge", "stop", "--all")


def settings(**more: str) -> list[str]:
    pairs = {"pathLib": MODULE, "tokenLabel": "desk", "objectId": "2", **more}
    return ["--signer", "pkcs11", *(f"--set={key}={value}" for key, value in pairs.items())]


def get_certificate(desk: Desk) -> None:
    done = threading.Event()

    def approve() -> None:
        while not done.wait(0.05):
            desk.server.settle_certificate_requests()

    administrator = threading.Thread(target=approve)
    administrator.start()
    try:
        keyring = settings(pinSource="keyring:kubeauthn/desk")
        desk.kubeauthn("signer", "request-certificate", *keyring, "--name", "jane", "--group", "dev")
    finally:
        done.set()
        administrator.join(10)


def test_from_the_empty_token_to_the_pods(desk: Desk):
    get_certificate(desk)
    desk.kubeauthn("signer", "doctor", *settings(pinSource="keyring:kubeauthn/desk"), "--write", "jane")
    desk.run("kubectl", "config", "set-context", "jane", "--cluster", "test", "--user", "jane")
    desk.server.requests.clear()

    assert desk.get_pods() == "pod/web\n"
    # With no wrapper at all.
    bridged = str(desk.folder / "bridged")
    desk.kubeauthn("bridge", "kubeconfig", "--context", "jane", "--write", bridged)
    assert desk.run("kubectl", "get", "pods", "-o", "name", KUBECONFIG=bridged) == "pod/web\n"

    assert {request.user for request in desk.server.requests} == {"jane"}
    written = dict(kubeconfig.load(desk.config).users["jane"].auth_provider.config)
    assert written["pathExec"] == str(desk.folder / "bin" / "kubeauthn-signer-pkcs11")
    assert PIN not in desk.said + desk.config.read_text() + Path(bridged).read_text()


def test_a_bridge_has_no_terminal_and_the_agent_has_the_pin(desk: Desk):
    """The PIN is typed once, at a terminal of the person's; kubectl behind the bridge then needs none."""
    get_certificate(desk)
    desk.use_prompting_entry()
    place = desk.folder / "agent" / "agent.sock"
    place.parent.mkdir(mode=0o700)
    desk.environ[wire.VARIABLE] = str(place)
    assert "kubeauthn-signer-pkcs11 failed with exit code 1" in desk.get_pods(code=1)
    desk.kubeauthn("bridge", "stop", "--all")
    argv = [*KUBEAUTHN, "signer", "agent", "--socket", str(place), "--signer-user", "jane"]
    agent = subprocess.Popen(argv, env=desk.environ, stderr=subprocess.PIPE, stdin=subprocess.DEVNULL)
    try:
        assert agent.stderr is not None
        assert b"1 keys at" in agent.stderr.readline()
        for _ in range(200):
            if place.exists():
                break
            threading.Event().wait(0.05)
        assert "kubeauthn-signer-pkcs11 failed with exit code 1" in desk.get_pods(code=1)
        desk.kubeauthn("bridge", "stop", "--all")
        # Somebody at a terminal types it, once.
        shown = whoami_at_a_terminal(desk)
        assert "PIN of the token 'desk': " in shown
        assert "jane" in shown
        assert PIN not in shown
        assert desk.get_pods() == "pod/web\n"
        with open(f"/proc/{agent.pid}/environ", "rb") as environ:
            assert PIN.encode() not in environ.read()
    finally:
        agent.terminate()
        _, said = agent.communicate(timeout=50)
    assert PIN not in desk.said + said.decode()


def whoami_at_a_terminal(desk: Desk) -> str:
    """`kubeauthn whoami` in a pseudo-terminal, at which the PIN is typed when it is asked for."""
    child, terminal = pty.fork()
    if child == 0:
        argv = [*KUBEAUTHN, "whoami", "--context", "jane"]
        os.execvpe(argv[0], argv, desk.environ)  # noqa: S606  as a shell does
    shown, typed, deadline = b"", False, time.monotonic() + 50
    try:
        while time.monotonic() < deadline:
            if select.select([terminal], [], [], 0.2)[0]:
                try:
                    chunk = os.read(terminal, 4096)
                except OSError:  # the last one has closed it
                    break
                if not chunk:
                    break
                shown += chunk
            if not typed and b"PIN of the token 'desk': " in shown:
                os.write(terminal, f"{PIN}\n".encode())
                typed = True
    finally:
        os.close(terminal)
        code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    assert code == 0, shown
    return shown.decode()


def test_without_an_agent_the_pin_is_typed_where_the_client_runs(desk: Desk):
    """Typed the moment it is asked for, and not shown even so."""
    get_certificate(desk)
    desk.use_prompting_entry()
    assert "PIN of the token 'desk': " in (shown := whoami_at_a_terminal(desk))
    assert "jane" in shown
    assert PIN not in shown


def test_the_policy_covers_the_signer_of_the_tls_proxy(tmp_path: Path):
    """A kubeconfig names the arguments of an allowed proxy: what they make it run is the policy's to allow too."""
    from kubeauthn._core.kubeconfig.model import Cluster
    from kubeauthn.errors import PluginDenied
    from kubeauthn.plugins.proxy_tls import with_signer

    kuberc = tmp_path / "kuberc"
    kuberc.write_text(
        "apiVersion: kubectl.config.k8s.io/v1beta1\nkind: Preference\n"
        "credentialPluginPolicy: Allowlist\ncredentialPluginAllowlist: [{command: kubeauthn-proxy-tls}]\n"
    )
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("KUBERC", str(kuberc))
        with pytest.raises(PluginDenied):
            with_signer(Cluster(server="https://127.0.0.1:1"), ["pathExec=/bin/false"])


def test_the_bridge_signs_as_often_as_there_are_full_handshakes(tmp_path: Path):
    with ApiServer(client_certificates="required") as server:
        signer = SignerProgram(tmp_path / "token", server.ca)
        config = server.write_kubeconfig(tmp_path / "config", signer.user())
        environ = {**os.environ, "KUBECONFIG": str(config), "XDG_STATE_HOME": str(tmp_path / "state")}
        run = partial(subprocess.run, env=environ, capture_output=True, text=True, timeout=50, stdin=subprocess.DEVNULL)
        try:
            for _ in range(5):
                done = run([*KUBEAUTHN, "kubectl", "--idle", "60", "--", "get", "namespaces", "-o", "name"])
                assert done.returncode == 0, done.stderr
                server.drop_connections()
        finally:
            run([*KUBEAUTHN, "bridge", "stop", "--all"])
        stats = server._context.session_stats()
        assert signer.count("SignRequest") == stats["accept_good"] - stats["hits"]
        assert signer.count("CertificateRequest") == 1
        assert len({each.connection_id for each in server.requests}) >= 5 > signer.count("SignRequest")
