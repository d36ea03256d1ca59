"""What is only found out by doing it: running the plugin, asking the server. Both only when asked for."""

from __future__ import annotations

import json
import time
from urllib.parse import urlsplit

from kubeauthn._core import limits
from kubeauthn._core.kubeconfig.model import Cluster, Target
from kubeauthn._core.policy import PluginPolicy
from kubeauthn._io.kuberc import read_policy
from kubeauthn.cli.diagnosis.findings import CONNECTION, PLUGIN_RUN, Findings
from kubeauthn.cli.text import time_left
from kubeauthn.cli.world import World
from kubeauthn.client.exec_source import ExecOptions, exec_proxy_switched_on
from kubeauthn.client.sources import CredentialSource, source_for
from kubeauthn.errors import KubeauthnError, RequestRefused

SERVER = "server"


def open_source(target: Target, seconds: float | None, findings: Findings) -> CredentialSource | None:
    """The source that a client would use: the plugin run and the requests share one credential."""
    try:
        policy: PluginPolicy = read_policy()
        proxies = exec_proxy_switched_on(target.user)
        options = ExecOptions(policy=policy, seconds=seconds, exec_proxy=proxies)
        return source_for(target.user, target.cluster, options)
    except KubeauthnError as error:
        findings.failed(PLUGIN_RUN, "credential", str(error), error.hint or "")
        return None


def run_plugin(source: CredentialSource, findings: Findings, world: World) -> None:
    started = time.monotonic()
    try:
        credential = source.get()
    except KubeauthnError as error:
        findings.failed(PLUGIN_RUN, "credential", str(error), error.hint or "")
        return
    took = time.monotonic() - started
    parts = [f"a token of {len(credential.token.reveal())} characters"] if credential.token else []
    if credential.route is not None:
        parts.append(f"a local proxy at {credential.route.url} with a certificate for it")
    elif credential.identity:
        parts.append("a client certificate")
    now = world.clock()
    ends = "kept until the process ends" if credential.expires_at is None else time_left(credential.expires_at, now)
    findings.ok(PLUGIN_RUN, "credential", f"{' and '.join(parts)}, {ends}; took {took:.1f} s")


def ask_server(target: Target, source: CredentialSource, findings: Findings) -> None:
    """One GET /version, and who we are."""
    from kubeauthn.cli.request import Unreachable, UntrustedServer, connection, exchange, refusal
    from kubeauthn.cli.whoami import ask
    from kubeauthn.client.access import Access

    access = Access(target.cluster, source, user=target.user, target=target)
    try:
        with connection(access) as api:
            response, body = exchange(api, "GET", "/version")
            if not response.is_success:
                raise refusal(response, body)
            findings.ok(SERVER, "version", _version(body))
            user = ask(api)
            groups = f", groups {' '.join(user['groups'])}" if user["groups"] else ""
            findings.ok(SERVER, "you are", f"{user['username']}{groups}")
    except RequestRefused as error:
        findings.fault(SERVER, "answer", str(error))
    except UntrustedServer as error:
        hint = "compare certificate-authority-data and tls-server-name of the cluster entry with what is shown below"
        findings.failed(SERVER, CONNECTION, str(error), hint)
        _look_at_presented(target.cluster, findings)
    except Unreachable as error:
        findings.failed(SERVER, CONNECTION, str(error), error.hint or "")
    except KubeauthnError as error:
        findings.failed(SERVER, "answer", str(error), error.hint or "")


def _look_at_presented(cluster: Cluster, findings: Findings) -> None:
    """What the server shows, beside what the cluster entry trusts."""
    from kubeauthn._io.tls import presented_certificate
    from kubeauthn.cli.certificate_view import certificate_views, presented_view

    if cluster.proxy_url:
        findings.note(SERVER, "presented", "not looked at: the way leads through a proxy")
        return
    try:
        shown = presented_view(presented_certificate(cluster, limits.HTTP_SECONDS))
    except OSError as error:
        findings.note(SERVER, "presented", f"cannot be had: {error.strerror or type(error).__name__}")
        return
    findings.note(SERVER, "presented", shown)
    trusted = certificate_views(cluster.certificate_authority_data)
    names = "; ".join(view.subject for view in trusted[:10]) or "the certificate authorities of this system"
    name = cluster.tls_server_name or urlsplit(cluster.server).hostname
    findings.note(SERVER, "trusted", f"{names}; for the name {name}")


def _version(body: bytes) -> str:
    try:
        return str(json.loads(body)["gitVersion"])
    except (ValueError, LookupError, TypeError, RecursionError):
        return "it answers, but not with a version"
