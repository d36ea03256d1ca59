"""What a check found."""

from __future__ import annotations

from dataclasses import dataclass

from kubeauthn._io.lookup import why_not_started

OK = "ok"
NOTE = "note"
"""Worth knowing; a client takes it."""
FAULT = "fault"
"""A client refuses it, or a person is let down."""


@dataclass(frozen=True, slots=True)
class Finding:
    check: str
    result: str
    reason: str


@dataclass(frozen=True, slots=True)
class Report:
    """`started` is False when the executable could not be run at all."""

    plugin: str
    """The kind of plugin: `credential`, `signer` or `proxy`."""
    command: str
    """Without its arguments: they may hold a secret."""
    started: bool
    findings: tuple[Finding, ...]
    runs: int = 0
    fastest_seconds: float | None = None

    @property
    def faults(self) -> int:
        return sum(finding.result == FAULT for finding in self.findings)

    @property
    def notes(self) -> int:
        return sum(finding.result == NOTE for finding in self.findings)


def not_started(plugin: str, command: str, path: str, error: OSError | ValueError) -> Report:
    reason, remedy = why_not_started(path, error)
    told = f"cannot be started: {reason} ({remedy})" if remedy else f"cannot be started: {reason}"
    return Report(plugin, command, False, (Finding("start", FAULT, told),))
