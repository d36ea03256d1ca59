"""Findings, and how they are printed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from kubeauthn._core.kubeconfig.faults import Fault
from kubeauthn.cli import failure
from kubeauthn.cli.text import escaped, escaped_lines
from kubeauthn.cli.world import World

OK = "ok"
NOTE = "note"
FAULT = "fault"

PLUGIN_RUN = "plugin run"
"""The section of what is only found out by running the plugin."""
CONNECTION = "connection"
"""The finding that the server cannot be reached, or not be trusted."""
_COLOURS = {OK: "\x1b[32m", NOTE: "\x1b[33m", FAULT: "\x1b[31m"}
_NO_COLOUR = "\x1b[0m"


@dataclass(frozen=True)
class Finding:
    section: str
    mark: str
    name: str
    value: str
    hint: str = ""
    code: int = failure.YES
    """What a fault means for the exit code."""

    def as_json(self) -> dict[str, Any]:
        shown = {"section": self.section, "mark": self.mark, "name": self.name, "value": self.value}
        return {**shown, "hint": self.hint} if self.hint else shown


@dataclass
class Findings:
    """Gathered in the order in which they are shown. `value` and `hint` may hold anybody's text: it is escaped here."""

    all: list[Finding] = field(default_factory=list)
    faults: list[Fault] = field(default_factory=list)
    """Those of the kubeconfig, which have a file, a line and a field."""
    outlook: str = ""
    """What would happen on a request, in a sentence or two."""

    def ok(self, section: str, name: str, value: str) -> None:
        self.all.append(Finding(section, OK, name, value))

    def note(self, section: str, name: str, value: str, hint: str = "") -> None:
        self.all.append(Finding(section, NOTE, name, value, hint))

    def fault(self, section: str, name: str, value: str, hint: str = "") -> None:
        """Something is wrong."""
        self.all.append(Finding(section, FAULT, name, value, hint, failure.NO))

    def failed(self, section: str, name: str, value: str, hint: str = "") -> None:
        """Something could not be looked at."""
        self.all.append(Finding(section, FAULT, name, value, hint, failure.ENVIRONMENT))

    def kubeconfig_faults(self, section: str, faults: Sequence[Fault], hint: str = "") -> None:
        self.faults += faults
        for index, fault in enumerate(faults):
            self.fault(section, "kubeconfig", str(fault), hint if index == len(faults) - 1 else "")

    @property
    def exit_code(self) -> int:
        return max((finding.code for finding in self.all), default=failure.YES)

    def as_json(self) -> dict[str, Any]:
        return {
            "version": 1,
            "ok": self.exit_code == failure.YES,
            "findings": [finding.as_json() for finding in self.all],
            "kubeconfigFaults": [
                {"file": fault.file, "line": fault.line, "field": fault.field, "message": fault.message}
                for fault in self.faults
            ],
            "onARequest": self.outlook,
        }

    def print(self, world: World) -> None:
        width = max((len(finding.name) for finding in self.all), default=0)
        section = ""
        for finding in self.all:
            if finding.section != section:
                section = finding.section
                world.say(section)
            mark = finding.mark.ljust(5)
            if world.colour:
                mark = f"{_COLOURS[finding.mark]}{mark}{_NO_COLOUR}"
            world.say(f"  {mark}  {finding.name.ljust(width)}  {escaped(finding.value)}".rstrip())
            if finding.hint:
                indent = " " * (width + 11)
                for number, line in enumerate(escaped_lines(finding.hint)):
                    world.say(f"{indent}{'hint: ' if number == 0 else '      '}{line}".rstrip())
        if self.outlook:
            world.say("on a request")
            for line in escaped_lines(self.outlook):
                world.say(f"  {line}")
