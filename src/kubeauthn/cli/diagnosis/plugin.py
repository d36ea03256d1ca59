"""The exec plugin: what would be run, with what, and whether it may be."""

from __future__ import annotations

from kubeauthn._core import execwire
from kubeauthn._core.interaction import ALWAYS, IF_AVAILABLE, NEVER, gets_the_terminal
from kubeauthn._core.kubeconfig.model import Cluster, ExecConfig, User
from kubeauthn._core.policy import PluginPolicy, permitted_path
from kubeauthn._io.kuberc import read_policy
from kubeauthn._io.lookup import find_executable, why_not_found
from kubeauthn._io.terminal import stdin_is_terminal
from kubeauthn.cli.diagnosis.findings import Findings
from kubeauthn.cli.redaction import redacted_arguments
from kubeauthn.errors import EnvironmentFailure, InteractionRequired, KubeconfigError, PluginDenied, UsageError

SECTION = "plugin"

_MODES = {
    NEVER: "it never gets the terminal",
    IF_AVAILABLE: "it gets the terminal if there is one",
    ALWAYS: "it needs the terminal",
}


def look_at_plugin(config: ExecConfig, cluster: Cluster, seconds: float | None, findings: Findings) -> None:
    path = _look_at_command(config, findings)
    if config.args:
        findings.ok(SECTION, "arguments", " ".join(redacted_arguments(config.args)))
    if config.env:
        findings.ok(SECTION, "variables", ", ".join(name for name, _ in config.env) + " (values not shown)")
    if config.api_version == execwire.V1ALPHA1:
        findings.note(SECTION, "API version", f"{config.api_version}: kubectl no longer takes it; use {execwire.V1}")
    else:
        findings.ok(SECTION, "API version", config.api_version)
    interactive = _look_at_interaction(config, findings)
    _look_at_exec_info(config, cluster, interactive, findings)
    limit = "none" if seconds is None else f"{seconds:g} s"
    findings.ok(SECTION, "time limit", "none while a person may be typing" if interactive else limit)
    _look_at_policy(config, path, findings)


def look_at_exec_proxy(user: User, findings: Findings) -> None:
    """Whether the plugin may be a proxy; nothing is said where nobody asked for that."""
    from kubeauthn._core.execproxy import VERSIONS
    from kubeauthn.client.exec_source import exec_proxy_switched_on

    try:
        if user.exec is None or not exec_proxy_switched_on(user):
            return
    except UsageError as error:
        findings.fault(SECTION, "exec proxy", str(error))
        return
    if user.exec.api_version not in VERSIONS:
        findings.fault(SECTION, "exec proxy", f"switched on, and {user.exec.api_version} knows no proxies")
    elif not user.exec.provide_cluster_info:
        findings.note(SECTION, "exec proxy", "switched on; a proxy needs provideClusterInfo: true to know the server")
    else:
        findings.ok(SECTION, "exec proxy", "switched on: what the plugin starts may carry the requests")


def _look_at_command(config: ExecConfig, findings: Findings) -> str | None:
    path = find_executable(config.command)
    if path is None:
        reason, remedy = why_not_found(config.command)
        findings.fault(SECTION, "command", reason, remedy or config.install_hint)
    elif path == config.command:
        findings.ok(SECTION, "command", path)
    else:
        findings.ok(SECTION, "command", f"{config.command} = {path}")
    return path


def _look_at_interaction(config: ExecConfig, findings: Findings) -> bool:
    terminal = stdin_is_terminal()
    words = f"{config.interactive_mode}: {_MODES[config.interactive_mode]}"
    try:
        interactive = gets_the_terminal(config.interactive_mode, stdin_is_terminal=terminal, stdin_taken=None)
    except InteractionRequired as error:
        findings.fault(SECTION, "interaction", f"{words}, and here is none", error.hint or "")
        return True
    here = "" if config.interactive_mode == NEVER else ", and here is one" if terminal else ", and here is none"
    findings.ok(SECTION, "interaction", words + here)
    return interactive


def _look_at_exec_info(config: ExecConfig, cluster: Cluster, interactive: bool, findings: Findings) -> None:
    told = config.provide_cluster_info and config.api_version != execwire.V1ALPHA1
    try:
        size = len(
            execwire.encode_exec_info(config.api_version, interactive=interactive, cluster=cluster if told else None)
        )
    except EnvironmentFailure as error:
        findings.fault(SECTION, "cluster info", str(error), error.hint or "")
        return
    if told:
        words = "told to the plugin"
    elif config.provide_cluster_info:
        words = "not told to the plugin: v1alpha1 cannot carry it"
    else:
        words = "not told to the plugin (provideClusterInfo)"
    findings.ok(SECTION, "cluster info", f"{words}; {execwire.VARIABLE} takes {size} bytes")


def _look_at_policy(config: ExecConfig, path: str | None, findings: Findings) -> None:
    try:
        policy = read_policy()
        permitted_path(policy, config.command, find_executable)
    except PluginDenied as error:
        findings.fault(SECTION, "policy", str(error), error.hint or "")
    except KubeconfigError as error:
        findings.fault(SECTION, "policy", str(error), error.hint or "")
    else:
        findings.ok(SECTION, "policy", _policy_words(policy, path))


def _policy_words(policy: PluginPolicy, path: str | None) -> str:
    mode = policy.mode or "AllowAll"
    where = f" ({policy.origin})" if policy.origin else " (no kuberc says otherwise)"
    return f"{mode}{where}" + (": allows this plugin" if path else "")
