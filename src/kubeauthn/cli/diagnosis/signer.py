"""The external signer: what would be run, whether it may be, and whether this interpreter can use what it signs."""

from __future__ import annotations

from kubeauthn._core import signerwire
from kubeauthn._core.policy import permitted_path
from kubeauthn._core.stored_pin import holds_pin
from kubeauthn._io.kuberc import read_policy
from kubeauthn._io.lookup import find_executable, why_not_found
from kubeauthn.cli.diagnosis.findings import Findings
from kubeauthn.errors import KubeauthnError

SECTION = "signer"


def look_at_signer(configuration: dict[str, str], findings: Findings) -> None:
    command = configuration[signerwire.PATH_KEY]
    path = find_executable(command)
    if path is None:
        reason, remedy = why_not_found(command)
        findings.fault(SECTION, "command", reason, remedy or "")
    else:
        findings.ok(SECTION, "command", path if path == command else f"{command} = {path}")
    others = sorted(set(configuration) - {signerwire.PATH_KEY})
    findings.ok(SECTION, "settings", (", ".join(others) + " (values not shown)") if others else "none")
    if holds_pin(configuration):
        findings.note(
            SECTION,
            "pin",
            "stands in the kubeconfig, where every reader of the file has it; "
            "take it out, and the signer asks for it or finds it in the keyring",
        )
    try:
        permitted_path(read_policy(), command, find_executable)
    except KubeauthnError as error:
        findings.fault(SECTION, "policy", str(error), error.hint or "")
    else:
        findings.ok(SECTION, "policy", "allows this signer")
    _look_at_tls(findings)


def _look_at_tls(findings: Findings) -> None:
    from kubeauthn._io.tls_signer import check_support

    try:
        check_support()
    except KubeauthnError as error:
        findings.fault(SECTION, "TLS", str(error), error.hint or "")
    else:
        findings.ok(SECTION, "TLS", "this Python's OpenSSL takes a key from outside")
