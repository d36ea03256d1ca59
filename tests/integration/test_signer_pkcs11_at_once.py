"""Several PKCS#11 signers at once on one token, as handshakes in parallel start them."""

from __future__ import annotations

import errno
import fcntl
import hashlib
import os
import shutil
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from kubeauthn._core import signerwire
from kubeauthn._core.signerwire import SigningAlgorithm
from kubeauthn.errors import KeyStoreAbsent, KeyStoreError, NotSigned, PinRefused
from kubeauthn.plugins.cryptoki import CryptokiError
from kubeauthn.plugins.module_turn import module_turn
from kubeauthn.plugins.pkcs11_module import in_words
from tests.integration.softhsm import MODULE, PIN, SoftHsm

pytestmark = pytest.mark.needs("softhsm2-util", "pkcs11-tool")
PROGRAM = "from kubeauthn.plugins.signer_pkcs11 import main; main()"


@pytest.fixture
def hsm(tmp_path: Path) -> SoftHsm:
    hsm = SoftHsm(tmp_path / "token")
    hsm.make_key("02", "EC:prime256v1")
    return hsm


def started(hsm: SoftHsm, **more: str) -> subprocess.Popen[bytes]:
    configuration = hsm.configuration(pin=PIN) | more
    digest = hashlib.sha256(b"a handshake").digest()
    request = signerwire.encode_sign_request(configuration, digest, SigningAlgorithm("ec", hash="sha256"))
    return subprocess.Popen(
        [sys.executable, "-c", PROGRAM],
        env={**hsm.environ, signerwire.VARIABLE: request},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )


def ending(process: subprocess.Popen[bytes]) -> str:
    """What went wrong, or nothing."""
    with process:
        output, errors = process.communicate(timeout=60)
    if process.returncode == 0 and signerwire.decode_sign_reply(output):
        return ""
    return f"{process.returncode}: {errors.decode()}"


def test_none_is_disturbed_by_the_login_of_another(hsm: SoftHsm):
    """About one in ten was: no token, an unclear error, or even a refused PIN."""
    for _ in range(8):
        assert [ending(process) for process in [started(hsm) for _ in range(6)]] == [""] * 6


def test_a_signer_waits_for_its_turn_and_not_for_ever(hsm: SoftHsm, tmp_path: Path):
    own = tmp_path / "module.so"  # no other test is to wait for it
    shutil.copy(MODULE, own)
    own.chmod(0o755)
    descriptor = os.open(own, os.O_RDONLY)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        begun = time.monotonic()
        process = started(hsm, pathLib=str(own))
        assert ending(process) == ""  # though nobody let go of the lock
        # Whoever can read the module can hold the lock: a signature is not late by more than one wait in vain.
        assert 2 < time.monotonic() - begun < 2 * 2
        fcntl.flock(descriptor, fcntl.LOCK_SH)  # one who looks for a token is not in the way of others who do
        configuration = hsm.configuration() | {"pathLib": str(own)}
        program = (
            "import sys, time\n"
            "from kubeauthn.plugin.signer import Configuration\n"
            "from kubeauthn.plugins.signer_pkcs11 import Pkcs11Signer\n"
            "begun = time.monotonic()\n"
            f"Pkcs11Signer(Configuration({configuration!r})).public_key()\n"
            "print(time.monotonic() - begun)\n"
        )
        said = subprocess.run([sys.executable, "-c", program], env=hsm.environ, capture_output=True, timeout=60)
        assert float(said.stdout) < 2, said.stderr.decode()
    finally:
        os.close(descriptor)


@pytest.mark.parametrize("code", [errno.ENOLCK, errno.EOPNOTSUPP, errno.EBADF])
def test_where_there_are_no_such_locks_nothing_is_waited_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, code: int
):
    """Some file systems have none, and NFS wants the file open for writing."""

    def refused(descriptor: int, how: int) -> None:
        raise OSError(code, os.strerror(code))

    monkeypatch.setattr(fcntl, "flock", refused)  # such a file system cannot be had in a test
    own = tmp_path / "module.so"
    own.touch()
    begun = time.monotonic()
    with module_turn(str(own)), module_turn(str(own), alone=True):
        assert time.monotonic() - begun < 1


def test_a_turn_is_waited_for_again_once_the_lock_was_free(tmp_path: Path):
    own = tmp_path / "module.so"
    own.touch()
    descriptor = os.open(own, os.O_RDONLY)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        begun = time.monotonic()
        threading.Timer(0.3, lambda: fcntl.flock(descriptor, fcntl.LOCK_UN)).start()
        with module_turn(str(own), alone=True):
            assert time.monotonic() - begun > 0.2
            with pytest.raises(BlockingIOError):  # it is ours now
                fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
    finally:
        os.close(descriptor)


@pytest.mark.parametrize("code", [0x05, 0x06, 0x30])
def test_what_is_unclear_before_the_login_may_pass(code: int):
    """Exit code 75, so that a client with a stored PIN asks again."""
    with pytest.raises(KeyStoreAbsent), in_words("looking for the token", before_login=True):
        raise CryptokiError(code)
    with pytest.raises(KeyStoreError, match="signing failed" if code != 0x30 else "pulled out"), in_words("signing"):
        raise CryptokiError(code)


@pytest.mark.parametrize("code", [0x05, 0x06, 0x30])
def test_what_is_unclear_counts_as_a_wrong_pin_where_a_pin_was_brought_and_nowhere_else(code: int):
    """Some keys want the PIN with every signature, so that signing may fail at a login, too."""
    at_login = CryptokiError(code)
    at_login.at_login = True
    with pytest.raises(PinRefused, match="is not said"), in_words("signing", open_to_us=True):
        raise at_login
    with pytest.raises(NotSigned if code != 0x30 else KeyStoreAbsent), in_words("signing", open_to_us=True):
        raise CryptokiError(code)
