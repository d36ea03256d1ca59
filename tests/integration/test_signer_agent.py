"""The resident agent: a PIN once per N minutes, a token that comes and goes, and nobody else's requests."""

from __future__ import annotations

import errno
import hashlib
import os
import socket
import subprocess
import threading
import time
from base64 import b64encode
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from kubeauthn._core.signerwire import NOT_THE_PIN_EXIT, SigningAlgorithm
from kubeauthn._secret import Secret
from kubeauthn.errors import EnvironmentFailure, KeyStoreAbsent, KeyStoreError, PinRefused
from kubeauthn.plugin.signer import Configuration
from kubeauthn.plugins.agent import wire
from kubeauthn.plugins.agent.keeper import KeptKey
from kubeauthn.plugins.agent.server import TICK_SECONDS, AgentServer
from tests.integration import signer_process, softhsm
from tests.integration.rough_module import module_that
from tests.integration.softhsm import PIN, SoftHsm

EC = SigningAlgorithm("ec", hash="sha256")
DIGEST = hashlib.sha256(b"hello").digest()
CONFIGURATION = Configuration(objectId="2", pathExec="x", pin="never used")


class Token:
    """A signer that can be pulled out and exchanged; it counts how often it is given a PIN."""

    def __init__(self) -> None:
        self.present, self.serial, self.right_pin = True, b"one", "1234"
        self.pins: list[str] = []
        self._open = False

    def made(self, configuration: Configuration, pins) -> Token:
        assert "pin" not in configuration
        self._pins = pins
        return self

    def certificate(self) -> bytes:
        return b"certificate"

    def sign(self, digest: bytes, algorithm: SigningAlgorithm) -> bytes:
        if not self.present:
            self._open = False
            raise KeyStoreAbsent("pulled out")
        if not self._open:
            pin = self._pins("PIN of the token").reveal()
            self.pins.append(pin)
            if pin != self.right_pin:
                raise PinRefused("wrong")
            self._open = True
        return b"signature"

    def identity(self) -> bytes:
        if not self.present:
            raise KeyStoreAbsent("pulled out")
        return self.serial

    def reopen(self) -> None:
        self._open = False

    def close(self) -> None:
        self._open = False


class Time:
    now = 1000.0

    def __call__(self) -> float:
        return self.now


def kept(token: Token, clock: Time, **options) -> KeptKey:
    return KeptKey("pkcs11", CONFIGURATION, token.made, seconds=600, clock=clock, **options)


def test_a_pin_is_asked_for_once_per_n_minutes():
    token, clock = Token(), Time()
    key = kept(token, clock)
    with pytest.raises(KeyStoreError, match="PIN of the token"):
        key.sign(DIGEST, EC, None)
    assert key.sign(DIGEST, EC, Secret("1234")) == b"signature"
    clock.now += 599
    assert key.sign(DIGEST, EC, None) == b"signature"
    clock.now += 1
    with pytest.raises(KeyStoreError, match="PIN of the token"):
        key.sign(DIGEST, EC, None)
    assert token.pins == ["1234"]


def test_a_wrong_pin_is_given_once_and_not_kept():
    token, clock = Token(), Time()
    key = kept(token, clock)
    with pytest.raises(PinRefused):
        key.sign(DIGEST, EC, Secret("0000"))
    with pytest.raises(KeyStoreError, match="PIN of the token"):
        key.sign(DIGEST, EC, None)
    assert token.pins == ["0000"]


def test_removal_and_return_of_the_same_token():
    token, clock = Token(), Time()
    key = kept(token, clock)
    key.sign(DIGEST, EC, Secret("1234"))
    token.present = False
    with pytest.raises(KeyStoreAbsent):
        key.sign(DIGEST, EC, None)
    token.present = True
    assert key.sign(DIGEST, EC, None) == b"signature"


def test_another_token_in_its_place_gets_no_pin_that_was_not_typed_for_it():
    token, clock = Token(), Time()
    key = kept(token, clock)
    key.sign(DIGEST, EC, Secret("1234"))
    token.present = False
    with pytest.raises(KeyStoreAbsent):
        key.sign(DIGEST, EC, None)
    token.present, token.serial = True, b"two"
    with pytest.raises(KeyStoreError, match="PIN"):
        key.sign(DIGEST, EC, None)
    assert token.pins == ["1234"]
    token.right_pin = "5678"
    assert key.sign(DIGEST, EC, Secret("5678")) == b"signature"


def test_leave_is_asked_once_per_n_minutes():
    token, clock, asked = Token(), Time(), []
    key = kept(token, clock, allow=lambda question: not asked.append(question))
    key.sign(DIGEST, EC, Secret("1234"))
    key.sign(DIGEST, EC, None)
    assert len(asked) == 1
    refusing = kept(Token(), clock, allow=lambda question: False)
    with pytest.raises(KeyStoreError, match="said no"):
        refusing.sign(DIGEST, EC, Secret("1234"))


@contextmanager
def serving(path: Path, keys: list[KeptKey], log: list[str] | None = None) -> Iterator[AgentServer]:
    server = AgentServer(str(path), keys, log=(log if log is not None else []).append)
    thread = threading.Thread(target=server.serve)
    thread.start()
    try:
        assert server.ready.wait(10)
        yield server
    finally:
        server.stop.set()
        thread.join(10)
        assert not thread.is_alive()


@pytest.fixture
def place(tmp_path: Path) -> Path:
    folder = tmp_path / "agent"
    folder.mkdir(mode=0o700)
    return folder / "agent.sock"


def talk(path: Path, *lines: bytes) -> list[bytes]:
    with socket.socket(socket.AF_UNIX) as connection:
        connection.settimeout(10)
        connection.connect(str(path))
        answers = []
        for line in lines:
            connection.sendall(line)
            answers.append(connection.recv(65536))
        return answers


def test_the_socket_is_ours_alone_and_goes_with_the_agent(place: Path):
    with serving(place, []):
        assert place.stat().st_mode & 0o777 == 0o600
        with pytest.raises(EnvironmentFailure, match="listens at .* already"):
            AgentServer(str(place), []).serve()
    assert not place.exists()


def test_a_place_that_others_can_enter_is_refused(tmp_path: Path):
    folder = tmp_path / "open"
    folder.mkdir()
    folder.chmod(0o755)
    with pytest.raises(EnvironmentFailure, match="mode 0700"):
        AgentServer(str(folder / "agent.sock"), []).serve()


def test_what_is_not_the_protocol_ends_the_connection_and_not_the_agent(place: Path):
    log: list[str] = []
    with serving(place, [], log):
        assert talk(place, b"hunter2 is not JSON\n") == [b""]
        assert talk(place, b'{"version":7}\n') == [b""]
        assert b"say first which key" in talk(place, b'{"version":1,"do":"sign"}\n')[0]
        assert b'"mine":false' in talk(place, b'{"version":1,"signer":"pkcs11","configuration":{"pathLib":"/x"}}\n')[0]
    assert not any("hunter2" in line for line in log)


def test_a_key_that_waits_for_a_touch_does_not_keep_the_others_waiting(place: Path):
    waiting, touched = threading.Event(), threading.Event()

    class Slow(Token):
        def sign(self, digest: bytes, algorithm: SigningAlgorithm) -> bytes:
            waiting.set()
            assert touched.wait(30)
            return b"signature"

    other = KeptKey("pkcs11", Configuration(objectId="3"), Token().made, seconds=600, clock=Time())
    hello = b'{"version":1,"signer":"pkcs11","configuration":{"objectId":"%s"}}\n'
    options = b'{"version":1,"do":"sign","digest":"%s","type":"crypto.Hash","options":"5"}\n'
    sign = options % b64encode(DIGEST)
    answers: list[bytes] = []
    with serving(place, [kept(Slow(), Time()), other]):
        asking = threading.Thread(target=lambda: answers.extend(talk(place, hello % b"2", sign)))
        asking.start()
        try:
            assert waiting.wait(10)
            for _ in range(3):  # also after the agent has looked for PINs that have had their time
                assert b'"certificate"' in talk(place, hello % b"3", b'{"version":1,"do":"certificate"}\n')[1]
                time.sleep(TICK_SECONDS)
        finally:
            touched.set()
            asking.join(10)
    assert b'"signature"' in answers[1]


def test_a_token_that_never_answers_keeps_neither_the_agent_nor_the_others_pins(place: Path):
    waiting, released = threading.Event(), threading.Event()

    class Silent(Token):
        def sign(self, digest: bytes, algorithm: SigningAlgorithm) -> bytes:
            waiting.set()
            assert released.wait(60)
            return b"signature"

    clock, log = Time(), []
    silent, other = kept(Silent(), clock), kept(Token(), clock)
    other.sign(DIGEST, EC, Secret("1234"))
    asking = threading.Thread(target=lambda: silent.sign(DIGEST, EC, Secret("1234")))
    asking.start()
    try:
        assert waiting.wait(10)
        clock.now += 601
        with serving(place, [silent, other], log):
            for _ in range(40):
                if other._pin is None:
                    break
                time.sleep(TICK_SECONDS / 2)
            assert other._pin is None
        # It has ended, within ten seconds.
        assert log == ["a token does not answer, and is left as it is"]
        assert not place.exists()
    finally:
        released.set()
        asking.join(10)


def test_a_token_that_cannot_be_closed_does_not_keep_the_others_pins(place: Path):
    class Stuck(Token):
        def close(self) -> None:
            raise RuntimeError("stuck")

    clock, tokens = Time(), [Stuck(), Token()]
    keys = [kept(token, clock) for token in tokens]
    for key in keys:
        key.sign(DIGEST, EC, Secret("1234"))
    log: list[str] = []
    clock.now += 601
    with serving(place, keys, log):
        for _ in range(40):
            if keys[1]._pin is None:
                break
            time.sleep(TICK_SECONDS / 2)
        assert [key._pin for key in keys] == [None, None]
    assert "failed: RuntimeError" in log


def test_no_room_for_another_connection_is_not_the_agents_end(place: Path, monkeypatch: pytest.MonkeyPatch):
    accept, refused = socket.socket.accept, []

    def refuse_some(listener: socket.socket) -> object:
        if len(refused) < 3:
            refused.append(1)
            raise OSError(errno.EMFILE, "too many open files")
        return accept(listener)

    monkeypatch.setattr(socket.socket, "accept", refuse_some)
    with serving(place, []):
        assert b"say first which key" in talk(place, b'{"version":1,"do":"sign"}\n')[0]
    assert len(refused) == 3


def test_the_other_end_must_be_our_user():
    ours, theirs = socket.socketpair(socket.AF_UNIX)
    with ours, theirs:
        wire.check_peer(ours)


@pytest.mark.skipif(os.getuid() != 0, reason="only root can start a process of another user")
def test_a_process_of_another_user_is_refused_even_where_it_can_connect():
    import tempfile

    with tempfile.TemporaryDirectory() as folder, socket.socket(socket.AF_UNIX) as listener:
        os.chmod(folder, 0o755)  # noqa: S103  what the agent itself would refuse
        listener.bind(f"{folder}/s")
        os.chmod(f"{folder}/s", 0o666)  # noqa: S103
        listener.listen()
        listener.settimeout(20)
        program = f"import socket; s = socket.socket(socket.AF_UNIX); s.connect({folder + '/s'!r}); s.recv(1)"
        other = subprocess.Popen(["/usr/bin/env", "-i", "python3", "-c", program], user=65534, cwd="/")
        try:
            connection, _ = listener.accept()
            with connection, pytest.raises(EnvironmentFailure, match="belongs to user 65534, not to 0"):
                wire.check_peer(connection)
        finally:
            other.wait(20)


@pytest.fixture(scope="module")
def hsm(tmp_path_factory: pytest.TempPathFactory) -> SoftHsm:
    return softhsm.filled(tmp_path_factory.mktemp("softhsm"))


@pytest.mark.needs("softhsm2-util", "pkcs11-tool")
def test_the_command_with_a_real_token(hsm: SoftHsm, place: Path):
    """The PIN goes through once; the second signature needs none; a token whose directory moves away comes back."""
    settings = [f"--set={key}={value}" for key, value in hsm.configuration(touch="true").items()]
    argv = [signer_process.sys.executable, "-m", "kubeauthn", "signer", "agent", "--socket", str(place)]
    agent = subprocess.Popen(
        [*argv, "--signer=pkcs11", *settings], env=hsm.environ, stderr=subprocess.PIPE, stdin=subprocess.DEVNULL
    )
    try:
        assert agent.stderr is not None
        assert b"1 keys at" in agent.stderr.readline()
        for _ in range(200):
            if place.exists():
                break
            threading.Event().wait(0.05)
        environ = {**os.environ, wire.VARIABLE: str(place), "SOFTHSM2_CONF": "/nonexistent"}
        with_pin, without = hsm.configuration(pin=PIN), hsm.configuration()
        leaf = signer_process.certificate("pkcs11", without, environ)
        refused = signer_process.sign("pkcs11", without, EC, environ)
        assert b"no terminal to ask for PIN of the token 'desk'" in refused.stderr
        signer_process.check(leaf, signer_process.sign("pkcs11", with_pin, EC, environ), EC)
        signer_process.check(leaf, signer_process.sign("pkcs11", without, EC, environ), EC)
        # The person looks at the terminal of the client, and not at the agent's.
        told = signer_process.sign("pkcs11", without | {"touch": "true"}, EC, environ)
        signer_process.check(leaf, told, EC)
        assert told.stderr == b"touch the token now\n"
        away = hsm.folder / "away"
        hsm.tokens.rename(away)
        gone = signer_process.sign("pkcs11", without, EC, environ)
        away.rename(hsm.tokens)
        assert gone.returncode == NOT_THE_PIN_EXIT
        assert b"the module finds no token any more" in gone.stderr
        back = signer_process.sign("pkcs11", without, EC, environ)  # the same token, and within the PIN's time
        signer_process.check(leaf, back, EC)
    finally:
        agent.terminate()
        _, said = agent.communicate(timeout=50)
    assert agent.returncode == 0
    assert PIN.encode() not in said
    assert b"touch" not in said
    assert not place.exists()


@pytest.mark.needs("softhsm2-util", "pkcs11-tool")
def test_the_command_ends_while_a_module_never_answers(hsm: SoftHsm, place: Path, tmp_path: Path):
    configuration = hsm.configuration() | {"pathLib": module_that(tmp_path, "C_Sign", "hang")}
    settings = [f"--set={key}={value}" for key, value in configuration.items()]
    argv = [signer_process.sys.executable, "-m", "kubeauthn", "signer", "agent", "--socket", str(place)]
    agent = subprocess.Popen(
        [*argv, "--signer=pkcs11", *settings], env=hsm.environ, stderr=subprocess.PIPE, stdin=subprocess.DEVNULL
    )
    asking = None
    try:
        assert agent.stderr is not None
        lines = iter(agent.stderr.readline, b"")
        assert b"1 keys at" in next(lines)
        for _ in range(200):
            if place.exists():
                break
            time.sleep(0.05)
        environ = {**os.environ, wire.VARIABLE: str(place)}
        asking = threading.Thread(
            target=lambda: signer_process.sign("pkcs11", {**configuration, "pin": PIN}, EC, environ)
        )
        asking.start()
        asked = [next(lines) for _ in range(3)]  # how it is found; without the PIN, and with it
        assert sum(b"a signature with" in line for line in asked) == 2
        time.sleep(1)  # the call is deep in the module by then
        agent.terminate()
        assert agent.wait(20) == 0
    finally:
        agent.kill()
        agent.communicate(timeout=20)
        if asking is not None:
            asking.join(20)
