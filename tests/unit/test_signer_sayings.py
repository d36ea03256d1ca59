"""What the doctors say of signers where no token is needed to know it."""

from __future__ import annotations

import sys

import pytest

from kubeauthn._core.kubeconfig.model import AuthProvider, Cluster, Target, User
from kubeauthn.cli.diagnosis.findings import Findings
from kubeauthn.cli.diagnosis.outlook import outlook
from kubeauthn.cli.signer_survey import lines_of, look_into


def test_the_missing_extra_is_named_instead_of_an_exit_code(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setitem(sys.modules, "pkcs11", None)
    report = look_into("/usr/lib/some-module.so")
    assert report["error"] == "python-pkcs11 is not installed: pip install 'kubeauthn[pkcs11]'"
    assert "  python-pkcs11 is not installed: pip install 'kubeauthn[pkcs11]'" in lines_of(
        {"modules": [report], "tpm": {"error": "none"}}
    )


def signed(path: str) -> str:
    provider = AuthProvider("externalSigner", (("pathExec", path),))
    target = Target(Cluster(server="https://a.example"), User(auth_provider=provider), user_name="jane doe")
    return outlook(target, Findings())


def test_a_signer_signs_the_handshake_and_its_own_doctor_is_named():
    said = signed("/usr/bin/kubeauthn-signer-pkcs11")
    assert said.startswith("the external signer signs the TLS handshake of every connection to https://a.example;")
    assert "kubeauthn signer doctor --signer-user 'jane doe'" in said
    assert "with every request" not in said


def test_a_signer_that_is_not_ours_has_no_doctor_here():
    said = signed("/opt/other")
    assert "signs the TLS handshake" in said
    assert "signer doctor" not in said
