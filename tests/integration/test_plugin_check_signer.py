"""`kubeauthn plugin check` on signers: the ones we ship, and hostile ones."""

from __future__ import annotations

import json
import sys
from base64 import b64encode
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa
from cryptography.x509.oid import ExtendedKeyUsageOID

from kubeauthn.testing import CertificateAuthority
from tests.integration import softhsm
from tests.integration.checked_plugin import SECRET, Checked, check, invoke
from tests.integration.signer_scene import NEW_KEY, SignerProgram, issue
from tests.integration.softhsm import PIN
from tests.integration.test_signer_file import entry

VERSION = "external-signer.authentication.k8s.io/v1alpha1"
RSA_WAYS = [f"sign rsa {way} {name}" for way in ("pss", "pkcs1") for name in ("sha256", "sha384", "sha512")]
REFUSED = ["another version", "another kind", "no request"]
STREAMS = ["no terminal", "standard output", "standard error", "processes"]


def shipped(folder: Path, name: str) -> Path:
    path = folder / f"kubeauthn-signer-{name}"
    path.write_text(f"#!{sys.executable}\nfrom kubeauthn.plugins.signer_{name} import main\nmain()\n")
    path.chmod(0o700)
    return path


def configured(configuration: dict[str, str]) -> tuple[str, ...]:
    return tuple(word for name, value in configuration.items() for word in ("--config", f"{name}={value}"))


def script(folder: Path, body: str) -> Path:
    """A signer without the SDK. `request` is what it is asked, `reply` prints an answer."""
    path = folder / "signer"
    path.write_text(
        f"#!{sys.executable}\nimport json, os, sys, time\n"
        "request = json.loads(os.environ['EXTERNAL_SIGNER_PLUGIN_CONFIG'])\n"
        f"def reply(kind, **fields): print(json.dumps({{'apiVersion': {VERSION!r}, 'kind': kind, **fields}}))\n{body}\n"
    )
    path.chmod(0o700)
    return path


# -- good ones ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("key", "ways"),
    [
        (rsa.generate_private_key(65537, 2048), RSA_WAYS),
        (ec.generate_private_key(ec.SECP256R1()), ["sign ec sha256", "sign ec sha384", "sign ec sha512"]),
        (ec.generate_private_key(ec.SECP521R1()), ["sign ec sha512", "sign ec sha256", "sign ec sha384"]),
        (ed25519.Ed25519PrivateKey.generate(), ["sign ed25519"]),
    ],
    ids=["rsa", "p256", "p521", "ed25519"],
)
def test_the_file_signer_passes_with_every_kind_of_key(tmp_path: Path, key: object, ways: list[str]):
    checked = check(shipped(tmp_path, "file"), options=configured(entry(tmp_path, key)))
    assert checked.report["plugin"] == "signer"
    assert checked.faults == [], checked.report
    assert checked.notes == ["standard error"]
    assert "the kubeconfig holds a PIN" in checked.reasons["standard error"]
    assert list(checked.results) == [
        "start", "speed", "certificate", *ways, "several at once", *REFUSED, *STREAMS,
    ]  # fmt: skip
    assert checked.report["runs"] == 1 + len(ways) + 2 + 3
    assert checked.code == 0


@pytest.mark.needs("softhsm2-util", "pkcs11-tool")
@pytest.mark.parametrize(("object_id", "way"), [("1", "sign rsa pss sha256"), ("2", "sign ec sha256")])
def test_the_pkcs11_signer_passes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, object_id: str, way: str):
    hsm = softhsm.filled(tmp_path / "token")
    monkeypatch.setenv("SOFTHSM2_CONF", str(hsm.conf))
    checked = check(shipped(tmp_path, "pkcs11"), options=configured(hsm.configuration(object_id, pin=PIN)))
    assert checked.faults == [], [checked.reasons[name] for name in checked.faults]
    assert checked.results[way] == "ok"
    assert PIN not in json.dumps(checked.report)


def test_a_wrong_pin_is_tried_once_and_no_more(tmp_path: Path):
    signer = SignerProgram(tmp_path / "token", CertificateAuthority())
    signer.say(SignRequest={"exit": 1})
    checked = check(signer.path, options=("--config", f"pin={PIN}"))
    asked = [request["kind"] for request in signer.requests]
    assert asked.count("SignRequest") == 1
    assert [request["configuration"].get("pin") for request in signer.requests].count(PIN) == 2
    assert checked.results["more signatures"] == "note"
    assert checked.code == 1


# -- what is it? ----------------------------------------------------------------------------------


def test_a_signer_is_recognised_by_what_it_misses(tmp_path: Path):
    checked = check(shipped(tmp_path, "file"))
    assert checked.report["plugin"] == "signer"
    assert checked.faults == ["certificate"]
    assert "lacks pathKey, pathCert" in checked.reasons["certificate"]
    assert [checked.results[name] for name in REFUSED] == ["ok"] * 3


def test_a_signer_is_recognised_by_what_it_answers(tmp_path: Path):
    signer = SignerProgram(tmp_path / "token", CertificateAuthority())
    assert check(signer.path).report["plugin"] == "signer"


def test_a_signer_takes_no_arguments(tmp_path: Path):
    code, _, err = invoke("--kind", "signer", "--", shipped(tmp_path, "file"), "--pin", "1")
    assert code == 2
    assert "a signer is run without arguments" in err
    code, _, err = invoke("--kind", "proxy", "--config", "a=b", "--", "x")
    assert code == 2
    assert "--config is for a signer" in err


# -- bad ones -------------------------------------------------------------------------------------


def judged(path: Path, *options: object) -> Checked:
    return check(path, options=("--kind", "signer", *options))


def test_it_answers_whatever_it_is_asked(tmp_path: Path):
    """A certificate is no signature, another version is not ours, and no request is none."""
    leaf = b64encode(issue(CertificateAuthority(), NEW_KEY["p256"]())).decode()
    path = tmp_path / "signer"
    document = json.dumps({"apiVersion": VERSION, "kind": "CertificateResponse", "certificate": leaf})
    path.write_text(f"#!/bin/sh\necho '{document}'\n")
    path.chmod(0o700)
    checked = judged(path)
    assert checked.faults == ["sign ec sha256", *REFUSED]
    assert "expected kind SignResponse, got CertificateResponse" in checked.reasons["sign ec sha256"]
    assert "as if it were a request to it" in checked.reasons["no request"]


@pytest.mark.parametrize(
    ("step", "text"),
    [
        ({"digest": 1}, "was not made by the certificate's key"),
        ({"cut": 20}, "was not made by the certificate's key"),
        ({"raw": 1}, "r and s one after the other, not DER"),
        ({"print": "{"}, "decoding stdout"),
        ({"print": ""}, "decoding stdout"),
        ({"exit": 3}, 'ended with exit code 3, saying "no"'),
        ({"hang": 30}, "did not answer within 3 s"),
    ],
    ids=["another digest", "too short", "raw", "half a document", "nothing", "exit code", "hangs"],
)
def test_a_signature_that_is_none(tmp_path: Path, step: dict[str, object], text: str):
    signer = SignerProgram(tmp_path / "token", CertificateAuthority())
    signer.say(SignRequest=step)
    checked = judged(signer.path, "--timeout", "3")
    assert text in checked.reasons["sign ec sha256"], checked.report
    assert checked.results["sign ec sha256"] == "fault"
    assert checked.code == 1


def test_a_raw_signature_that_begins_as_der_does(tmp_path: Path):
    leaf = b64encode(issue(CertificateAuthority(), NEW_KEY["p256"]())).decode()
    body = (
        "if request['kind'] == 'SignRequest': reply('SignResponse', signature='MDAw' + 'A' * 83 + '=')\n"
        f"else: reply('CertificateResponse', certificate={leaf!r})"
    )
    assert "one after the other, not DER" in judged(script(tmp_path, body)).reasons["sign ec sha256"]


def test_a_certificate_for_another_key(tmp_path: Path):
    ca = CertificateAuthority()
    signer = SignerProgram(tmp_path / "token", ca)
    signer.show(issue(ca, NEW_KEY["p256"]()))
    assert "was not made by the certificate's key" in judged(signer.path).reasons["sign ec sha256"]


@pytest.mark.parametrize(
    ("certificate", "text"),
    [
        ({"ends": timedelta(hours=-1)}, "expired at"),
        ({"starts": timedelta(hours=1)}, "is not valid before"),
        ({"usage": ExtendedKeyUsageOID.SERVER_AUTH}, "has no clientAuth"),
    ],
    ids=["expired", "not yet valid", "a server's"],
)
def test_a_certificate_that_no_client_shows(tmp_path: Path, certificate: dict[str, Any], text: str):
    signer = SignerProgram(tmp_path / "token", CertificateAuthority(), **certificate)
    checked = judged(signer.path)
    assert checked.results["certificate"] == "fault"
    assert text in checked.reasons["certificate"]
    assert checked.results["sign ec sha256"] == "ok"


def test_one_that_hangs_is_not_asked_again(tmp_path: Path):
    path = script(tmp_path, f"open({str(tmp_path / 'runs')!r}, 'a').write('x')\ntime.sleep(60)")
    checked = judged(path, "--timeout", "1")
    assert checked.faults == ["certificate"]
    assert (tmp_path / "runs").read_text() == "x"


@pytest.mark.parametrize(
    ("body", "check_name", "text"),
    [
        ("print('Touch the key'); reply('CertificateResponse', certificate=CERT)", "standard output", "Touch the key"),
        ("print(request['configuration']['pin'], file=sys.stderr)", "standard error", "the PIN is printed there"),
        ("reply('CertificateResponse', certificate='aGVsbG8=')", "certificate", "neither DER nor PEM"),
        ("reply('ExecCredential')", "certificate", "expected kind CertificateResponse"),
        ("sys.stdout.write('x' * 20_000_000)", "certificate", "printed more than"),
        ("os.fork() or time.sleep(30)", "certificate", "keeps its standard output open"),
    ],
    ids=["chatty", "tells the pin", "no certificate", "another kind", "too much", "keeps stdout"],
)
def test_a_rude_one(tmp_path: Path, body: str, check_name: str, text: str):
    leaf = b64encode(issue(CertificateAuthority(), NEW_KEY["p256"]())).decode()
    path = script(tmp_path, f"CERT = {leaf!r}\n{body}")
    checked = judged(path, "--config", f"pin={SECRET}")
    assert checked.results[check_name] == "fault", checked.report
    assert text in checked.reasons[check_name]
