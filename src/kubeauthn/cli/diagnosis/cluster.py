"""Where requests go: server, trust, proxy."""

from __future__ import annotations

from kubeauthn._core.kubeconfig.model import Cluster, Target
from kubeauthn.cli import kind
from kubeauthn.cli.diagnosis.files import Files
from kubeauthn.cli.diagnosis.findings import Findings
from kubeauthn.cli.redaction import redacted_url
from kubeauthn.cli.text import plural, time_left
from kubeauthn.cli.world import World

SECTION = "cluster"


def look_at_cluster(target: Target, files: Files, findings: Findings, world: World) -> None:
    entry = files.kubeconfig.clusters.get(target.cluster_name)
    place = files.place(entry.origin, "clusters", target.cluster_name) if entry else ""
    findings.ok(SECTION, "entry", f"{target.cluster_name or '(none)'}{place}")
    cluster = target.cluster
    if cluster.server.startswith("http://") and kind.kinds_present(target.user)[0] != kind.NONE:
        findings.fault(
            SECTION,
            "server",
            f"{cluster.server}: not https, so the user's credentials are not sent there",
            hint="use https, or a context without a user for a local `kubectl proxy`",
        )
    elif cluster.server.startswith("http://"):
        findings.note(SECTION, "server", f"{cluster.server}: not encrypted, whoever is in between reads the credential")
    else:
        findings.ok(SECTION, "server", cluster.server)
        _look_at_trust(cluster, findings, world.clock())
    if cluster.tls_server_name:
        findings.ok(SECTION, "TLS server name", f"{cluster.tls_server_name}: the certificate must be for this name")
    _look_at_proxy(cluster, entry.proxy_url if entry else "", findings, world)


def _look_at_trust(cluster: Cluster, findings: Findings, now: float) -> None:
    if cluster.insecure_skip_tls_verify:
        findings.note(
            SECTION,
            "trust",
            "the server is not verified: insecure-skip-tls-verify",
            hint="whoever is in between reads the credential; certificate-authority-data is the cure",
        )
        return
    if not cluster.certificate_authority_data:
        findings.ok(SECTION, "trust", "the certificate authorities of this system: the entry names none")
        return
    from kubeauthn.cli.certificate_view import certificate_views

    views = certificate_views(cluster.certificate_authority_data)
    if not views:
        findings.fault(SECTION, "trust", "certificate-authority: no usable PEM certificate in it")
        return
    for view in views[:10]:
        text = f"{view.subject}, {time_left(view.not_after, now)}"
        (findings.ok if view.not_after >= now else findings.fault)(SECTION, "trust", text)
    if len(views) > 10:
        findings.ok(SECTION, "trust", f"and {plural(len(views) - 10, 'more certificate')}")


def _look_at_proxy(cluster: Cluster, of_entry: str, findings: Findings, world: World) -> None:
    variables = ("HTTPS_PROXY", "https_proxy") if cluster.server.startswith("https") else ("HTTP_PROXY", "http_proxy")
    variable = next((name for name in variables if world.environ.get(name)), None)
    if cluster.proxy_url:
        why = "proxy-url of the cluster entry" if of_entry else f"{variable} in the environment"
        findings.ok(SECTION, "proxy", f"{redacted_url(cluster.proxy_url)} ({why})")
    elif variable:
        findings.ok(
            SECTION, "proxy", f"none: {variable} is set, but not for this server (NO_PROXY, or it is on this machine)"
        )
    else:
        findings.ok(SECTION, "proxy", "none")
