"""Our calls into PKCS#11 modules: a second opinion, and what several keys and threads do to one."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from kubeauthn.errors import KeyStoreError
from kubeauthn.plugins import cryptoki_table as ck
from kubeauthn.plugins.pkcs11_module import load_module
from tests.integration import signer_process, softhsm
from tests.integration.softhsm import MODULE, PIN, SPY, SoftHsm
from tests.integration.test_signer_pkcs11 import EC

token = pytest.mark.needs("softhsm2-util", "pkcs11-tool")


@pytest.fixture(scope="module")
def hsm(tmp_path_factory: pytest.TempPathFactory) -> SoftHsm:
    return softhsm.filled(tmp_path_factory.mktemp("softhsm"))


def test_the_numbers_are_those_of_another_binding():
    pkcs11 = pytest.importorskip("pkcs11")
    for name in ("CLASS", "TOKEN", "LABEL", "VALUE", "CERTIFICATE_TYPE", "ISSUER", "KEY_TYPE", "SUBJECT", "ID"):
        assert getattr(ck, name) == pkcs11.Attribute[name], name
    for name in ("MODULUS", "PUBLIC_EXPONENT", "EC_PARAMS", "EC_POINT", "ALWAYS_AUTHENTICATE"):
        assert getattr(ck, name) == pkcs11.Attribute[name], name
    for name in ("CERTIFICATE", "PUBLIC_KEY", "PRIVATE_KEY"):
        assert getattr(ck, name) == pkcs11.ObjectClass[name], name
    for name in ("RSA_PKCS", "RSA_PKCS_PSS", "ECDSA", "EDDSA"):
        assert getattr(ck, name) == pkcs11.Mechanism[name], name
    for name in ("LOGIN_REQUIRED", "PROTECTED_AUTHENTICATION_PATH", "TOKEN_INITIALIZED"):
        assert getattr(ck, name) == pkcs11.TokenFlag[name], name
    for name in ("USER_PIN_COUNT_LOW", "USER_PIN_FINAL_TRY", "USER_PIN_LOCKED"):
        assert getattr(ck, name) == pkcs11.TokenFlag[name], name
    for number, name in ck.KEY_TYPES.items():
        assert pkcs11.KeyType(number).name == name
    for name, (hash_number, mask) in ck.PSS_HASHES.items():
        assert (pkcs11.Mechanism[name.upper()], pkcs11.MGF[name.upper()]) == (hash_number, mask)
    assert ck.X_509 == pkcs11.CertificateType.X_509


OURS = """
import json, sys
from kubeauthn.plugins import cryptoki_table as ck
from kubeauthn.plugins.cryptoki import Module
module = Module(sys.argv[1])
seen = []
for slot in module.slots():
    token, objects = module.token(slot), []
    if token.flags & ck.TOKEN_INITIALIZED:
        session = module.open(slot)
        session.log_in(sys.argv[2])
        objects = sorted(
            [session.number(item, ck.CLASS), session.value(item, ck.ID).hex(), session.text(item, ck.LABEL)]
            for item in session.find({})
        )
        session.close()
    seen.append([slot, token.label, token.serial, token.flags, objects])
print(json.dumps([module.description(), seen]))
"""
THEIRS = """
import json, sys, pkcs11
from pkcs11 import Attribute
library = pkcs11.lib(sys.argv[1])
seen = []
for slot in library.get_slots():
    token, objects = slot.get_token(), []
    if token.flags & pkcs11.TokenFlag.TOKEN_INITIALIZED:
        with token.open(user_pin=sys.argv[2]) as session:
            objects = sorted(
                [int(item[Attribute.CLASS]), item[Attribute.ID].hex(), item[Attribute.LABEL]]
                for item in session.get_objects()
            )
    seen.append([slot.slot_id, token.label, token.serial.decode().strip(), int(token.flags), objects])
print(json.dumps([library.library_description.strip(), seen]))
"""


@token
def test_another_binding_sees_the_same(hsm: SoftHsm):
    pytest.importorskip("pkcs11")
    ours, theirs = (seen_by(program, hsm) for program in (OURS, THEIRS))
    assert ours == theirs
    assert len(ours[1][0][4]) == 15  # of each of five keys: private, public, certificate


def seen_by(program: str, hsm: SoftHsm, *more: str) -> Any:
    argv = [sys.executable, "-c", program, MODULE, PIN, *more]
    done = subprocess.run(argv, env=hsm.environ, capture_output=True, text=True, timeout=50)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@token
def test_one_login_one_signature_and_the_module_is_left_in_order(hsm: SoftHsm, tmp_path: Path):
    """OpenSC's spy stands between and writes down every call."""
    log = tmp_path / "spy.log"
    environ = {**hsm.environ, "PKCS11SPY": MODULE, "PKCS11SPY_OUTPUT": str(log)}
    result = signer_process.sign("pkcs11", hsm.configuration(pin=PIN) | {"pathLib": SPY}, EC, environ)
    assert result.returncode == 0, result.stderr
    calls = [line.partition(": ")[2] for line in log.read_text().splitlines() if ": C_" in line]
    assert [calls.count(name) for name in ("C_Initialize", "C_Login", "C_Sign", "C_Finalize")] == [1, 1, 1, 1]
    assert calls[-1] == "C_Finalize"
    assert calls.count("C_GetSlotList") == 2  # how many, which makes a module look for new readers; and which
    assert calls.count("C_FindObjectsInit") == calls.count("C_FindObjectsFinal")


def test_a_library_that_is_no_module():
    import _ctypes

    with pytest.raises(KeyStoreError, match=r"cannot be loaded: it has no C_GetFunctionList: not a PKCS#11 module"):
        load_module(_ctypes.__file__)


TWO_KEYS = """
import json, sys, time
from kubeauthn._core.signerwire import SigningAlgorithm
from kubeauthn._secret import Secret
from kubeauthn.errors import KubeauthnError
from kubeauthn.plugin.signer import Configuration
from kubeauthn.plugins.agent.keeper import KeptKey
from kubeauthn.plugins.signer_pkcs11 import Pkcs11Signer
clock = [0.0]
def kept(object_id):
    place = Configuration(pathLib=sys.argv[1], slotId=sys.argv[3], objectId=object_id)
    return KeptKey("pkcs11", place, Pkcs11Signer, seconds=600, clock=lambda: clock[0])
def sign(key, pin, algorithm):
    try:
        return bool(key.sign(bytes(32) if algorithm.key_kind == "ec" else bytes(48), algorithm, pin and Secret(pin)))
    except KubeauthnError as error:
        return str(error)
first, second = kept("2"), kept("3")
p256, p384 = SigningAlgorithm("ec", hash="sha256"), SigningAlgorithm("", padding="pkcs1", hash="sha384")
said = [sign(first, sys.argv[2], p256)]
said.append(sign(second, None, p384))              # the token is open, but not for this key
said.append(sign(second, "00000000", p384))        # and a wrong PIN is one
said.append(sign(second, sys.argv[2], p384))
said.append(sign(first, None, p256))
clock[0] = 599.0
said.append(sign(second, sys.argv[2], p384))       # typed again: longer than the first one's
clock[0] = 601.0
first.expire()                                     # which logs out, for the whole process
said.append(sign(second, None, p384))
said.append(sign(first, None, p256))
print(json.dumps(said))
"""


@token
def test_two_keys_of_one_token_each_have_their_own_pin_and_time(hsm: SoftHsm):
    asked = "PIN of the token 'desk'"
    said = seen_by(TWO_KEYS, hsm, hsm.slot)
    assert said[:2] == [True, asked]
    assert said[2] == "the PIN of the token 'desk' is wrong"
    assert said[3:7] == [True, True, True, True]
    assert said[7].startswith(asked)


THREADS = """
import json, sys, threading
from kubeauthn.errors import KubeauthnError
from kubeauthn.plugins import cryptoki_table as ck
from kubeauthn.plugins.cryptoki import Module
module = Module(sys.argv[1])
slot = int(sys.argv[3])
made, failed = [], set()
done = threading.Event()
def work():
    while not done.is_set():
        try:
            session = module.open(slot)
            session.log_in(sys.argv[2])
            (key,) = session.find({ck.CLASS: ck.PRIVATE_KEY, ck.ID: b"\\2"}) or [0]
            made.append(len(session.sign(key, bytes(32), ck.ECDSA)))
        except KubeauthnError as error:
            failed.add(str(error))
workers = [threading.Thread(target=work) for _ in range(4)]
for worker in workers:
    worker.start()
for _ in range(60):
    while len(made) < 2:
        done.wait(0.001)
    made.clear()
    module.reinitialize()
done.set()
for worker in workers:
    worker.join()
print(json.dumps(sorted(failed)))
"""


@token
def test_a_module_that_is_begun_anew_while_other_threads_call_it(hsm: SoftHsm):
    """What they were doing fails by name; nothing crashes, and it goes on."""
    names = {name.removeprefix("CKR_") for name in seen_by(THREADS, hsm, hsm.slot)}
    assert names <= set(ck.RESULTS.values())
    assert "CRYPTOKI_ALREADY_INITIALIZED" not in names


AT_ONCE = """
import collections, json, sys, threading, time
from kubeauthn._core.signerwire import SigningAlgorithm
from kubeauthn._secret import Secret
from kubeauthn.errors import KubeauthnError
from kubeauthn.plugin.signer import Configuration
from kubeauthn.plugins.agent.keeper import KeptKey
from kubeauthn.plugins.signer_pkcs11 import Pkcs11Signer
said = collections.Counter()
def work(object_id, size, algorithm):
    place = Configuration(pathLib=sys.argv[1], slotId=sys.argv[3], objectId=object_id)
    key = KeptKey("pkcs11", place, Pkcs11Signer, seconds=600, clock=time.monotonic)
    for turn in range(40):
        typed = Secret(sys.argv[2]) if turn % 5 == 0 else None  # which ends a login, and begins one
        try:
            said["made" if key.sign(bytes(size), algorithm, typed) else "empty"] += 1
        except KubeauthnError as error:
            said[str(error)] += 1
keys = [
    ("2", 32, SigningAlgorithm("ec", hash="sha256")),
    ("3", 48, SigningAlgorithm("", padding="pkcs1", hash="sha384")),
]
workers = [threading.Thread(target=work, args=key) for key in keys]
for worker in workers:
    worker.start()
for worker in workers:
    worker.join()
print(json.dumps(said))
"""


@token
def test_two_keys_of_one_token_sign_at_the_same_time(hsm: SoftHsm):
    """A login is the process's: what one key does to it must not hit the other in the middle. It crashed."""
    for _ in range(2):
        assert seen_by(AT_ONCE, hsm, hsm.slot) == {"made": 80}


@token
def test_a_key_that_wants_the_pin_with_every_signature(tmp_path: Path):
    """As a PIV card's slot 9c does: the PIN is given once more, between the beginning of a signature and its end."""
    hsm = SoftHsm(tmp_path)
    how = ("--key-type", "EC:prime256v1", "--id", "09", "--label", "nine", "--always-auth")
    hsm.tool("--login", "--pin", PIN, "--keypairgen", *how)
    hsm.install("09", softhsm.client_certificate(hsm.public_key("09")))
    log = tmp_path / "spy.log"
    environ = {**hsm.environ, "PKCS11SPY": MODULE, "PKCS11SPY_OUTPUT": str(log)}
    entry = hsm.configuration("9", pin=PIN) | {"pathLib": SPY}
    signer_process.check(
        signer_process.certificate("pkcs11", entry, hsm.environ | {"PKCS11SPY": MODULE}),
        signer_process.sign("pkcs11", entry, EC, environ),
        EC,
    )
    lines = log.read_text().splitlines()
    steps = [line.partition(": ")[2] or line.rpartition(" ")[2] for line in lines if ": C_" in line or "CKU_" in line]
    at = steps.index("C_SignInit")
    assert steps[at : at + 4] == ["C_SignInit", "C_Login", "CKU_CONTEXT_SPECIFIC", "C_Sign"]
