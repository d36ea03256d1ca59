"""kubeauthn-signer-file: an encrypted key in a process of its own."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa
from cryptography.hazmat.primitives.serialization import BestAvailableEncryption, Encoding, NoEncryption, PrivateFormat

from kubeauthn._core.signerwire import NOT_THE_PIN_EXIT, PIN_REFUSED_EXIT, SigningAlgorithm
from tests.integration import signer_process
from tests.integration.softhsm import client_certificate

PASSPHRASE = "tr0ub4dor"
EC = SigningAlgorithm("ec", hash="sha256")


def entry(folder: Path, key: object = None, *, encrypted: bool = True, **more: str) -> dict[str, str]:
    key = key or ec.generate_private_key(ec.SECP256R1())
    lock = BestAvailableEncryption(PASSPHRASE.encode()) if encrypted else NoEncryption()
    (folder / "key.pem").write_bytes(key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, lock))
    (folder / "key.pem").chmod(0o600)
    (folder / "cert.pem").write_bytes(client_certificate(key.public_key()).public_bytes(Encoding.PEM))
    return {"pathKey": str(folder / "key.pem"), "pathCert": str(folder / "cert.pem"), "pin": PASSPHRASE, **more}


@pytest.mark.parametrize(
    ("key", "algorithm"),
    [
        (rsa.generate_private_key(65537, 2048), SigningAlgorithm("rsa", padding="pss", hash="sha256", salt=32)),
        (rsa.generate_private_key(65537, 2048), SigningAlgorithm("rsa", padding="pkcs1", hash="sha512")),
        (ec.generate_private_key(ec.SECP521R1()), SigningAlgorithm("ec", hash="sha512")),
        (ed25519.Ed25519PrivateKey.generate(), SigningAlgorithm("ed25519")),
    ],
    ids=["pss", "pkcs1", "p521", "ed25519"],
)
def test_every_kind_of_key(tmp_path: Path, key: object, algorithm: SigningAlgorithm):
    configuration = entry(tmp_path, key)
    leaf = signer_process.certificate("file", configuration)
    result = signer_process.sign("file", configuration, algorithm)
    signer_process.check(leaf, result, algorithm)
    assert PASSPHRASE.encode() not in result.stderr


def refused(configuration: dict[str, str], code: int = 1) -> str:
    result = signer_process.sign("file", configuration, EC)
    assert result.returncode in ((1, NOT_THE_PIN_EXIT) if code == 1 else (code,))
    assert result.stdout == b""
    assert PASSPHRASE not in result.stderr.decode()
    return result.stderr.decode()


def test_a_wrong_passphrase(tmp_path: Path):
    assert "the passphrase is wrong" in refused(entry(tmp_path) | {"pin": "guess"}, PIN_REFUSED_EXIT)


def test_a_key_that_others_can_read(tmp_path: Path):
    configuration = entry(tmp_path)
    (tmp_path / "key.pem").chmod(0o640)
    assert "has mode 0640: others can read it" in refused(configuration)


def test_a_key_that_is_not_encrypted_only_on_request(tmp_path: Path):
    configuration = entry(tmp_path, encrypted=False)
    assert "is not encrypted" in refused(configuration)
    assert signer_process.sign("file", configuration | {"allowPlainKey": "true"}, EC).returncode == 0


def test_faults_name_their_part(tmp_path: Path):
    assert "lacks pathKey, pathCert" in refused({})
    configuration = entry(tmp_path)
    assert "pathKey: /nonexistent: no such file" in refused(configuration | {"pathKey": "/nonexistent"})
    (tmp_path / "pipe").unlink(missing_ok=True)
    os.mkfifo(tmp_path / "pipe", 0o600)
    assert "is not a regular file" in refused(configuration | {"pathKey": str(tmp_path / "pipe")})


def test_a_private_key_is_not_sent_as_a_certificate(tmp_path: Path):
    from kubeauthn._core import signerwire

    configuration = entry(tmp_path)
    request = signerwire.encode_certificate_request(configuration | {"pathCert": configuration["pathKey"]})
    result = signer_process.ask("file", request)
    assert result.stdout == b""
    assert b"holds a private key" in result.stderr


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_the_process_is_locked_down():
    program = (
        "import os, resource, ctypes\n"
        "from kubeauthn.plugins.lockdown import lock_down\n"
        "os.environ['SECRET_OF_THE_SHELL'] = 'x'\n"
        "lock_down(clear_environment=True)\n"
        "assert ctypes.CDLL(None).prctl(3, 0, 0, 0, 0) == 0, 'dumpable'\n"
        "assert resource.getrlimit(resource.RLIMIT_CORE) == (0, 0)\n"
        "assert 'NoNewPrivs:\\t1' in open('/proc/self/status').read()\n"
        "assert 'SECRET_OF_THE_SHELL' not in os.environ and 'PATH' in os.environ\n"
    )
    result = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=30)
    assert result.returncode == 0, result.stderr
