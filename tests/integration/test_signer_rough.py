"""Shipped signers where something goes badly: tokens that lock, vanish, crash or hang; neighbours who plant things."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from kubeauthn._core import signerwire
from kubeauthn._core.signerwire import NOT_THE_PIN_EXIT, SigningAlgorithm
from kubeauthn.cli.signer_survey import look_into
from kubeauthn.errors import EnvironmentFailure
from kubeauthn.plugin.signer import Configuration
from kubeauthn.plugins.agent import wire
from kubeauthn.plugins.agent.client import through_agent
from kubeauthn.plugins.agent.server import AgentServer
from tests.integration import signer_process, softhsm
from tests.integration.rough_module import (
    DEVICE_REMOVED,
    FUNCTION_FAILED,
    FUNCTION_REJECTED,
    MECHANISM_INVALID,
    PIN_LOCKED,
    module_that,
)
from tests.integration.softhsm import MODULE, PIN, SoftHsm

EC = SigningAlgorithm("ec", hash="sha256")
token = pytest.mark.needs("softhsm2-util", "pkcs11-tool")


@pytest.fixture(scope="module")
def hsm(tmp_path_factory: pytest.TempPathFactory) -> SoftHsm:
    made = SoftHsm(tmp_path_factory.mktemp("softhsm"))
    made.make_key("02", "EC:prime256v1")
    made.install("02", softhsm.client_certificate(made.public_key("02")))
    return made


def said(result: subprocess.CompletedProcess[bytes], code: int = 1) -> str:
    assert (result.returncode, result.stdout) == (code, b"")
    text = result.stderr.decode()
    assert PIN not in text
    assert "Traceback" not in text
    return text


@token
@pytest.mark.parametrize(
    ("function", "answer", "code", "text"),
    [
        ("C_Login", PIN_LOCKED, 1, "the PIN of the token 'desk' is locked"),
        ("C_SignInit", DEVICE_REMOVED, NOT_THE_PIN_EXIT, "the token 'desk' was pulled out, or is not there"),
        ("C_Sign", DEVICE_REMOVED, NOT_THE_PIN_EXIT, "the token 'desk' was pulled out, or is not there"),
        ("C_OpenSession", DEVICE_REMOVED, NOT_THE_PIN_EXIT, "was pulled out, or is not there"),
        # The login was right: whatever keeps the key from signing now, a client may bring the PIN again.
        ("C_Sign", FUNCTION_REJECTED, NOT_THE_PIN_EXIT, "was not allowed, or not touched in time"),
        ("C_Sign", FUNCTION_FAILED, NOT_THE_PIN_EXIT, "failed: CKR_FUNCTION_FAILED"),
        ("C_SignInit", MECHANISM_INVALID, NOT_THE_PIN_EXIT, "does not offer the mechanism"),
        ("C_FindObjectsInit", FUNCTION_FAILED, NOT_THE_PIN_EXIT, "finding the key failed"),
    ],
)
def test_a_token_that_locks_or_vanishes_in_the_middle(
    hsm: SoftHsm, tmp_path: Path, function: str, answer: int, code: int, text: str
):
    configuration = hsm.configuration(pin=PIN) | {"pathLib": module_that(tmp_path, function, answer)}
    assert text in said(signer_process.sign("pkcs11", configuration, EC, hsm.environ), code)


@token
def test_a_module_that_crashes_or_never_answers_does_not_take_the_doctor_with_it(
    hsm: SoftHsm, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setenv("SOFTHSM2_CONF", str(hsm.conf))
    crash = look_into(module_that(tmp_path, "C_GetFunctionList", "crash"))
    assert crash["error"].startswith("ended its process by signal ")
    hang = look_into(module_that(tmp_path, "C_GetFunctionList", "hang"), 2.0)
    assert hang["error"] == "did not answer within 2 s"
    assert [found["label"] for found in look_into(MODULE)["tokens"]] == ["desk"]


@token
def test_a_module_behind_a_link_that_others_can_change_is_not_loaded(hsm: SoftHsm, tmp_path: Path):
    shared = tmp_path / "shared"
    (shared / "own").mkdir(parents=True)
    link = shared / "own" / "module.so"
    link.symlink_to(MODULE)
    request = signerwire.encode_certificate_request(hsm.configuration() | {"pathLib": str(link)})
    assert signer_process.ask("pkcs11", request, hsm.environ).returncode == 0
    shared.chmod(0o777)  # whoever may write here can put another `own` in its place
    text = said(signer_process.ask("pkcs11", request, hsm.environ))
    assert f"pathLib: {shared} can be changed by other users" in text


@token
def test_a_pin_within_a_uri_is_a_pin_in_the_kubeconfig(hsm: SoftHsm, tmp_path: Path):
    uri = f"pkcs11:token=desk;id=%02?module-path={MODULE}&pin-value={PIN}"
    result = signer_process.sign("pkcs11", {"uri": uri}, EC, hsm.environ)
    assert result.returncode == 0, result.stderr
    assert b"the kubeconfig holds a PIN" in result.stderr
    assert PIN.encode() not in result.stderr
    refused = doctor(hsm, "--signer", "pkcs11", f"--set=uri={uri}")
    assert refused.returncode == 2
    config = tmp_path / "config"
    provider = {"name": "externalSigner", "config": {"pathExec": "kubeauthn-signer-pkcs11", "uri": uri}}
    config.write_text(json.dumps({"users": [{"name": "card", "user": {"auth-provider": provider}}]}))
    options = ("--kubeconfig", str(config), "--signer-user", "card")
    warned = doctor(hsm, *options)
    assert warned.returncode == 0, warned.stderr
    assert "the kubeconfig holds a PIN" in warned.stderr
    unwritten = doctor(hsm, *options, "--write", "copy")
    assert unwritten.returncode == 2
    assert "take its pin-value out" in unwritten.stderr
    assert PIN not in refused.stderr + warned.stdout + warned.stderr + unwritten.stderr


@token
def test_an_answer_imports_little(hsm: SoftHsm):
    program = (
        "import atexit, sys\n"
        "atexit.register(lambda: sys.stderr.write(' '.join(sys.modules)))\n"
        "from kubeauthn.plugins.signer_pkcs11 import main; main()\n"
    )
    request = signerwire.encode_sign_request(hsm.configuration(pin=PIN), bytes(32), EC)
    argv = [sys.executable, "-c", program]
    environ = {**hsm.environ, signerwire.VARIABLE: request}
    result = subprocess.run(argv, env=environ, capture_output=True, text=True, timeout=50)
    assert result.returncode == 0, result.stderr
    loaded = set(result.stderr.split())
    assert "kubeauthn.plugins.cryptoki" in loaded
    assert not loaded & {"asn1crypto", "cryptography", "pkcs11", "socket", "ssl", "subprocess", "threading"}


def doctor(hsm: SoftHsm, *argv: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "kubeauthn", "signer", "doctor", *argv],
        env=hsm.environ,
        capture_output=True,
        text=True,
        timeout=50,
        stdin=subprocess.DEVNULL,
        start_new_session=True,
    )


@token
def test_the_doctors_documents(hsm: SoftHsm, tmp_path: Path):
    result = doctor(hsm, "--module", MODULE, "--module", "/etc/hostname", "--output", "json")
    assert result.returncode == 0, result.stderr
    report = json.loads(result.stdout)
    assert report["version"] == 1
    found, other = report["modules"]
    (desk,) = found["tokens"]
    assert (desk["label"], str(desk["slotId"]), desk["locked"]) == ("desk", hsm.slot, False)
    assert {(item["kind"], item["id"]) for item in desk["objects"]} == {("key", "02"), ("certificate", "02")}
    assert [item["subject"] for item in desk["objects"] if item["kind"] == "certificate"] == ["CN=jane"]
    assert other["error"] == "pathLib: /etc/hostname is not a shared library"

    settings = [f"--set={key}={value}" for key, value in hsm.configuration().items()]
    config = tmp_path / "config"
    config.write_text('{"apiVersion": "v1", "kind": "Config"}')
    no_pin = doctor(hsm, "--signer", "pkcs11", *settings, "--no-sign", "--output", "json", "--kubeconfig", str(config))
    assert no_pin.returncode == 0, no_pin.stderr
    trial = json.loads(no_pin.stdout)
    assert (trial["signer"], trial["certificate"]["subject"], trial["signature"]) == ("pkcs11", "CN=jane", None)
    assert trial["faults"] == []


# -- the agent and its neighbours -----------------------------------------------------------------


@pytest.fixture
def place(tmp_path: Path) -> Path:
    folder = tmp_path / "agent"
    folder.mkdir(mode=0o700)
    return folder / "agent.sock"


def test_a_socket_that_was_left_is_replaced_and_a_file_is_not(place: Path):
    with socket.socket(socket.AF_UNIX) as left:
        left.bind(str(place))
    server = AgentServer(str(place), [])
    server.stop.set()
    server.serve()
    assert not place.exists()
    place.write_text("precious")
    with pytest.raises(EnvironmentFailure, match="is not a socket, and is left as it is"):
        AgentServer(str(place), []).serve()
    assert place.read_text() == "precious"


def test_a_link_in_the_place_of_the_socket_or_its_directory_is_refused(place: Path, tmp_path: Path):
    target = tmp_path / "target"
    place.symlink_to(target)
    with pytest.raises(EnvironmentFailure, match="is not a socket, and is left as it is"):
        AgentServer(str(place), []).serve()
    planted = tmp_path / "planted"
    planted.symlink_to(place.parent)
    with pytest.raises(EnvironmentFailure, match="must be a directory of yours with mode 0700"):
        AgentServer(str(planted / "agent.sock"), []).serve()
    assert not target.exists()


def test_a_signer_does_not_talk_to_an_agent_in_a_place_that_others_can_enter(
    place: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setenv(wire.VARIABLE, str(place))
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(place))
        listener.listen()
        place.parent.chmod(0o755)
        with pytest.raises(EnvironmentFailure, match="else others could listen there"):
            through_agent("pkcs11", Configuration(pin=PIN))
        listener.settimeout(0.2)
        with pytest.raises(TimeoutError):
            listener.accept()


def test_a_signer_goes_on_alone_where_the_agent_is_gone(place: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv(wire.VARIABLE, str(place))
    assert through_agent("pkcs11", Configuration()) is None
    with socket.socket(socket.AF_UNIX) as left:
        left.bind(str(place))
    assert through_agent("pkcs11", Configuration()) is None


@pytest.mark.skipif(sys.platform != "linux", reason="looks into /proc")
def test_the_agent_leaves_no_core_and_lets_nobody_look(place: Path, tmp_path: Path):
    settings = [f"--set=pathKey={tmp_path / 'key'}", f"--set=pathCert={tmp_path / 'cert'}"]
    argv = [sys.executable, "-m", "kubeauthn", "signer", "agent", "--socket", str(place), "--signer=file", *settings]
    agent = subprocess.Popen(argv, stderr=subprocess.PIPE, stdin=subprocess.DEVNULL)
    try:
        assert agent.stderr is not None
        assert b"1 keys at" in agent.stderr.readline()
        limits = Path(f"/proc/{agent.pid}/limits").read_text().splitlines()
        (core,) = [line.split()[4:6] for line in limits if line.startswith("Max core file size")]
        assert core == ["0", "0"]
        # A process that may not be dumped belongs to root in /proc, so that no other of the user's looks into it.
        status = dict(line.split(":", 1) for line in Path(f"/proc/{agent.pid}/status").read_text().splitlines())
        assert status["NoNewPrivs"].strip() == "1"
        if os.getuid():
            assert os.stat(f"/proc/{agent.pid}/environ").st_uid == 0
    finally:
        agent.terminate()
        agent.communicate(timeout=50)


def test_a_signer_leaves_no_core():
    """Its request may hold a PIN."""
    program = (
        "import resource\n"
        "from kubeauthn.plugin import signer\n"
        "class Author:\n"
        "    def certificate(self): raise SystemExit(str(resource.getrlimit(resource.RLIMIT_CORE)))\n"
        "    def sign(self, digest, algorithm): ...\n"
        "signer.run(Author())\n"
    )
    request = signerwire.encode_certificate_request({"pin": PIN})
    environ = {**os.environ, signerwire.VARIABLE: request}
    result = subprocess.run([sys.executable, "-c", program], env=environ, capture_output=True, text=True, timeout=50)
    assert "(0, 0)" in result.stderr
