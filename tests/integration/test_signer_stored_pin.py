"""A PIN that nobody types: a wrong one is brought to the token once; one in a file descriptor gets to the signer."""

from __future__ import annotations

import json
import os
import ssl
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from kubeauthn._core.kubeconfig.model import AuthProvider, Cluster, ExecConfig
from kubeauthn._core.signerwire import NOT_THE_PIN_EXIT, PIN_REFUSED_EXIT, SigningAlgorithm
from kubeauthn.client.exec_source import ExecOptions, ExecPlugin
from kubeauthn.client.signer_source import ExternalSigner
from kubeauthn.errors import CredentialError, CredentialWaiting, PluginFailed
from kubeauthn.plugin._signer_rehearsal import verify
from kubeauthn.testing import CertificateAuthority, FakeClock, ScriptedPlugin
from tests.integration import softhsm
from tests.integration.rough_module import FUNCTION_REJECTED, module_that
from tests.integration.signer_scene import SignerProgram, demanding_server
from tests.integration.softhsm import MODULE, PIN, SoftHsm

EC = SigningAlgorithm("ec", hash="sha256")
DIGEST = bytes(32)
PIN_INCORRECT = 0xA0
token = pytest.mark.needs("softhsm2-util", "pkcs11-tool")
no_terminal: dict[str, Any] = {"is_terminal": lambda: False}


@pytest.fixture(scope="module")
def hsm(tmp_path_factory: pytest.TempPathFactory) -> SoftHsm:
    made = SoftHsm(tmp_path_factory.mktemp("softhsm"))
    made.make_key("02", "EC:prime256v1")
    made.install("02", softhsm.client_certificate(made.public_key("02")))
    return made


@pytest.fixture
def signer(tmp_path: Path) -> SignerProgram:
    return SignerProgram(tmp_path / "signer", CertificateAuthority())


def entry(path: object, **more: str) -> AuthProvider:
    return AuthProvider("externalSigner", tuple({"pathExec": str(path), **more}.items()))


def pkcs11_program(folder: Path) -> Path:
    program = folder / "kubeauthn-signer-pkcs11"
    program.write_text(f"#!{sys.executable}\nfrom kubeauthn.plugins.signer_pkcs11 import main\n\nmain()\n")
    program.chmod(0o700)
    return program


STORED = [{"pin": "1"}, {"pinSource": "keyring:kubeauthn/desk"}, {"pinSource": "fd:9"}, {"uri": "pkcs11:?pin-value=1"}]


@pytest.mark.parametrize("stored", STORED, ids=["pin", "keyring", "descriptor", "uri"])
@pytest.mark.parametrize("terminal", [True, False], ids=["terminal", "no terminal"])
def test_a_stored_pin_that_is_wrong_is_not_brought_again(signer: SignerProgram, stored: dict[str, str], terminal: bool):
    clock = FakeClock()
    signer.say(SignRequest={"exit": PIN_REFUSED_EXIT})
    client = ExternalSigner(entry(signer.path, **stored), clock=clock, is_terminal=lambda: terminal)
    with pytest.raises(PluginFailed, match="failed with exit code 77"):
        client.sign(DIGEST, EC)
    for _ in range(4):
        clock.advance(3600)  # however long one waits
        with pytest.raises(PluginFailed, match="the PIN was wrong, and a stored one is not tried again"):
            client.sign(DIGEST, EC)
    assert signer.count("SignRequest") == 1


def test_a_person_may_type_another(signer: SignerProgram):
    signer.say(SignRequest={"exit": PIN_REFUSED_EXIT})
    clock = FakeClock()
    client = ExternalSigner(entry(signer.path), clock=clock, is_terminal=lambda: True)
    for _ in range(4):  # the pause does not grow: it is the person who decides
        with pytest.raises(PluginFailed):
            client.sign(DIGEST, EC)
        with pytest.raises(CredentialWaiting, match="next attempt in 1.0 s"):  # of a library that tries again at once
            client.sign(DIGEST, EC)
        clock.advance(1.1)
    signer.say(SignRequest={})
    assert client.sign(DIGEST, EC)
    assert signer.count("SignRequest") == 5


FOREIGN = [{"pin": "1"}, {"userPin": "1"}, {"pin-file": "/pin"}, {"hsm_password": "1"}, {"keySecret": "1"}]


@pytest.mark.parametrize("stored", FOREIGN, ids=[next(iter(one)) for one in FOREIGN])
@pytest.mark.parametrize("terminal", [True, False], ids=["terminal", "no terminal"])
@pytest.mark.parametrize("ending", [{"exit": 1}, {"exit": 2}, {"print": "CKR_PIN_INCORRECT"}], ids=["1", "2", "0"])
def test_a_signer_that_does_not_say_what_failed_gets_a_stored_pin_once(
    signer: SignerProgram, stored: dict[str, str], terminal: bool, ending: dict[str, Any]
):
    """Other people's signers end with 1 for everything, a wrong PIN included."""
    clock = FakeClock()
    signer.say(SignRequest=ending)
    client = ExternalSigner(entry(signer.path, **stored), clock=clock, is_terminal=lambda: terminal)
    with pytest.raises(CredentialError):
        client.sign(DIGEST, EC)
    for _ in range(4):
        clock.advance(3600)
        with pytest.raises(PluginFailed, match="the stored PIN may have been wrong, and is not tried again") as caught:
            client.sign(DIGEST, EC)
        assert "exit code 75" in (caught.value.hint or "")
        with pytest.raises(PluginFailed, match="is not tried again"):
            client.make_credential()
    assert (signer.count("SignRequest"), signer.count("CertificateRequest")) == (1, 0)


@pytest.mark.parametrize("code", [1, PIN_REFUSED_EXIT])
def test_a_signer_that_logs_in_for_its_certificate(signer: SignerProgram, code: int):
    clock = FakeClock()
    signer.say(CertificateRequest={"exit": code})
    client = ExternalSigner(entry(signer.path, pin="1"), clock=clock, **no_terminal)
    for _ in range(4):
        with pytest.raises(CredentialError):
            client.source.get()
        clock.advance(3600)
    with pytest.raises(PluginFailed, match="is not tried again"):
        client.sign(DIGEST, EC)
    assert (signer.count("SignRequest"), signer.count("CertificateRequest")) == (0, 1)


@pytest.mark.parametrize("stored", [{"pin": "1"}, {}], ids=["stored", "none"])
def test_clusters_whose_plugins_name_one_signer_do_not_each_bring_it_a_wrong_pin(
    signer: SignerProgram, tmp_path: Path, stored: dict[str, str]
):
    signer.say(CertificateRequest={"exit": 1, "hang": 0.5})
    naming = ScriptedPlugin(tmp_path / "plugin")
    document = {"apiVersion": "client.authentication.k8s.io/v1", "kind": "ExecCredential"}
    naming.raw(json.dumps({**document, "status": {"externalSigner": {"pathExec": str(signer.path), **stored}}}))
    config = ExecConfig(command=str(naming.path), api_version=document["apiVersion"], interactive_mode="Never")
    clusters = [Cluster(server=f"https://127.0.0.1:{port}") for port in range(6443, 6447)]
    sources = [ExecPlugin(config, cluster, is_terminal=lambda: False).new_source() for cluster in clusters]
    with ThreadPoolExecutor(len(sources)) as threads:
        failures = [made.exception(30) for made in [threads.submit(source.get) for source in sources]]
    assert all(isinstance(each, CredentialError) for each in failures)
    assert signer.count("CertificateRequest") == 1


@pytest.mark.parametrize("name", ["pinSource", "pathExec", "mapping", "spinner", "objectId"])
def test_what_is_no_stored_pin(signer: SignerProgram, name: str):
    clock = FakeClock()
    signer.say(SignRequest={"exit": 1})
    more = {} if name == "pathExec" else {name: "prompt"}
    client = ExternalSigner(entry(signer.path, **more), clock=clock, **no_terminal)
    with pytest.raises(PluginFailed):
        client.sign(DIGEST, EC)
    clock.advance(1.1)
    signer.say(SignRequest={})
    assert client.sign(DIGEST, EC)


@pytest.mark.parametrize("terminal", [True, False], ids=["terminal", "no terminal"])
def test_handshakes_that_waited_share_the_failure_of_the_first(signer: SignerProgram, terminal: bool):
    """Wherever the signer has its PIN from: eight wrong ones at once lock every token."""
    signer.say(SignRequest={"hang": 0.3, "exit": 1})
    client = ExternalSigner(
        entry(signer.path), ExecOptions(seconds=20.0), clock=FakeClock(), is_terminal=lambda: terminal
    )

    def fails(_: int) -> bool:
        with pytest.raises(CredentialError):
            client.sign(DIGEST, EC)
        return True

    with ThreadPoolExecutor(8) as pool:
        assert list(pool.map(fails, range(8))) == [True] * 8
    assert signer.count("SignRequest") == 1


def test_a_signer_that_had_to_be_ended_was_not_refused(signer: SignerProgram):
    """It waited for a touch: the PIN was right, or was not brought."""
    clock = FakeClock()
    signer.say(SignRequest={"hang": 20})
    client = ExternalSigner(entry(signer.path, pin="1"), ExecOptions(seconds=0.5), clock=clock, **no_terminal)
    with pytest.raises(PluginFailed, match="did not answer"):
        client.sign(DIGEST, EC)
    clock.advance(1.1)
    signer.say(SignRequest={"exit": NOT_THE_PIN_EXIT})
    with pytest.raises(PluginFailed, match="exit code 75|did not answer"):
        client.sign(DIGEST, EC)
    assert signer.count("SignRequest") == 2


def test_other_failures_pass_with_time(signer: SignerProgram):
    """A token that was not there may be there later, and the signer says that it was this."""
    clock = FakeClock()
    signer.say(SignRequest={"exit": NOT_THE_PIN_EXIT})
    client = ExternalSigner(entry(signer.path, pin="1"), clock=clock, **no_terminal)
    with pytest.raises(PluginFailed):
        client.sign(DIGEST, EC)
    with pytest.raises(CredentialWaiting):
        client.sign(DIGEST, EC)
    clock.advance(1.1)
    signer.say(SignRequest={})
    assert client.sign(DIGEST, EC)


def test_of_handshakes_that_begin_together_one_tries_a_stored_pin(signer: SignerProgram):
    signer.say(SignRequest={"hang": 0.3, "exit": PIN_REFUSED_EXIT})
    client = ExternalSigner(entry(signer.path, pin="1"), ExecOptions(seconds=20.0), **no_terminal)

    def fails(_: int) -> bool:
        with pytest.raises(CredentialError):
            client.sign(DIGEST, EC)
        return True

    with ThreadPoolExecutor(8) as pool:
        assert list(pool.map(fails, range(8))) == [True] * 8
    assert signer.count("SignRequest") == 1


def test_once_it_was_right_signatures_are_made_in_parallel(signer: SignerProgram):
    client = ExternalSigner(entry(signer.path, pin="1"), ExecOptions(seconds=20.0), **no_terminal)
    assert client.sign(DIGEST, EC)
    signer.say(SignRequest={"together": 3})  # one after the other, they would wait for ever
    with ThreadPoolExecutor(2) as pool:
        assert all(pool.map(lambda _: client.sign(DIGEST, EC), range(2)))


@token
@pytest.mark.parametrize("answer", [PIN_INCORRECT, 0x05, 0x06, 0x30], ids=["PIN", "general", "function", "device"])
def test_a_token_that_does_not_say_that_it_counts(
    hsm: SoftHsm, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, answer: int
):
    """SoftHSM2's own flag is never set here: the module answers for it. The client alone remembers."""
    for name, value in hsm.environ.items():
        monkeypatch.setenv(name, value)
    module = module_that(tmp_path, "C_Login", answer)
    clock = FakeClock()
    configuration = hsm.configuration(pin="00000000") | {"pathLib": module}
    client = ExternalSigner(entry(pkcs11_program(tmp_path), **configuration), clock=clock, **no_terminal)
    with pytest.raises(PluginFailed, match="failed with exit code 77"):
        client.sign(DIGEST, EC)
    clock.advance(3600)
    with pytest.raises(PluginFailed, match="a stored one is not tried again"):
        client.sign(DIGEST, EC)


@token
def test_a_key_that_nobody_touched_gets_its_stored_pin_again(
    hsm: SoftHsm, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    """The login was right, so it was not the PIN; and somebody may be there the next time."""
    for name, value in hsm.environ.items():
        monkeypatch.setenv(name, value)
    module = Path(module_that(tmp_path, "C_Sign", FUNCTION_REJECTED))
    clock = FakeClock()
    configuration = hsm.configuration(pin=PIN) | {"pathLib": str(module)}
    client = ExternalSigner(entry(pkcs11_program(tmp_path), **configuration), clock=clock, **no_terminal)
    with pytest.raises(PluginFailed, match="failed with exit code 75"):
        client.sign(DIGEST, EC)
    module.unlink()
    module.write_bytes(Path(MODULE).read_bytes())
    clock.advance(1.1)
    assert client.sign(DIGEST, EC)


@token
@pytest.mark.parametrize("kind", ["file", "pipe"])
def test_the_pin_from_a_descriptor_of_the_client(
    hsm: SoftHsm, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str
):
    """As a shell opens it: `python operator.py 3< pin`. A file is read for every signature, a pipe gives it once."""
    for name, value in hsm.environ.items():
        monkeypatch.setenv(name, value)
    if kind == "pipe":
        reading, writing = os.pipe()
        os.write(writing, f"{PIN}\n".encode())
        os.close(writing)
    else:
        (tmp_path / "pin").write_text(f"{PIN}\n")
        reading = os.open(tmp_path / "pin", os.O_RDONLY)
    configuration = hsm.configuration(pinSource=f"fd:{reading}")
    client = ExternalSigner(entry(pkcs11_program(tmp_path), **configuration), **no_terminal)
    try:
        leaf = client.make_credential().identity.chain[0]  # type: ignore[union-attr]  # an external signer's
        os.set_inheritable(reading, True)
        for turn in range(1 if kind == "pipe" else 3):
            digest = bytes([turn]) * 32
            verify(leaf, client.sign(digest, EC), digest, EC)
        if kind == "pipe":
            with pytest.raises(PluginFailed):
                client.sign(DIGEST, EC)
    finally:
        os.close(reading)


@token
def test_a_descriptor_that_is_the_programs_own_is_not_handed_on(
    hsm: SoftHsm, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
):
    """A kubeconfig names it, and it is a connection or a file of the program's: nothing of it is read."""
    for name, value in hsm.environ.items():
        monkeypatch.setenv(name, value)
    (tmp_path / "own").write_text(f"{PIN}\nand more\n")
    with open(tmp_path / "own", "rb", buffering=0) as own:
        configuration = hsm.configuration(pinSource=f"fd:{own.fileno()}")
        client = ExternalSigner(entry(pkcs11_program(tmp_path), **configuration), **no_terminal)
        with pytest.raises(PluginFailed):
            client.sign(DIGEST, EC)
        assert own.tell() == 0
    assert "file descriptor" in capfd.readouterr().err


@token
def test_a_connection_with_the_pin_from_a_descriptor(hsm: SoftHsm, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    from kubeauthn.client import signing_context

    for name, value in hsm.environ.items():
        monkeypatch.setenv(name, value)
    (tmp_path / "pin").write_text(f"{PIN}\n")
    descriptor = os.open(tmp_path / "pin", os.O_RDONLY)
    os.set_inheritable(descriptor, True)
    ca = CertificateAuthority()
    client = ExternalSigner(
        entry(pkcs11_program(tmp_path), **hsm.configuration(pinSource=f"fd:{descriptor}")), **no_terminal
    )
    try:
        identity = client.make_credential().identity
        assert identity is not None
        with demanding_server(ca, "1.3", tickets=False) as server:
            server.context.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN
            server.context.load_verify_locations(cadata=identity.certificate.decode())
            context = signing_context(
                identity.certificate, client.sign, certificate_authority=ca.certificate_pem, server_name="localhost"
            )
            assert [server.ask(context) for _ in range(3)] == ["jane"] * 3
            assert server.full_handshakes == 3
    finally:
        os.close(descriptor)
