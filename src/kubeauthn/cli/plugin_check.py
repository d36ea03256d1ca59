"""Run a credential, signer or proxy plugin as a client would, in every version and mode, and report what was found.

    kubeauthn plugin check -- my-plugin --audience prod
    kubeauthn plugin check --config pathLib=/usr/lib/softhsm/libsofthsm2.so … -- kubeauthn-signer-pkcs11

The plugin may be written in anything. Tokens, PINs and keys are not printed.
"""

from __future__ import annotations

from kubeauthn._core import limits
from kubeauthn._core.record import replace
from kubeauthn.cli import failure
from kubeauthn.cli.text import aligned, escaped, plural
from kubeauthn.errors import UsageError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from argparse import ArgumentParser, Namespace
    from typing import Any

    from kubeauthn._core.kubeconfig.model import Cluster
    from kubeauthn.cli.world import World
    from kubeauthn.plugin.check.report import Report

HELP = "runs a credential, signer or proxy plugin as a client would, and reports"

KINDS = ("credential", "signer", "proxy")
VERSIONS = ("v1", "v1beta1", "v1alpha1")
CLUSTER_CONFIG_EXAMPLE = """for example --cluster-config '{"audience": "prod"}'"""
SHAPE_VERSION = 1
"""Of the JSON report; see docs/plugins.md."""


def add_arguments(parser: ArgumentParser) -> None:
    parser.add_argument("--kind", choices=KINDS, help="what it is meant to be (found out by what it answers)")
    parser.add_argument("-o", "--output", choices=("text", "json"), default="text", help="how to print the report")
    parser.add_argument(
        "--timeout",
        type=float,
        default=limits.PLUGIN_SECONDS,
        metavar="SECONDS",
        help=f"how long one run may take ({limits.PLUGIN_SECONDS:g})",
    )
    parser.add_argument(
        "--env", action="append", default=[], metavar="NAME=VALUE", help="set this for the plugin; may repeat"
    )
    versions = parser.add_mutually_exclusive_group()
    versions.add_argument(
        "--api-version", action="append", choices=VERSIONS, help="only this version; may repeat (v1 and v1beta1)"
    )
    versions.add_argument("--all-versions", action="store_true", help="v1alpha1 too, which kubectl no longer speaks")
    parser.add_argument("--server", metavar="URL", help="the cluster to tell the plugin of, instead of a made-up one")
    parser.add_argument(
        "--cluster-config", metavar="JSON", help="what the cluster's extension client.authentication.k8s.io/exec holds"
    )
    parser.add_argument(
        "--config",
        action="append",
        default=[],
        metavar="NAME=VALUE",
        help="of a signer: what its kubeconfig entry configures; may repeat",
    )
    parser.add_argument(
        "--interactive", action="store_true", help="let the plugin use this terminal, and try it without one as well"
    )
    parser.add_argument("command", nargs="+", metavar="COMMAND", help="the plugin and its arguments, after --")


def run(arguments: Namespace, world: World) -> int:
    from kubeauthn._io.lookup import find_executable, why_not_found
    from kubeauthn._io.terminal import stdin_is_terminal
    from kubeauthn.plugin.check.report import FAULT, Finding, Report, not_started

    if not 0 < arguments.timeout < float("inf"):
        raise UsageError(f"--timeout takes a number of seconds above 0, not {arguments.timeout:g}")
    if arguments.interactive and not stdin_is_terminal():
        raise UsageError("--interactive needs a terminal on standard input")
    if arguments.config and arguments.kind not in (None, "signer"):
        raise UsageError(f"--config is for a signer, not for a {arguments.kind} plugin")
    kind = arguments.kind or ("signer" if arguments.config else None)
    if kind == "signer" and len(arguments.command) > 1:
        raise UsageError("a signer is run without arguments: what it needs is given with --config NAME=VALUE")
    command = arguments.command[0]
    environment = {**world.environ, **dict(_pair(text, "--env") for text in arguments.env)}
    cluster = _cluster(arguments)
    path = find_executable(command)
    if path is None:
        reason, remedy = why_not_found(command)
        told = f"{reason} ({remedy})" if remedy else reason
        report = Report(kind or "credential", command, False, (Finding("start", FAULT, told),))
    else:
        try:
            report = _checked(kind, path, environment, cluster, arguments, world)
        except (OSError, ValueError) as error:
            report = not_started(kind or "credential", command, path, error)

    if arguments.output == "json":
        import json

        world.say(json.dumps(as_json(report), indent=2))
    else:
        for line in as_text(report):
            world.say(line)
    if not report.started:
        return failure.ENVIRONMENT
    return failure.NO if report.faults else failure.YES


def _checked(
    kind: str | None, path: str, environment: dict[str, str], cluster: Cluster, arguments: Namespace, world: World
) -> Report:
    """Raises OSError or ValueError where the plugin cannot be started."""
    from kubeauthn._core import execwire
    from kubeauthn.plugin.check import credential

    names = VERSIONS if arguments.all_versions else tuple(dict.fromkeys(arguments.api_version or VERSIONS[:2]))
    plan = credential.Plan(
        path=path,
        argv=arguments.command,
        environment=environment,
        versions=[f"{execwire.GROUP}/{name}" for name in names],
        cluster=cluster,
        seconds=arguments.timeout,
        with_person=arguments.interactive,
        clock=world.clock,
    )
    first = credential.first_attempt(plan) if kind in (None, "credential") else None
    if kind is None and first is not None:
        from kubeauthn.plugin.check.kind import found_out

        kind = found_out(plan, first=first)
    if kind == "signer":
        from kubeauthn.plugin.check import signer

        configured = dict(_pair(text, "--config") for text in arguments.config)
        return signer.check(
            signer.Plan(
                path=path,
                command=arguments.command[0],
                environment=environment,
                configuration=signer.configuration(arguments.command[0], configured),
                seconds=arguments.timeout,
                with_person=arguments.interactive,
                clock=world.clock,
            )
        )
    if kind == "proxy":
        from kubeauthn.plugin.check import proxy

        if arguments.interactive:
            raise UsageError("a proxy plugin is tried without a person: --interactive is not for it")
        versions = [version for version in plan.versions if version != execwire.V1ALPHA1]
        if not versions:
            raise UsageError("v1alpha1 knows no proxies: a proxy plugin is tried with v1 and v1beta1")
        return proxy.check(proxy.Plan(path, plan.argv, environment, versions, cluster, arguments.timeout, world.clock))
    return credential.check(plan, first or credential.first_attempt(plan))


def as_text(report: Report) -> list[str]:
    rows = [(finding.result, finding.check, escaped(finding.reason)) for finding in report.findings]
    counts = f"{plural(report.faults, 'fault')}, {plural(report.notes, 'note')}"
    return [*aligned(rows), "", f"{escaped(report.command)}: {counts} in {plural(report.runs, 'run')}"]


def as_json(report: Report) -> dict[str, Any]:
    """The documented shape, version 1."""
    fastest = report.fastest_seconds
    return {
        "version": SHAPE_VERSION,
        "plugin": report.plugin,
        "command": report.command,
        "started": report.started,
        "runs": report.runs,
        "fastestSeconds": None if fastest is None else round(fastest, 4),
        "faults": report.faults,
        "notes": report.notes,
        "checks": [
            {"check": finding.check, "result": finding.result, "reason": finding.reason} for finding in report.findings
        ],
    }


def _pair(text: str, option: str) -> tuple[str, str]:
    name, separator, value = text.partition("=")
    if not name or not separator or "\0" in text:
        raise UsageError(f"{option} takes NAME=VALUE")
    return name, value


def _cluster(arguments: Namespace) -> Cluster:
    import json

    from kubeauthn.plugin.check.credential import MADE_UP_CLUSTER as made_up

    config = ""
    if arguments.cluster_config is not None:
        try:
            config = json.dumps(json.loads(arguments.cluster_config))
        except json.JSONDecodeError as error:
            why = f"{error.msg[:1].lower()}{error.msg[1:]}, at line {error.lineno}, column {error.colno}"
            raise UsageError(f"--cluster-config takes JSON: {why}", hint=CLUSTER_CONFIG_EXAMPLE) from None
        except (ValueError, RecursionError):
            raise UsageError("--cluster-config takes JSON: this goes too far", hint=CLUSTER_CONFIG_EXAMPLE) from None
    return replace(made_up, server=arguments.server or made_up.server, config=config)
