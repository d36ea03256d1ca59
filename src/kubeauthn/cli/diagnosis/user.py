"""As whom: the user entry, which of its credentials counts, and whether it can still be used."""

from __future__ import annotations

from kubeauthn._core import rfc3339
from kubeauthn._core.kubeconfig.model import EXTERNAL_SIGNER, Target, User
from kubeauthn.cli import kind
from kubeauthn.cli.diagnosis.files import Files
from kubeauthn.cli.diagnosis.findings import Findings
from kubeauthn.cli.text import time_left
from kubeauthn.errors import CredentialError

SECTION = "user"

_WHY = {
    kind.EXEC: "; there is nothing static that would win over it",
    kind.NONE: ": the entry holds no credential, and requests go out anonymously",
}


def look_at_user(target: Target, files: Files, findings: Findings, now: float, *, token_option: bool) -> None:
    entry = files.kubeconfig.users.get(target.user_name)
    place = files.place(entry.origin, "users", target.user_name) if entry else ""
    findings.ok(SECTION, "entry", f"{target.user_name or '(none)'}{place}")
    wins, *others = kind.kinds_present(target.user)
    words = "the token of --token" if token_option and wins == kind.TOKEN else kind.IN_WORDS[wins]
    (findings.note if wins == kind.NONE else findings.ok)(SECTION, "credential", words + _WHY.get(wins, ""))
    for other in others:
        _look_at_other(other, words, findings)
    _look_at_impersonation(target.user, findings)
    if wins in (kind.TOKEN, kind.TOKEN_FILE):
        _look_at_token(target.user, wins, findings, now)
    if target.user.client_certificate:
        _look_at_certificate(target.user, findings, now)
    if wins == kind.AUTH_PROVIDER:
        _look_at_auth_provider(target, findings)


def _look_at_other(other: str, words: str, findings: Findings) -> None:
    if other == kind.CERTIFICATE:
        findings.ok(SECTION, "and", f"{kind.IN_WORDS[other]}, shown in the TLS handshake")
    elif other == kind.EXEC:
        findings.note(SECTION, "not used", f"exec: {words} wins, so the plugin is never run")
    else:
        findings.note(SECTION, "not used", f"{other}: {words} wins")


def _look_at_impersonation(user: User, findings: Findings) -> None:
    wanted = user.impersonation
    if wanted:
        groups = f", groups {', '.join(wanted.groups)}" if wanted.groups else ""
        findings.ok(SECTION, "acts as", f"{wanted.user}{groups}")


def _look_at_token(user: User, wins: str, findings: Findings, now: float) -> None:
    from kubeauthn._secret import Secret
    from kubeauthn.cli.token_view import token_as_json
    from kubeauthn.client.sources import TokenFileSource

    token: Secret | None = user.token
    if wins == kind.TOKEN_FILE:
        try:
            token = TokenFileSource(user.token_file, fallback=user.token).get().token
        except CredentialError as error:
            findings.failed(SECTION, "token", str(error))
            return
    view = token_as_json(token.reveal() if token else "")
    source = f", in {user.token_file}" if wins == kind.TOKEN_FILE else ""
    claims = view["jwt"]
    if claims is None:
        findings.ok(SECTION, "token", f"{view['length']} characters, not a JWT{source}")
        return
    text = f"{view['length']} characters, a JWT{source}; unverified: issuer {claims['issuer']}, for {claims['subject']}"
    if claims["expiresAt"] is None:
        findings.ok(SECTION, "token", text)
        return
    expires_at = rfc3339.parse(claims["expiresAt"])
    report = findings.ok if expires_at > now else findings.fault
    report(SECTION, "token", f"{text}, {time_left(expires_at, now)}")


def _look_at_certificate(user: User, findings: Findings, now: float) -> None:
    from kubeauthn._core.certificates import matching_pair
    from kubeauthn.cli.certificate_view import certificate_views

    try:
        matching_pair(user.client_certificate, user.client_key)
    except CredentialError as error:
        findings.fault(SECTION, "certificate", str(error))
        return
    view = certificate_views(user.client_certificate)[0]
    if now < view.not_before:
        starts = rfc3339.format(view.not_before)
        findings.fault(SECTION, "certificate", f"{view.subject}, not valid before {starts}", "compare the clocks")
    else:
        report = findings.ok if now <= view.not_after else findings.fault
        report(SECTION, "certificate", f"{view.subject}, {time_left(view.not_after, now)}")


def _look_at_auth_provider(target: Target, findings: Findings) -> None:
    from kubeauthn.client.exec_source import ExecOptions
    from kubeauthn.client.sources import source_for

    name = target.user.auth_provider.name if target.user.auth_provider else ""
    try:
        source_for(target.user, target.cluster, ExecOptions())
    except CredentialError as error:
        findings.fault(SECTION, "auth-provider", str(error), error.hint or "")
        return
    if name == EXTERNAL_SIGNER:
        from kubeauthn.cli.diagnosis.signer import look_at_signer

        look_at_signer(dict(target.user.auth_provider.config if target.user.auth_provider else ()), findings)
        return
    findings.note(SECTION, "auth-provider", f"{name}: built in; refreshed in memory, the kubeconfig is not rewritten")
