"""kubeauthn-signer-pkcs11 with a real token: SoftHSM2, keys made inside it and not extractable."""

from __future__ import annotations

import os
import pty
import select
import shutil
import subprocess
import time
from pathlib import Path

import pytest

from kubeauthn._core import signerwire
from kubeauthn._core.signerwire import SigningAlgorithm
from tests.integration import signer_process, softhsm
from tests.integration.softhsm import MODULE, PIN, SPY, SoftHsm

pytestmark = pytest.mark.needs("softhsm2-util", "pkcs11-tool")

EC = SigningAlgorithm("ec", hash="sha256")
ALGORITHMS = [
    ("1", SigningAlgorithm("rsa", padding="pss", hash="sha256", salt=32)),
    ("1", SigningAlgorithm("rsa", padding="pss", hash="sha384", salt=48)),
    ("1", SigningAlgorithm("rsa", padding="pss", hash="sha512", salt=64)),
    ("1", SigningAlgorithm("rsa", padding="pkcs1", hash="sha256")),
    ("1", SigningAlgorithm("rsa", padding="pkcs1", hash="sha512")),
    ("2", EC),
    ("3", SigningAlgorithm("ec", hash="sha384")),
    ("4", SigningAlgorithm("ed25519")),
    ("5", SigningAlgorithm("ec", hash="sha512")),
]


@pytest.fixture(scope="module")
def hsm(tmp_path_factory: pytest.TempPathFactory) -> SoftHsm:
    return softhsm.filled(tmp_path_factory.mktemp("softhsm"))


def said(result: subprocess.CompletedProcess[bytes], code: int = 1) -> str:
    assert result.returncode in ((1, signerwire.NOT_THE_PIN_EXIT) if code == 1 else (code,))
    assert result.stdout == b""
    text = result.stderr.decode()
    assert PIN not in text
    assert "Traceback" not in text
    return text


@pytest.mark.parametrize(("object_id", "algorithm"), ALGORITHMS, ids=lambda value: str(value))
def test_every_algorithm_verifies_against_the_certificate(hsm: SoftHsm, object_id: str, algorithm: SigningAlgorithm):
    configuration = hsm.configuration(object_id, pin=PIN)
    leaf = signer_process.certificate("pkcs11", configuration, hsm.environ)
    signer_process.check(leaf, signer_process.sign("pkcs11", configuration, algorithm, hsm.environ), algorithm)


def test_the_keys_cannot_be_taken_out(hsm: SoftHsm):
    listing = hsm.tool("--login", "--pin", PIN, "--list-objects", "--type", "privkey")
    assert listing.count("never extractable") == len(softhsm.KEYS)


@pytest.mark.parametrize("object_id", ["2", "0x02", "02", "key-02"])
def test_an_object_is_named_by_a_byte_hexadecimal_or_label(hsm: SoftHsm, object_id: str):
    expected = signer_process.certificate("pkcs11", hsm.configuration("2"), hsm.environ)
    assert signer_process.certificate("pkcs11", hsm.configuration(object_id), hsm.environ) == expected


@pytest.mark.parametrize(
    "configuration",
    [
        {"pathLib": MODULE, "tokenLabel": "desk", "objectId": "2"},
        {"uri": f"pkcs11:token=desk;id=%02;type=private?module-path={MODULE}"},
        {"uri": f"pkcs11:token=desk;object=key-02?module-path={MODULE}&pin-value={PIN}"},
        {"uri": f"pkcs11:token=desk;id=%02?module-path={MODULE}&pin-source=file:/pin", "pinSource": "prompt"},
    ],
    ids=["label", "uri", "uri with a label", "uri with a source that is not used"],
)
def test_a_token_is_named_by_label_or_uri(hsm: SoftHsm, configuration: dict[str, str]):
    leaf = signer_process.certificate("pkcs11", configuration, hsm.environ)
    more = {} if "pin-value" in configuration.get("uri", "") else {"pin": PIN}
    signer_process.check(leaf, signer_process.sign("pkcs11", configuration | more, EC, hsm.environ), EC)


def test_every_missing_key_is_named_at_once(hsm: SoftHsm):
    text = said(signer_process.ask("pkcs11", signerwire.encode_certificate_request({"pathExec": "x"}), hsm.environ))
    assert "lacks pathLib, slotId, objectId" in text
    configuration = hsm.configuration()
    for name in ("pathLib", "slotId", "objectId"):
        rest = {key: value for key, value in configuration.items() if key != name}
        assert f"lacks {name}\n" in said(
            signer_process.ask("pkcs11", signerwire.encode_certificate_request(rest), hsm.environ)
        )


@pytest.mark.parametrize(
    ("change", "part"),
    [
        ({"slotId": "77"}, "slotId: there is no slot 77"),
        ({"slotId": "first"}, "slotId must be a decimal number"),
        ({"objectId": "9"}, "objectId: the token 'desk' has no certificate"),
        ({"pathLib": "/nonexistent/module.so"}, "pathLib: /nonexistent/module.so: no such file"),
        ({"pathLib": "module.so"}, "pathLib must be an absolute path"),
        ({"pathLib": "/etc/hostname"}, "is not a shared library"),
        ({"uri": "pkcs11:bogus=1"}, "a token URI has an attribute that is not known: bogus"),
        ({"uri": "pkcs11:token=desk?pin-source=file:/pin"}, "uri: its pin-source is not read"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_a_fault_names_its_part(hsm: SoftHsm, change: dict[str, str], part: str):
    request = signerwire.encode_certificate_request(hsm.configuration(**change) | change)
    assert part in said(signer_process.ask("pkcs11", request, hsm.environ))


def test_a_module_for_another_architecture(hsm: SoftHsm, tmp_path: Path):
    content = bytearray(Path(MODULE).read_bytes())
    content[18:20] = (243).to_bytes(2, "little")
    other = tmp_path / "riscv.so"
    other.write_bytes(content)
    request = signerwire.encode_certificate_request(hsm.configuration() | {"pathLib": str(other)})
    assert "is for another architecture: riscv64" in said(signer_process.ask("pkcs11", request, hsm.environ))


def test_a_module_that_others_can_change_is_not_loaded(hsm: SoftHsm, tmp_path: Path):
    folder = tmp_path / "open"
    folder.mkdir()
    shutil.copy(MODULE, folder / "module.so")
    folder.chmod(0o777)
    request = signerwire.encode_certificate_request(hsm.configuration() | {"pathLib": str(folder / "module.so")})
    assert "can be changed by other users" in said(signer_process.ask("pkcs11", request, hsm.environ))


@pytest.mark.skipif(os.getuid() != 0, reason="only root can give a file to another group")
def test_a_module_that_a_group_can_change_is_not_loaded_unless_nobody_is_in_it(hsm: SoftHsm, tmp_path: Path):
    folder = tmp_path / "shared"
    folder.mkdir()
    shutil.copy(MODULE, folder / "module.so")
    folder.chmod(0o775)
    request = signerwire.encode_certificate_request(hsm.configuration() | {"pathLib": str(folder / "module.so")})
    assert signer_process.ask("pkcs11", request, hsm.environ).returncode == 0  # root's own group
    os.chown(folder, 0, 61234)  # a group of which nothing is known
    assert f"{folder} can be changed by other users" in said(signer_process.ask("pkcs11", request, hsm.environ))
    folder.chmod(0o755)
    assert signer_process.ask("pkcs11", request, hsm.environ).returncode == 0


def test_a_wrong_pin_is_tried_once(hsm: SoftHsm, tmp_path: Path):
    """OpenSC's spy stands between and counts the logins."""
    log = tmp_path / "spy.log"
    environ = {**hsm.environ, "PKCS11SPY": MODULE, "PKCS11SPY_OUTPUT": str(log)}
    configuration = hsm.configuration(pin="00000000") | {"pathLib": SPY}
    text = said(signer_process.sign("pkcs11", configuration, EC, environ), signerwire.PIN_REFUSED_EXIT)
    assert "the PIN of the token 'desk' is wrong" in text
    assert "00000000" not in text.replace(PIN, "")
    assert log.read_text().count(": C_Login\n") == 1
    # The token has counted it. What is stored stays wrong: it is not given a second time, however often one asks.
    for again in (hsm.configuration(pin="00000000"), hsm.configuration(pinSource="keyring:kubeauthn/desk")):
        text = said(signer_process.sign("pkcs11", again | {"pathLib": SPY}, EC, environ))
        assert "PIN of the token 'desk': the last one was wrong, and a stored one is not tried again" in text
    assert log.read_text().count(": C_Login\n") == 1
    hsm.tool("--login", "--pin", PIN, "--list-objects")
    assert signer_process.sign("pkcs11", hsm.configuration(pin=PIN), EC, hsm.environ).returncode == 0


def test_a_pin_in_the_kubeconfig_is_warned_of(hsm: SoftHsm):
    result = signer_process.sign("pkcs11", hsm.configuration(pin=PIN), EC, hsm.environ)
    assert result.returncode == 0
    assert b"the kubeconfig holds a PIN" in result.stderr
    assert b"pinSource: keyring:kubeauthn/NAME" in result.stderr
    assert PIN.encode() not in result.stderr


def test_no_pin_no_terminal(hsm: SoftHsm):
    text = said(signer_process.sign("pkcs11", hsm.configuration(), EC, hsm.environ))
    assert "no terminal to ask for PIN of the token 'desk'" in text


def test_the_pin_from_a_file_descriptor(hsm: SoftHsm):
    reading, writing = os.pipe()
    os.write(writing, f"{PIN}\n".encode())
    os.close(writing)
    configuration = hsm.configuration(pinSource=f"fd:{reading}")
    leaf = signer_process.certificate("pkcs11", configuration, hsm.environ)
    result = signer_process.sign("pkcs11", configuration, EC, hsm.environ, pass_fds=(reading,))
    os.close(reading)
    signer_process.check(leaf, result, EC)


def test_the_pin_from_a_keyring(hsm: SoftHsm, tmp_path: Path):
    (tmp_path / "shelf.py").write_text(
        "from keyring.backend import KeyringBackend\n"
        "class Shelf(KeyringBackend):\n"
        "    priority = 9\n"
        "    def get_password(self, service, name):\n"
        f"        return {PIN!r} if (service, name) == ('kubeauthn', 'desk') else None\n"
        "    def set_password(self, service, name, password): ...\n"
    )
    environ = {**hsm.environ, "PYTHONPATH": str(tmp_path), "PYTHON_KEYRING_BACKEND": "shelf.Shelf"}
    configuration = hsm.configuration(pinSource="keyring:kubeauthn/desk")
    leaf = signer_process.certificate("pkcs11", configuration, environ)
    signer_process.check(leaf, signer_process.sign("pkcs11", configuration, EC, environ), EC)
    other = hsm.configuration(pinSource="keyring:kubeauthn/other")
    assert "the keyring has nothing under kubeauthn/other" in said(signer_process.sign("pkcs11", other, EC, environ))
    # A kubeconfig from anywhere does not get the passwords of other programs.
    greedy = hsm.configuration(pinSource="keyring:mail/jane")
    text = said(signer_process.sign("pkcs11", greedy, EC, environ))
    assert "only the secrets under kubeauthn are given to a signer" in text


def read_until(terminal: int, wanted: bytes, seconds: float = 30) -> bytes:
    shown, deadline = b"", time.monotonic() + seconds
    while wanted not in shown and time.monotonic() < deadline:
        if select.select([terminal], [], [], 0.2)[0]:
            try:
                shown += os.read(terminal, 4096)
            except OSError:
                time.sleep(0.05)  # nobody has the terminal open yet, or any more
    return shown


def test_the_pin_is_asked_for_on_the_terminal(hsm: SoftHsm):
    """Standard input, output and error are not the terminal: /dev/tty is."""
    import hashlib

    request = signerwire.encode_sign_request(hsm.configuration(), hashlib.sha256(b"hello").digest(), EC)
    reading, writing = os.pipe()
    child, terminal = pty.fork()
    if child == 0:
        os.dup2(writing, 1)
        null = os.open(os.devnull, os.O_RDWR)
        os.dup2(null, 0)
        os.dup2(null, 2)
        argv = signer_process.command("pkcs11")
        os.execvpe(argv[0], argv, {**hsm.environ, signerwire.VARIABLE: request})  # noqa: S606  as a client does
    os.close(writing)
    try:
        shown = read_until(terminal, b": ")
        assert b"PIN of the token 'desk': " in shown
        os.write(terminal, f"{PIN}\n".encode())
        with os.fdopen(reading, "rb") as stdout:
            reply = stdout.read()
        rest = read_until(terminal, b"never", seconds=0.5)
        assert PIN.encode() not in shown + rest
        signerwire.decode_sign_reply(reply)
    finally:
        os.close(terminal)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


def test_an_absent_token(hsm: SoftHsm, tmp_path: Path):
    conf = tmp_path / "empty.conf"
    (tmp_path / "tokens").mkdir()
    conf.write_text(f"directories.tokendir = {tmp_path / 'tokens'}\n")
    request = signerwire.encode_certificate_request(hsm.configuration())
    environ = {**hsm.environ, "SOFTHSM2_CONF": str(conf)}
    assert f"there is no slot {hsm.slot}" in said(signer_process.ask("pkcs11", request, environ))
    label = {"pathLib": MODULE, "tokenLabel": "desk", "objectId": "2"}
    text = said(signer_process.ask("pkcs11", signerwire.encode_certificate_request(label), environ))
    assert "no token: token desk is empty or not there" in text


def test_a_token_of_another_label_names_those_that_are_there(hsm: SoftHsm):
    label = {"pathLib": MODULE, "tokenLabel": "dsek", "objectId": "2"}
    text = said(signer_process.ask("pkcs11", signerwire.encode_certificate_request(label), hsm.environ))
    assert "insert the token and try again; what is there is called 'desk'" in text


def test_a_grandchild_sees_no_request(hsm: SoftHsm):
    """The request is out of the environment, and out of what the system shows of it, before anything else runs."""
    program = (
        "import subprocess\n"
        "from kubeauthn.plugin import signer\n"
        "class Curious:\n"
        "    def certificate(self):\n"
        "        seen = subprocess.run(['sh', '-c', 'env; cat /proc/$PPID/environ'], capture_output=True).stdout\n"
        "        raise SystemExit('seen' if b'92736451' in seen or not b'PATH=' in seen else 'clean')\n"
        "    def sign(self, digest, algorithm): ...\n"
        "signer.run(Curious())\n"
    )
    request = signerwire.encode_certificate_request(hsm.configuration(pin=PIN))
    argv = [signer_process.command("pkcs11")[0], "-c", program]
    result = subprocess.run(argv, env={**hsm.environ, signerwire.VARIABLE: request}, capture_output=True, timeout=50)
    assert result.returncode == 1
    assert result.stderr.decode().endswith("error: clean\n")


@pytest.mark.parametrize(
    ("code", "text"),
    [
        (0xA4, "the PIN of the token 'desk' is locked"),
        (0xA0, "the PIN of the token 'desk' is wrong"),
        (0xA3, "has expired: set a new one"),
        (0x102, "has no PIN yet"),
        (0x32, "was pulled out, or is not there: signing (CKR_DEVICE_REMOVED)"),
        (0x70, "does not offer the mechanism"),
        (0x200, "was not allowed, or not touched in time"),
        (0x05, "signing failed: CKR_GENERAL_ERROR"),
        (0x80000001, "signing failed: CKR_0x80000001"),
    ],
    ids=lambda value: hex(value) if isinstance(value, int) else "",
)
def test_what_the_module_says_in_words(code: int, text: str):
    from kubeauthn.errors import KeyStoreError
    from kubeauthn.plugins.cryptoki import CryptokiError
    from kubeauthn.plugins.pkcs11_module import in_words

    with pytest.raises(KeyStoreError) as caught, in_words("signing", "the token 'desk'"):
        raise CryptokiError(code)
    assert text in str(caught.value)
    assert caught.value.__cause__ is None


def test_pulled_out_in_the_middle(hsm: SoftHsm):
    """Between the certificate and the signature the token's directory goes away; then it comes back."""
    configuration = hsm.configuration(pin=PIN)
    leaf = signer_process.certificate("pkcs11", configuration, hsm.environ)
    away = hsm.folder / "away"
    hsm.tokens.rename(away)
    try:
        result = signer_process.sign("pkcs11", configuration, EC, hsm.environ)
    finally:
        away.rename(hsm.tokens)
    assert "pathLib" in said(result) or "slot" in said(result)
    signer_process.check(leaf, signer_process.sign("pkcs11", configuration, EC, hsm.environ), EC)


def test_a_missing_extra_is_named(hsm: SoftHsm):
    program = "import sys; sys.modules['keyring'] = None\nfrom kubeauthn.plugins.signer_pkcs11 import main; main()\n"
    configuration = hsm.configuration(pinSource="keyring:kubeauthn/b")
    request = signerwire.encode_sign_request(configuration, b"\0" * 32, EC)
    argv = [signer_process.command("pkcs11")[0], "-c", program]
    result = subprocess.run(argv, env={**hsm.environ, signerwire.VARIABLE: request}, capture_output=True, timeout=50)
    assert "is not installed: pip install 'kubeauthn[keyring]'" in said(result)
