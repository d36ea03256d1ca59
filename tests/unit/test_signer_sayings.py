"""What the doctors say of signers where no token is needed to know it."""

from __future__ import annotations

from kubeauthn._core.kubeconfig.model import AuthProvider, Cluster, Target, User
from kubeauthn.cli.diagnosis.findings import Findings
from kubeauthn.cli.diagnosis.outlook import outlook


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
