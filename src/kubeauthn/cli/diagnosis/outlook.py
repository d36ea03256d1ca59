"""What would happen on a request, in a sentence or two."""

from __future__ import annotations

from shlex import quote

from kubeauthn._core.kubeconfig.model import EXTERNAL_SIGNER, Target
from kubeauthn.cli import kind
from kubeauthn.cli.diagnosis.findings import CONNECTION, FAULT, PLUGIN_RUN, Findings
from kubeauthn.cli.redaction import redacted_url
from kubeauthn.cli.signer_entry import kind_of
from kubeauthn.client.exec_source import ExecOptions
from kubeauthn.client.sources import source_for
from kubeauthn.errors import CredentialError

_UNREPLACEABLE = (kind.TOKEN, kind.BASIC, kind.CERTIFICATE)


def outlook(target: Target | None, findings: Findings) -> str:
    if target is None:
        return "nothing would be sent: the kubeconfig does not say where to, or as whom"
    faulty = {
        section: [finding.name for finding in findings.all if finding.mark == FAULT and finding.section == section]
        for section in ("cluster", "user", "plugin", PLUGIN_RUN)
    }
    unreachable = next((each.value for each in findings.all if each.mark == FAULT and each.name == CONNECTION), "")
    if unreachable:
        return f"nothing would be sent: the server cannot be reached ({unreachable})"
    if faulty["cluster"]:
        return f"nothing would be sent: the server cannot be verified ({faulty['cluster'][0]})"
    server = target.cluster.server
    goes = f"to {server}" + (f" through {redacted_url(target.cluster.proxy_url)}" if target.cluster.proxy_url else "")
    wins = kind.kinds_present(target.user)[0]
    if wins == kind.NONE:
        return f"requests go {goes} without any credential."
    if wins == kind.EXEC and target.user.exec is not None:
        if faulty["plugin"]:
            return f"nothing would be sent: the plugin cannot be run ({faulty['plugin'][0]})"
        if faulty[PLUGIN_RUN]:
            return "nothing would be sent: the plugin gave no credential"
        return (
            f"{target.user.exec.command} is run once, and what it returns goes {goes} with every request "
            "until it expires.\nA 401 makes it run once more; if it fails, nothing is sent."
        )
    if faulty["user"]:
        if not _has_credential(target, wins):
            return f"nothing would be sent: there is no credential ({faulty['user'][0]})"
        return f"{kind.IN_WORDS[wins]} goes {goes}, where it is most likely refused ({faulty['user'][0]})."
    if wins == kind.AUTH_PROVIDER and (provider := target.user.auth_provider) and provider.name == EXTERNAL_SIGNER:
        return _signed(target, goes)
    final = "; a 401 is final, because there is no other" if wins in _UNREPLACEABLE else ""
    return f"{kind.IN_WORDS[wins]} goes {goes} with every request{final}."


def _signed(target: Target, goes: str) -> str:
    said = f"the external signer signs the TLS handshake of every connection {goes}; nothing of it is in a request."
    if not kind_of(target.user):
        return said
    return f"{said}\nkubeauthn signer doctor --signer-user {quote(target.user_name)} tries it."


def _has_credential(target: Target, wins: str) -> bool:
    """Asked as a client would; only of what neither runs nor sends anything."""
    try:
        source = source_for(target.user, target.cluster, ExecOptions())
        if wins == kind.TOKEN_FILE:
            source.get()
    except CredentialError:
        return False
    return True
