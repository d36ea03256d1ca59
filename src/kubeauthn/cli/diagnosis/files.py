"""Which kubeconfig files there are, what is wrong in them, and which context they lead to."""

from __future__ import annotations

import os
import stat

from kubeauthn._core import limits
from kubeauthn._core.kubeconfig.decode import decode_with_faults
from kubeauthn._core.kubeconfig.faults import Fault, format_path, locate
from kubeauthn._core.kubeconfig.merge import is_empty, merge
from kubeauthn._core.kubeconfig.model import Kubeconfig, Origin
from kubeauthn._core.kubeconfig.unknown import unknown_fields
from kubeauthn._core.record import replace
from kubeauthn._io.files import Problem, read_text_or_problem
from kubeauthn._io.kubeconfig import VARIABLE, candidate_paths, load
from kubeauthn.cli.diagnosis.findings import Findings
from kubeauthn.cli.world import World
from kubeauthn.errors import KubeconfigError

SECTION = "kubeconfig"


class Files:
    """The kubeconfig as it was read, and the texts, so that a place in them can be named."""

    def __init__(self, kubeconfig: Kubeconfig, texts: dict[str, str]) -> None:
        self.kubeconfig = kubeconfig
        self._texts = texts

    def place(self, origin: Origin, *path: str | int) -> str:
        """` (FILE:LINE)`, or nothing for what came from no file."""
        if origin.path is None or origin.path not in self._texts:
            return ""
        return f" ({Origin(origin.path, locate(self._texts[origin.path], path))})"

    def unknown_fields(self, section: str, name: str, origin: Origin) -> list[str]:
        """Fields of one entry that nobody reads, each with its place and what may have been meant."""
        text = self._texts.get(origin.path or "")
        return [
            f"{format_path(path)}: ignored{f'; did you mean {near}?' if near else ''}{self.place(origin, *path)}"
            for path, near in (unknown_fields(text, section, name) if text is not None else ())
        ]


def look_at_files(path: str | None, world: World, findings: Findings) -> Files | None:
    """None if a client would stop here."""
    texts: dict[str, str] = {}
    faults: list[Fault] = []
    read: list[Kubeconfig] = []
    for candidate in candidate_paths(path, world.environ):
        text = read_text_or_problem(candidate, limits.KUBECONFIG_BYTES)
        if isinstance(text, Problem):
            if text.missing and path is None:
                findings.note(SECTION, "file", f"{candidate}: not there, skipped")
            else:
                findings.failed(SECTION, "file", f"{candidate}: {text.reason}")
            continue
        texts[candidate] = text
        kubeconfig, found = decode_with_faults(text, candidate)
        read.append(replace(kubeconfig, sources=(candidate,)))
        faults += found
        _look_at_mode(candidate, why_this_file(path, world), findings)
    findings.kubeconfig_faults(SECTION, faults)
    if findings.exit_code:
        return None
    merged = merge(read)
    if path is not None or not is_empty(merged):
        return Files(merged, texts)
    try:
        in_pod = load(environ=world.environ)
    except KubeconfigError as error:
        findings.failed(SECTION, "file", str(error), error.hint or "")
        return None
    findings.ok(SECTION, "source", ", ".join(in_pod.sources))
    return Files(in_pod, {})


def look_at_unknown_fields(
    context: str | None, cluster: str | None, user: str | None, files: Files, findings: Findings
) -> None:
    """Those of the entries in use: a field of another spelling explains why one is missing."""
    kubeconfig = files.kubeconfig
    context_name = context or kubeconfig.current_context
    context_entry = kubeconfig.contexts.get(context_name)
    cluster_name = cluster or (context_entry.cluster if context_entry else "")
    user_name = user or (context_entry.user if context_entry else "")
    used = (
        ("contexts", context_name, context_entry),
        ("clusters", cluster_name, kubeconfig.clusters.get(cluster_name)),
        ("users", user_name, kubeconfig.users.get(user_name)),
    )
    for section, name, entry in used:
        for words in files.unknown_fields(section, name, entry.origin) if entry is not None else ():
            findings.note(SECTION, "unknown field", words)


def look_at_context(asked_for: str | None, files: Files, findings: Findings) -> None:
    kubeconfig = files.kubeconfig
    name = asked_for or kubeconfig.current_context
    if not name:
        return
    place = files.place(kubeconfig.current_context_origin, "current-context")
    if asked_for:
        current = f"; the current one would be {kubeconfig.current_context}" if kubeconfig.current_context else ""
        findings.ok(SECTION, "context", f"{name} (asked for with --context{current})")
    else:
        findings.ok(SECTION, "current context", f"{name}{place}")
    entry = kubeconfig.contexts.get(name)
    if entry is not None:
        findings.ok(
            SECTION,
            "leads to",
            f"cluster {entry.cluster or '(none)'}, user {entry.user or '(none)'}, "
            f"namespace {entry.namespace or 'default'}{files.place(entry.origin, 'contexts', name)}",
        )


def why_this_file(path: str | None, world: World) -> str:
    if path is not None:
        return "--kubeconfig"
    return VARIABLE if world.environ.get(VARIABLE) else "the default path"


def _look_at_mode(path: str, why: str, findings: Findings) -> None:
    try:
        mode = os.stat(path).st_mode
    except OSError:
        mode = 0  # gone in this moment; its content is known
    if os.name == "posix" and stat.S_ISREG(mode) and mode & 0o077:
        findings.note(SECTION, "file", f"{path} ({why}); other users of this machine may read or write it")
    else:
        findings.ok(SECTION, "file", f"{path} ({why})")
