"""What a check found."""

from __future__ import annotations

from dataclasses import dataclass

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
