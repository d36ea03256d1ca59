"""Explain the client side: which files, context, cluster, user, credential, plugin and policy are in force, and why.

Nothing is run and nothing is sent unless --run-plugin or --online asks for it.
"""

from __future__ import annotations

from kubeauthn.cli import kind
from kubeauthn.cli.client_options import add_client_options, plugin_seconds, target_options
from kubeauthn.errors import KubeconfigError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from argparse import ArgumentParser, Namespace

    from kubeauthn._core.kubeconfig.model import Target
    from kubeauthn.cli.diagnosis.files import Files
    from kubeauthn.cli.diagnosis.findings import Findings
    from kubeauthn.cli.world import World

HELP = "the client side explained: files, context, user, plugin, policy, proxy, expiry"


def add_arguments(parser: ArgumentParser) -> None:
    parser.add_argument(
        "-o", "--output", choices=("text", "json"), default="text", help="how to print the findings (text)"
    )
    parser.add_argument("--run-plugin", action="store_true", help="also run the exec plugin, and say what came")
    parser.add_argument("--online", action="store_true", help="also ask the server for its version and who you are")
    add_client_options(parser)


def run(arguments: Namespace, world: World) -> int:
    from kubeauthn.cli.diagnosis.files import look_at_context, look_at_files, look_at_unknown_fields
    from kubeauthn.cli.diagnosis.findings import Findings
    from kubeauthn.cli.diagnosis.outlook import outlook
    from kubeauthn.cli.log import show_warnings

    show_warnings(world)
    findings = Findings()
    target = None
    files = look_at_files(arguments.kubeconfig, world, findings)
    if files is not None:
        look_at_context(arguments.context, files, findings)
        look_at_unknown_fields(arguments.context, arguments.cluster, arguments.user, files, findings)
        target = _target(arguments, files, findings)
    if target is not None and files is not None:
        _look_at_target(target, files, arguments, findings, world)
    findings.outlook = outlook(target, findings)
    if arguments.output == "json":
        import json

        world.say(json.dumps(findings.as_json(), indent=2))
    else:
        findings.print(world)
    return findings.exit_code


def _target(arguments: Namespace, files: Files, findings: Findings) -> Target | None:
    from kubeauthn._core.kubeconfig.faults import Fault
    from kubeauthn.client.kubeconfig import resolve

    options = target_options(arguments)
    del options["path"]
    try:
        return resolve(arguments.context, kubeconfig=files.kubeconfig, **options)
    except KubeconfigError as error:
        faults = [fault for fault in error.faults if isinstance(fault, Fault)]
        if faults:
            findings.kubeconfig_faults("kubeconfig", faults, error.hint or "")
        else:
            findings.fault("kubeconfig", "kubeconfig", str(error), error.hint or "")
        return None


def _look_at_target(target: Target, files: Files, arguments: Namespace, findings: Findings, world: World) -> None:
    from kubeauthn.cli.diagnosis.cluster import look_at_cluster
    from kubeauthn.cli.diagnosis.user import look_at_user

    seconds = plugin_seconds(arguments)
    look_at_cluster(target, files, findings, world)
    look_at_user(target, files, findings, world.clock(), token_option=bool(arguments.token))
    has_plugin = kind.kinds_present(target.user)[0] == kind.EXEC and target.user.exec is not None
    if has_plugin and target.user.exec is not None:
        from kubeauthn.cli.diagnosis.plugin import look_at_exec_proxy, look_at_plugin

        look_at_plugin(target.user.exec, target.cluster, seconds, findings)
        look_at_exec_proxy(target.user, findings)
    if not (arguments.run_plugin or arguments.online):
        return

    from kubeauthn.cli.diagnosis import live
    from kubeauthn.cli.diagnosis.findings import PLUGIN_RUN

    source = live.open_source(target, seconds, findings)
    if arguments.run_plugin and source is not None:
        if has_plugin:
            live.run_plugin(source, findings, world)
        else:
            findings.note(PLUGIN_RUN, "credential", "there is no plugin to run")
    if arguments.online and source is not None:
        live.ask_server(target, source, findings)
