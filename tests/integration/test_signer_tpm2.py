"""kubeauthn-signer-tpm2 with a real software TPM: swtpm, its keys made by tpm2-tools."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from cryptography.hazmat.primitives.serialization import Encoding, load_der_public_key

from kubeauthn._core import signerwire, tpm2
from kubeauthn._core.kubeconfig.model import AuthProvider
from kubeauthn._core.signerwire import SigningAlgorithm
from kubeauthn._secret import Secret
from kubeauthn.client.signer_source import ExternalSigner
from kubeauthn.errors import KeyStoreError, PinRefused, PluginFailed
from kubeauthn.plugin.signer import Configuration
from kubeauthn.plugins.signer_tpm2 import Tpm2Signer
from kubeauthn.plugins.tpm2_device import TpmDevice
from kubeauthn.testing import FakeClock
from tests.integration import signer_process
from tests.integration.checked_plugin import check
from tests.integration.softhsm import client_certificate

pytestmark = pytest.mark.needs("swtpm", "tpm2_createprimary")

RSA, P256, P384, GUARDED, BOUND, PARENT = (0x81000001 + number for number in range(6))
NV_INDEX = 0x01500010
AUTH = "correct horse"
PSS = SigningAlgorithm("rsa", padding="pss", hash="sha256", salt=32)
EC = SigningAlgorithm("ec", hash="sha256")


@dataclass
class SoftTpm:
    folder: Path
    port: int

    @property
    def device(self) -> str:
        return f"tcp:127.0.0.1:{self.port}"

    def tool(self, *argv: str) -> str:
        environ = {**os.environ, "TPM2TOOLS_TCTI": f"swtpm:host=127.0.0.1,port={self.port}"}
        result = subprocess.run(argv, env=environ, cwd=self.folder, capture_output=True, text=True, timeout=50)
        # Without a resource manager in between, what a tool loaded stays: there is room for three.
        subprocess.run(["tpm2_flushcontext", "-t"], env=environ, capture_output=True, timeout=50)
        assert result.returncode == 0, f"{argv}: {result.stderr}"
        return result.stdout

    def make_key(self, handle: int, kind: str, *more: str, name: str) -> None:
        attributes = "fixedtpm|fixedparent|sensitivedataorigin|userwithauth|sign"
        self.tool(
            "tpm2_create", "-Q", "-C", "primary.ctx", "-G", kind, "-a", attributes, "-u", f"{name}.pub", "-r",
            f"{name}.priv", *more,
        )  # fmt: skip
        self.tool(
            "tpm2_load", "-Q", "-C", "primary.ctx", "-u", f"{name}.pub", "-r", f"{name}.priv", "-c", f"{name}.ctx"
        )
        self.tool("tpm2_evictcontrol", "-Q", "-C", "o", "-c", f"{name}.ctx", hex(handle))


def two_free_ports() -> int:
    """swtpm's second channel is at the next port, where tpm2-tools look for it."""
    for _ in range(50):
        with socket.socket() as first, socket.socket() as second:
            first.bind(("127.0.0.1", 0))
            port = first.getsockname()[1]
            try:
                second.bind(("127.0.0.1", port + 1))
            except OSError:
                continue
            return port
    raise AssertionError("no two ports in a row are free")


@pytest.fixture(scope="module")
def tpm(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SoftTpm]:
    folder = tmp_path_factory.mktemp("tpm")
    (folder / "state").mkdir()
    port = two_free_ports()
    process = subprocess.Popen(
        [
            "swtpm", "socket", "--tpm2", "--tpmstate", f"dir={folder / 'state'}",
            "--server", f"type=tcp,port={port},bindaddr=127.0.0.1",
            "--ctrl", f"type=tcp,port={port + 1},bindaddr=127.0.0.1", "--flags", "not-need-init,startup-clear",
        ],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )  # fmt: skip
    try:
        deadline = time.monotonic() + 20
        while True:
            assert process.poll() is None
            assert time.monotonic() < deadline
            try:
                socket.create_connection(("127.0.0.1", port), timeout=1).close()
                break
            except OSError:
                time.sleep(0.05)
        soft = SoftTpm(folder, port)
        soft.tool("tpm2_createprimary", "-Q", "-C", "o", "-G", "ecc256", "-c", "primary.ctx")
        soft.make_key(RSA, "rsa2048:null:null", name="rsa")
        soft.make_key(P256, "ecc256:null:null", name="p256")
        soft.make_key(P384, "ecc384:null:null", name="p384")
        soft.make_key(GUARDED, "ecc256:null:null", "-p", AUTH, name="guarded")
        soft.make_key(BOUND, "ecc256:ecdsa-sha384:null", name="bound")
        soft.tool("tpm2_evictcontrol", "-Q", "-C", "o", "-c", "primary.ctx", hex(PARENT))
        yield soft
    finally:
        process.terminate()
        process.wait(40)


def entry(tpm: SoftTpm, handle: int, **more: str) -> dict[str, str]:
    """A configuration with a certificate file for this very key."""
    configuration = {"device": tpm.device, "handle": hex(handle), **more}
    path = tpm.folder / f"{handle:x}.pem"
    key = load_der_public_key(Tpm2Signer(Configuration(configuration)).public_key())
    path.write_bytes(client_certificate(key).public_bytes(Encoding.PEM))
    return {**configuration, "pathCert": str(path)}


@pytest.mark.parametrize(
    ("handle", "algorithm"),
    [
        (RSA, PSS),
        (RSA, SigningAlgorithm("rsa", padding="pss", hash="sha384", salt=48)),
        (RSA, SigningAlgorithm("rsa", padding="pkcs1", hash="sha256")),
        (P256, EC),
        (P384, SigningAlgorithm("ec", hash="sha384")),
    ],
    ids=str,
)
def test_every_algorithm_verifies(tpm: SoftTpm, handle: int, algorithm: SigningAlgorithm):
    configuration = entry(tpm, handle)
    leaf = signer_process.certificate("tpm2", configuration)
    signer_process.check(leaf, signer_process.sign("tpm2", configuration, algorithm), algorithm)


@pytest.mark.parametrize("handle", [RSA, P256, P384], ids=["rsa", "p256", "p384"])
def test_plugin_check_finds_no_fault_in_it(tpm: SoftTpm, tmp_path: Path, handle: int):
    program = tmp_path / "kubeauthn-signer-tpm2"
    program.write_text(f"#!{sys.executable}\nfrom kubeauthn.plugins.signer_tpm2 import main\nmain()\n")
    program.chmod(0o700)
    options = [word for name, value in entry(tpm, handle).items() for word in ("--config", f"{name}={value}")]
    checked = check(program, options=tuple(options))
    assert checked.report["plugin"] == "signer"
    assert checked.faults == [], checked.report


def test_a_key_with_an_authorisation_value(tpm: SoftTpm):
    configuration = entry(tpm, GUARDED, pin=AUTH)
    leaf = signer_process.certificate("tpm2", configuration)
    result = signer_process.sign("tpm2", configuration, EC)
    signer_process.check(leaf, result, EC)
    assert AUTH.encode() not in result.stderr


def test_a_wrong_value_is_tried_once(tpm: SoftTpm, tmp_path: Path):
    def failures() -> str:
        lines = tpm.tool("tpm2_getcap", "properties-variable").splitlines()
        return next(line for line in lines if "LOCKOUT_COUNTER" in line).split()[-1]

    before = int(failures(), 16)
    result = signer_process.sign("tpm2", entry(tpm, GUARDED, pin="wrong"), EC)
    assert result.returncode == signerwire.PIN_REFUSED_EXIT
    assert b"AUTH_FAIL" in result.stderr
    assert b"not tried again" in result.stderr
    # noda is not set on this key, so the TPM itself counts.
    assert int(failures(), 16) == before + 1
    tpm.tool("tpm2_dictionarylockout", "--clear-lockout")
    # A client remembers: whoever opens connection after connection would have the whole TPM locked.
    program = tmp_path / "kubeauthn-signer-tpm2"
    program.write_text(f"#!{sys.executable}\nfrom kubeauthn.plugins.signer_tpm2 import main\nmain()\n")
    program.chmod(0o700)
    config = {"pathExec": str(program), **entry(tpm, GUARDED, pin="wrong")}
    clock, before = FakeClock(), int(failures(), 16)
    client = ExternalSigner(AuthProvider("externalSigner", tuple(config.items())), clock=clock)
    for _ in range(4):
        with pytest.raises(PluginFailed):
            client.sign(bytes(32), EC)
        clock.advance(3600)
    assert int(failures(), 16) == before + 1
    tpm.tool("tpm2_dictionarylockout", "--clear-lockout")


def test_the_certificate_from_the_tpms_own_memory(tpm: SoftTpm):
    key = load_der_public_key(Tpm2Signer(Configuration(device=tpm.device, handle=hex(P256))).public_key())
    der = client_certificate(key).public_bytes(Encoding.DER)
    (tpm.folder / "cert.der").write_bytes(der)
    size = len(der) + 40  # more than it needs, as people do
    tpm.tool("tpm2_nvdefine", "-Q", "-C", "o", "-s", str(size), "-a", "ownerread|ownerwrite|authread", hex(NV_INDEX))
    tpm.tool("tpm2_nvwrite", "-Q", "-C", "o", "-i", "cert.der", hex(NV_INDEX))
    configuration = {"device": tpm.device, "handle": hex(P256), "nvIndex": hex(NV_INDEX)}
    assert signer_process.certificate("tpm2", configuration) == der
    signer_process.check(der, signer_process.sign("tpm2", configuration, EC), EC)


def test_handles_are_listed(tpm: SoftTpm):
    with TpmDevice(tpm.device) as device:
        answer = device.ask(tpm2.get_handles(tpm2.FIRST_PERSISTENT), "to list handles")
        assert set(tpm2.handles(answer, tpm2.LAST_PERSISTENT)) == {RSA, P256, P384, GUARDED, BOUND, PARENT}


@pytest.mark.parametrize(
    ("change", "part"),
    [
        ({"handle": "0x81000099"}, "to read handle 0x81000099: there is nothing at that handle (TPM_RC_HANDLE"),
        ({"handle": "7"}, "handle must be hexadecimal"),
        ({"handle": hex(PARENT)}, "may not sign"),
        ({"handle": hex(BOUND)}, "bound to another scheme"),
        ({"device": "/nonexistent"}, "device: /nonexistent: no such file"),
        ({"device": "/dev/null"}, "it is no TPM 2.0"),
        ({"device": "tcp:192.0.2.1:1"}, "tcp:127.0.0.1:PORT, and nowhere else"),
        ({"handle": ""}, "lacks handle"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_a_fault_names_its_part(tpm: SoftTpm, change: dict[str, str], part: str):
    result = signer_process.sign("tpm2", {"device": tpm.device, "handle": hex(P256), **change}, EC)
    assert result.returncode == (signerwire.NOT_THE_PIN_EXIT if change.get("device") == "/nonexistent" else 1)
    assert result.stdout == b""
    assert part in result.stderr.decode()


def test_without_a_certificate_the_error_says_where_one_could_be(tpm: SoftTpm):
    request = signerwire.encode_certificate_request({"device": tpm.device, "handle": hex(P256)})
    assert b"lacks pathCert or nvIndex" in signer_process.ask("tpm2", request).stderr


def test_an_rsa_key_is_not_asked_for_ecdsa_nor_the_reverse(tpm: SoftTpm):
    result = signer_process.sign("tpm2", entry(tpm, P256), PSS)
    assert b"the key is on an elliptic curve" in result.stderr


@pytest.mark.parametrize(
    ("response", "text"),
    [
        (bytes.fromhex("80010000000a00000921"), "the TPM is locked"),
        (bytes.fromhex("80010000000a0000098e"), "the authorisation value is wrong"),
        (bytes.fromhex("80010000000a000009a2"), "the authorisation value is wrong"),
        (bytes.fromhex("80010000000c00000000"), "says 12 bytes and has 10"),
        (bytes.fromhex("80010000000a00000fff"), "a code that is not known here"),
    ],
)
def test_responses_in_words(response: bytes, text: str):
    with pytest.raises(KeyStoreError, match=text.replace("(", "")) as caught:
        tpm2.parameters(response, "to sign")
    assert isinstance(caught.value, PinRefused) == ("authorisation value" in text)


def test_a_response_that_is_cut_short_is_an_error():
    with pytest.raises(KeyStoreError, match="cut short"):
        tpm2.public_area(tpm2.Reader(b"\x00\x10\x00\x01"))
    with pytest.raises(KeyStoreError, match="no sensible length"):
        tpm2.response_size(b"\x80\x01\xff\xff\xff\xff\0\0\0\0")


def test_the_authorisation_value_is_in_no_representation():
    assert "hunter2" not in repr(Secret("hunter2"))
    assert b"hunter2" in tpm2.sign(P256, Secret("hunter2"), b"\0" * 32, tpm2.ECDSA, "sha256")


def relay(listener: socket.socket, port: int) -> None:
    """One connection after the other, from a unix socket to the TPM's port: commands in, responses out."""
    while True:
        try:
            ours, _ = listener.accept()
        except OSError:
            return
        with ours, socket.create_connection(("127.0.0.1", port), timeout=20) as theirs:
            ours.settimeout(20)
            while command := ours.recv(4096):
                theirs.sendall(command)
                ours.sendall(theirs.recv(4096))


def test_a_software_tpm_at_a_unix_socket(tpm: SoftTpm, tmp_path: Path):
    place = tmp_path / "tpm.sock"
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(place))
        listener.listen()
        thread = threading.Thread(target=relay, args=(listener, tpm.port), daemon=True)
        thread.start()
        configuration = entry(tpm, P256) | {"device": f"unix:{place}"}
        leaf = signer_process.certificate("tpm2", configuration)
        signer_process.check(leaf, signer_process.sign("tpm2", configuration, EC), EC)
        listener.shutdown(socket.SHUT_RDWR)
        thread.join(10)
    place.unlink()
    absent = signer_process.sign("tpm2", configuration, EC)
    assert f"device: unix:{place}: no such file or directory".encode() in absent.stderr
