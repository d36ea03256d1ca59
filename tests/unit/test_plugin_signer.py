"""The signer SDK: from one document to the other, and what an author may get wrong."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import pytest
from cryptography.hazmat.primitives.asymmetric import ec, padding, rsa, utils
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.serialization import Encoding

from kubeauthn._core import object_id, pkcs11_uri, signerwire
from kubeauthn._core.signature_forms import digest_info, ecdsa_der, pss_salt_bytes
from kubeauthn._core.signerwire import SigningAlgorithm
from kubeauthn.errors import PluginReplyError, SignerRequestError, UsageError
from kubeauthn.plugin import signer
from tests.integration.softhsm import client_certificate

KEY = ec.generate_private_key(ec.SECP256R1())
CERTIFICATE = client_certificate(KEY.public_key())


class Memory:
    def __init__(self, configuration: signer.Configuration) -> None:
        configuration.require("keyName")

    def certificate(self) -> str:
        return CERTIFICATE.public_bytes(Encoding.PEM).decode()

    def sign(self, digest: bytes, algorithm: SigningAlgorithm) -> bytes:
        return KEY.sign(digest, ec.ECDSA(utils.Prehashed(SHA256())))


class Raw(Memory):
    """Returns r || s, as tokens do."""

    def sign(self, digest: bytes, algorithm: SigningAlgorithm) -> bytes:
        r, s = utils.decode_dss_signature(super().sign(digest, algorithm))
        return r.to_bytes(32, "big") + s.to_bytes(32, "big")


class Converted(Raw):
    def sign(self, digest: bytes, algorithm: SigningAlgorithm) -> bytes:
        return signer.ecdsa_der(super().sign(digest, algorithm))


@pytest.mark.parametrize("cls", [Memory, Converted])
def test_try_out_verifies_as_a_client_does(cls: type):
    trial = signer.try_out(cls, {"keyName": "k"})
    assert trial.certificate == (CERTIFICATE.public_bytes(Encoding.DER),)
    assert trial.algorithms == (SigningAlgorithm("ec", hash="sha256"),)
    assert trial.sign(b"message")


def test_a_signature_in_the_wrong_form_is_found_by_try_out():
    with pytest.raises(PluginReplyError, match="was not made by the certificate's key"):
        signer.try_out(Raw, {"keyName": "k"}).sign(b"message")


def test_an_object_that_is_ready_and_a_function_that_makes_one():
    ready = Memory(signer.Configuration(keyName="k"))
    assert signer.try_out(ready).sign(b"m")
    assert signer.try_out(lambda configuration: Memory(configuration), {"keyName": "k"}).sign(b"m")
    with pytest.raises(UsageError, match="certificate\\(\\) and sign\\(\\)"):
        signer.try_out(lambda configuration: object()).sign(b"m")


def test_every_missing_key_is_named():
    with pytest.raises(SignerRequestError, match="(?m)lacks a, b$"):
        signer.Configuration(c="1").require("a", "b", "c")


def test_a_configuration_shows_no_value():
    assert repr(signer.Configuration(pin="1234", slotId="0")) == "Configuration(pin, slotId)"


@pytest.mark.parametrize("value", [None, "text", b""], ids=["none", "text", "empty"])
def test_sign_must_return_bytes(value: object):
    class Wrong(Memory):
        def sign(self, digest: bytes, algorithm: SigningAlgorithm) -> bytes:
            return value

    with pytest.raises(PluginReplyError, match="sign\\(\\) must return bytes"):
        signer.try_out(Wrong, {"keyName": "k"}).sign(b"m", SigningAlgorithm("ec", hash="sha256"))


PLUGIN = """
import atexit, sys
from kubeauthn.plugin import signer
class Author:
    def certificate(self):
        print("chatter")
        {body}
    def sign(self, digest, algorithm):
        return b"signature"
atexit.register(lambda: sys.stderr.write("\\n".join(sys.modules)))
signer.run(Author())
"""


def run(body: str, request: str | None = None, **environ: str) -> subprocess.CompletedProcess[str]:
    text = signerwire.encode_certificate_request({"pin": "92736451"}) if request is None else request
    return subprocess.run(
        [sys.executable, "-I", "-c", PLUGIN.format(body=body)],
        env={**os.environ, signerwire.VARIABLE: text, **environ},
        capture_output=True,
        text=True,
        timeout=30,
    )


def test_what_is_printed_does_not_reach_the_client():
    result = run("return bytes.fromhex('3003020101')")
    assert result.returncode == 0, result.stderr
    assert json.loads(result.stdout)["kind"] == "CertificateResponse"
    assert result.stderr.startswith("chatter\n")


def test_start_up_is_light():
    loaded = set(run("return bytes.fromhex('3003020101')").stderr.split())
    heavy = {"argparse", "asyncio", "cryptography", "dataclasses", "inspect", "logging", "socket", "ssl", "subprocess"}
    assert "kubeauthn.plugin.signer" in loaded
    assert not loaded & (heavy | {"httpx2", "threading", "typing", "yaml", "ctypes", "pkcs11"})


def test_an_error_of_a_library_is_not_quoted():
    result = run("raise RuntimeError('the PIN 92736451 is wrong')")
    assert result.returncode == 1
    assert result.stdout == ""
    assert "the signer failed: RuntimeError" in result.stderr
    assert "92736451" not in result.stderr


@pytest.mark.parametrize("request_text", ["", "92736451", '{"apiVersion":"v2"}'], ids=["empty", "not json", "version"])
def test_a_request_that_cannot_be_read_is_not_quoted(request_text: str):
    result = run("return b''", request=request_text)
    assert result.returncode == 1
    assert result.stdout == ""
    assert signerwire.VARIABLE in result.stderr
    assert "92736451" not in result.stderr


def test_raw_signatures_become_der():
    r, s = 1 << 255, 5
    der = ecdsa_der(r.to_bytes(32, "big") + s.to_bytes(32, "big"))
    assert utils.decode_dss_signature(der) == (r, s)
    with pytest.raises(UsageError, match="two halves"):
        ecdsa_der(b"123")


@pytest.mark.parametrize("bits", [2048, 2049, 1030])
@pytest.mark.parametrize("salt", [0, 20, 32, 64, None], ids=str)
def test_the_salt_of_a_pss_signature(bits: int, salt: int | None):
    key = rsa.generate_private_key(65537, bits)
    numbers = key.public_key().public_numbers()
    longest = padding.calculate_max_pss_salt_length(key, SHA256())
    for _ in range(3):
        length = longest if salt is None else salt
        made = key.sign(b"hello", padding.PSS(padding.MGF1(SHA256()), length), SHA256())
        assert pss_salt_bytes(made, numbers.n, numbers.e, "sha256") == length
    assert pss_salt_bytes(key.sign(b"hello", padding.PKCS1v15(), SHA256()), numbers.n, numbers.e, "sha256") is None
    assert pss_salt_bytes(b"", numbers.n, numbers.e, "sha256") is None


def test_a_digest_info_names_the_hash():
    assert digest_info(b"\0" * 32, "sha256").hex().startswith("3031300d0609608648016503040201")
    with pytest.raises(UsageError, match="has 32 bytes, not 20"):
        digest_info(b"\0" * 20, "sha256")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("2", (b"\x02", "2")),
        ("10", (b"\x0a", b"\x10", "10")),
        ("0x0a0b", (b"\x0a\x0b", "0x0a0b")),
        ("0a:0b", (b"\x0a\x0b", "0a:0b")),
        ("02", (b"\x02", "02")),
        ("256", ("256",)),
        ("my key", ("my key",)),
    ],
)
def test_object_ids(text: str, expected: tuple[object, ...]):
    assert object_id.readings(text) == expected


def test_a_token_uri():
    uri = pkcs11_uri.parse("pkcs11:token=My%20Key;id=%01%ff;serial=ab?module-path=/lib/x.so&pin-value=1234")
    assert (uri.token, uri.object_id, uri.serial, uri.module_path) == ("My Key", b"\x01\xff", "ab", "/lib/x.so")
    assert uri.pin.reveal() == "1234"
    assert "1234" not in repr(uri)


@pytest.mark.parametrize(
    "text", ["http:x", "pkcs11:token", "pkcs11:token=a;token=b", "pkcs11:id=%0", "pkcs11:slot-id=x"]
)
def test_a_token_uri_that_is_none(text: str):
    with pytest.raises(UsageError):
        pkcs11_uri.parse(text)
