"""A signer whose client was killed: it asks nobody any more, holds no token, and leaves the terminal as it was."""

from __future__ import annotations

import os
import pty
import signal
import subprocess
import sys
import termios
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from kubeauthn._core import signerwire
from kubeauthn._core.signerwire import SigningAlgorithm
from tests.integration.rough_module import module_that
from tests.integration.softhsm import PIN, SoftHsm

EC = SigningAlgorithm("ec", hash="sha256")
CLIENT = """
import sys
from kubeauthn._core.kubeconfig.model import AuthProvider
from kubeauthn._core.signerwire import SigningAlgorithm
from kubeauthn.client.signer_source import ExternalSigner
entry = AuthProvider("externalSigner", (("pathExec", sys.argv[1]),))
ExternalSigner(entry, is_terminal=lambda: False).sign(bytes(32), SigningAlgorithm("ec", hash="sha256"))
"""


def eventually(condition: Callable[[], object], what: str, seconds: float = 30.0) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, what
        time.sleep(0.02)


def runs(process: int) -> bool:
    """A child of a process that was killed may stay a while as one that nobody has asked after."""
    try:
        return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def written_signer(folder: Path, answer: str) -> Path:
    program = folder / "signer"
    program.write_text(
        f"#!{sys.executable}\n"
        "import os, time\n"
        "from kubeauthn.plugin import signer\n"
        "class Author:\n"
        "    def certificate(self): ...\n"
        "    def sign(self, digest, algorithm):\n"
        f"        os.rename({str(folder / 'begun')!r} + str(os.getpid()), {str(folder / 'begun')!r})\n"
        f"        {answer}\n"
        f"open({str(folder / 'begun')!r} + str(os.getpid()), 'w').write(str(os.getpid()))\n"
        "signer.run(Author())\n"
    )
    program.chmod(0o700)
    return program


@pytest.mark.skipif(sys.platform != "linux", reason="looks into /proc")
@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGTERM], ids=["KILL", "TERM"])
def test_it_ends_when_its_client_is_killed(tmp_path: Path, how: signal.Signals):
    program = written_signer(tmp_path, "time.sleep(300)")
    client = subprocess.Popen([sys.executable, "-c", CLIENT, str(program)], stdin=subprocess.DEVNULL)
    try:
        eventually((tmp_path / "begun").exists, "the signer was not asked")
        process = int((tmp_path / "begun").read_text())
        client.send_signal(how)
        client.wait(30)
        eventually(lambda: not runs(process), "the signer goes on")
    finally:
        client.kill()
        client.wait()


@pytest.mark.needs("softhsm2-util", "pkcs11-tool")
def test_it_ends_though_its_module_never_answers(tmp_path: Path):
    hsm = SoftHsm(tmp_path / "token")
    hsm.make_key("02", "EC:prime256v1")
    configuration = hsm.configuration(pin=PIN) | {"pathLib": module_that(tmp_path, "C_Sign", "hang")}
    request = signerwire.encode_sign_request(configuration, bytes(32), EC)
    signer = subprocess.Popen(
        [sys.executable, "-c", "from kubeauthn.plugins.signer_pkcs11 import main; main()"],
        env={**hsm.environ, signerwire.VARIABLE: request},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
    )
    try:
        with pytest.raises(subprocess.TimeoutExpired):  # it has come to the signature by then, or will
            signer.wait(2)
        assert signer.stdout is not None
        signer.stdout.close()
        assert signer.wait(30) == 130
    finally:
        signer.kill()
        signer.wait()


def test_the_terminal_is_as_it_was():
    """It was at the question for a PIN, with what is typed not shown."""
    request = signerwire.encode_sign_request({}, bytes(32), EC)
    program = (
        "from kubeauthn.plugin import signer\n"
        "class Author:\n"
        "    def certificate(self): ...\n"
        "    def sign(self, digest, algorithm): return signer.ask_secret('PIN').reveal().encode()\n"
        "signer.run(Author())\n"
    )
    reading, writing = os.pipe()
    child, terminal = pty.fork()
    if child == 0:
        os.dup2(writing, 1)
        os.close(writing)
        os.close(reading)
        os.execve(sys.executable, [sys.executable, "-c", program], {**os.environ, signerwire.VARIABLE: request})  # noqa: S606  as a client does
    os.close(writing)
    ended: list[int] = []

    def has_ended() -> bool:
        process, status = os.waitpid(child, os.WNOHANG)
        ended.extend([os.waitstatus_to_exitcode(status)] if process else [])
        return bool(ended)

    def echoes() -> bool:
        return bool(termios.tcgetattr(terminal)[3] & termios.ECHO)

    try:
        eventually(lambda: not echoes(), "nobody asked")
        os.close(reading)
        eventually(has_ended, "the signer goes on")
        assert echoes()
        assert ended == [130]
    finally:
        if not ended:
            os.kill(child, signal.SIGKILL)
            os.waitpid(child, 0)
        os.close(terminal)


def test_an_answer_is_an_answer_however_soon_the_client_goes():
    """The client closes its end at the end of the document, while the signer is about to end by itself."""
    program = (
        "import atexit, time\n"
        "from kubeauthn.plugin import signer\n"
        "class Author:\n"
        "    def certificate(self): ...\n"
        "    def sign(self, digest, algorithm): return b'signed'\n"
        "atexit.register(time.sleep, 0.2)\n"
        "signer.run(Author())\n"
    )
    request = signerwire.encode_sign_request({}, bytes(32), EC)
    for _ in range(5):
        with subprocess.Popen(
            [sys.executable, "-c", program],
            env={**os.environ, signerwire.VARIABLE: request},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        ) as signer:
            assert signer.stdout is not None
            assert signer.stderr is not None
            line = signer.stdout.readline()
            signer.stdout.close()
            assert signerwire.decode_sign_reply(line) == b"signed"
            assert (signer.stderr.read(), signer.wait(30)) == (b"", 0)
