"""`kubeauthn plugin check` on proxy plugins: the ones we ship, and hostile ones."""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path

import pytest

from kubeauthn._core import execproxy, execwire
from kubeauthn.testing import ApiServer, CertificateAuthority
from tests.integration.checked_plugin import Checked, check, invoke
from tests.integration.signer_scene import SignerProgram
from tests.integration.test_proxy_references import KEY, SECRET, script

ALL = [
    "start", "speed", "v1", "v1beta1", "address", "listens", "socket", "no certificate", "another certificate",
    "request", "end of its client", "no lock", "no terminal", "standard error", "processes",
]  # fmt: skip


def shipped(name: str, folder: Path) -> tuple[list[str], tuple[str, ...]]:
    """Its command, and the options of the check."""
    if name == "headers":
        return script("proxy_headers", "--", "printf", "X-Team: red\\n"), ()
    if name == "sigv4":
        variables = (f"AWS_ACCESS_KEY_ID={KEY}", f"AWS_SECRET_ACCESS_KEY={SECRET}")
        options = [word for variable in variables for word in ("--env", variable)]
        return script("proxy_sigv4", "--region", "eu-west-1"), tuple(options)
    if name == "tls":
        leaf = CertificateAuthority().issue_client("jane")
        (folder / "cert.pem").write_bytes(leaf.chain_pem)
        (folder / "key.pem").write_bytes(leaf.key_pem)
        (folder / "key.pem").chmod(0o600)
        return script("proxy_tls", "--certificate", str(folder / "cert.pem"), "--key", str(folder / "key.pem")), ()
    signer = SignerProgram(folder / "token", CertificateAuthority())
    return script("proxy_tls", "--signer", f"pathExec={signer.path}"), ()


@pytest.mark.parametrize("name", ["headers", "sigv4", "tls", "tls with a signer"])
def test_the_proxies_we_ship_pass(name: str, tmp_path: Path):
    argv, options = shipped(name, tmp_path)
    with ApiServer() as server:
        checked = check(*argv, options=(*options, "--server", server.url))
    assert checked.report["plugin"] == "proxy"
    assert list(checked.results) == ALL
    assert checked.faults == [], checked.report
    # The server's certificate is nobody's that this machine knows, and so the proxy has something to say.
    assert set(checked.notes) <= {"speed", "standard error"}  # the first where the machine is busy
    assert checked.code == 0
    assert SECRET not in str(checked.report)


# -- hostile ones, each wrong in one thing --------------------------------------------------------

ROUGH = """
import fcntl, json, os, socket, ssl, sys, tempfile, threading, time
from kubeauthn._core import execproxy
from kubeauthn.testing import CertificateAuthority
info = json.loads(os.environ["KUBERNETES_EXEC_INFO"])
version, lock = info["apiVersion"], info["spec"].get("lockFilePath", "")
WANTS_CERTIFICATE, HEEDS_THE_LOCK, MODE, NEEDS_A_LOCK = True, True, 0o700, True
{change}
if NEEDS_A_LOCK and not lock:
    sys.exit("this needs a client that knows proxies")
ca = CertificateAuthority()
leaf = ca.issue_client("client")
context = ca.server_context()
if WANTS_CERTIFICATE:
    context.verify_mode = ssl.CERT_REQUIRED
    context.load_verify_locations(cadata=ca.certificate_pem.decode())
folder = tempfile.mkdtemp()
path = folder + "/s"
listener = socket.socket(socket.AF_UNIX)
listener.bind(path)
listener.listen(16)
os.chmod(folder, MODE)
def serve(plain):
    try:
        with context.wrap_socket(plain, server_side=True) as connection:
            connection.recv(1000)
            connection.sendall(b"HTTP/1.1 200 OK\\r\\nContent-Length: 0\\r\\n\\r\\n")
            connection.recv(1000)
    except OSError:
        pass
def accept():
    while True:
        threading.Thread(target=serve, args=(listener.accept()[0],), daemon=True).start()
threading.Thread(target=accept, daemon=True).start()
print(execproxy.encode_reply(version, url="unix://" + path, certificate_authority=ca.certificate_pem,
      certificate=leaf.chain_pem.decode(), key=leaf.key_pem.decode()), flush=True)
if HEEDS_THE_LOCK:
    try:
        fcntl.flock(os.open(lock, os.O_RDWR), fcntl.LOCK_EX)
    except FileNotFoundError:
        pass  # its client is gone already
else:
    time.sleep(120)
os.unlink(path)
os.rmdir(folder)
"""


def rough(folder: Path, change: str = "") -> Checked:
    path = folder / "rough-proxy"
    path.write_text(f"#!{sys.executable}\n" + ROUGH.replace("{change}", change))
    path.chmod(0o700)
    return check(path, options=("--kind", "proxy", "--timeout", "20"))


def test_one_without_the_sdk_passes(tmp_path: Path):
    checked = rough(tmp_path)
    assert checked.faults == checked.notes == [], checked.report


@pytest.mark.parametrize(
    ("change", "faults", "text"),
    [
        ("WANTS_CERTIFICATE = False", ["no certificate"], "any program here may use it"),
        ("MODE = 0o777", ["listens"], "can be written by other users"),
        ("sys.exit(4)", ["v1", "v1beta1"], "exit code 4"),
        ("print('{'); sys.exit()", ["v1", "v1beta1"], "decoding stdout"),
        ("time.sleep(60)", ["v1", "no terminal"], "did not answer within"),
    ],
    ids=["serves anybody", "open to others", "gives up", "half a document", "hangs"],
)
def test_a_hostile_one(tmp_path: Path, change: str, faults: list[str], text: str):
    path = tmp_path / "rough-proxy"
    path.write_text(f"#!{sys.executable}\n" + ROUGH.replace("{change}", change))
    path.chmod(0o700)
    checked = check(path, options=("--kind", "proxy", "--timeout", "6"))
    assert [name for name in checked.faults if name != "another certificate"] == faults, checked.report
    assert text in checked.reasons[faults[0]]
    assert checked.code == 1


def test_one_that_outlives_its_client_is_told_of_and_ended(tmp_path: Path):
    checked = rough(tmp_path, f"HEEDS_THE_LOCK = False\nopen({str(tmp_path / 'pid')!r}, 'w').write(str(os.getpid()))")
    assert checked.faults == ["end of its client"]
    assert "5 s after the lock was let go" in checked.reasons["end of its client"]
    pid = int((tmp_path / "pid").read_text())
    deadline = time.monotonic() + 10
    while os.path.exists(f"/proc/{pid}") and "Z (zombie)" not in Path(f"/proc/{pid}/status").read_text():
        assert time.monotonic() < deadline
        time.sleep(0.05)


def test_one_for_clients_that_know_no_proxies(tmp_path: Path):
    """kubectl would show the certificate of the way to the proxy to the API server."""
    checked = rough(tmp_path, "NEEDS_A_LOCK = False\nHEEDS_THE_LOCK = bool(lock)")
    assert checked.faults == ["no lock"]


def test_one_that_dies_in_the_middle(tmp_path: Path):
    dies = "old = socket.socket.accept\n"
    dies += (
        "def accept(self, times=[]):\n    times.append(1)\n    len(times) < 3 or os._exit(9)\n    return old(self)\n"
    )
    checked = rough(tmp_path, f"{dies}socket.socket.accept = accept")
    assert checked.results["stays"] == "fault"
    assert "gone in the middle of the check" in checked.reasons["stays"]


def test_other_users_can_look_into_the_directory(tmp_path: Path):
    checked = rough(tmp_path, "MODE = 0o755")
    assert checked.faults == []
    assert "mode 0755" in checked.reasons["socket"]


def test_an_ordinary_credential_is_no_proxy(tmp_path: Path):
    path = tmp_path / "plugin"
    path.write_text(f"#!/bin/sh\necho '{execwire.encode_reply(execproxy.VERSIONS[0], token='t')}'\n")
    path.chmod(0o700)
    checked = check(path, options=("--kind", "proxy", "--api-version", "v1"))
    assert checked.reasons["v1"] == "an ordinary credential, and no proxy"
    assert check(path, options=("--api-version", "v1")).report["plugin"] == "credential"


def test_v1alpha1_knows_no_proxies(tmp_path: Path):
    code, _, err = invoke("--kind", "proxy", "--api-version", "v1alpha1", "--", "true")
    assert code == 2
    assert "v1alpha1 knows no proxies" in err
