"""What `check` found in a file, before anybody decides how to print it."""

from __future__ import annotations

from dataclasses import dataclass, field

from kubeauthn._core.authentication.fault_hints import fault_hint
from kubeauthn._core.authentication.nodes import place
from kubeauthn.cli import failure
from kubeauthn.cli.config_file import without_content

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from kubeauthn._core.authentication.decode import Decoded
    from kubeauthn._core.authentication.faults import ConfigFault
    from kubeauthn._core.authentication.hints import Hint
    from kubeauthn._core.authentication.model import AuthenticationConfiguration
    from kubeauthn._core.yaml_document import Path

ERROR, WARNING, NOTE = "error", "warning", "note"

KINDS = {
    "syntax": "the text is neither YAML nor JSON",
    "decode": "the text is not an AuthenticationConfiguration",
    "strict": "a field is unknown, or given twice",
    "validation": "a rule of Kubernetes' validation is broken",
    "expression": "a CEL expression does not compile, or is of the wrong type",
    "file": "a file cannot be read",
    "online": "an issuer does not publish what the file says of it",
    "unreachable": "an issuer could not be asked",
}
"""What each kind of fault is about."""

LONGEST_TEXT = 4000
"""A fault may quote an expression, and that may be as long as it likes."""


@dataclass(frozen=True)
class Found:
    """One line of the report. Texts may be anybody's: whoever prints them escapes them."""

    level: str
    rule: str
    text: str
    field: str = ""
    line: int = 0
    column: int = 0
    hint: str = ""

    def as_json(self) -> dict[str, Any]:
        shown: dict[str, Any] = {"level": self.level, "rule": self.rule, "text": self.text, "field": self.field}
        return {**shown, "line": self.line or None, "column": self.column or None, "hint": self.hint or None}


@dataclass
class FileReport:
    name: str
    issuers: int = 0
    all: list[Found] = field(default_factory=list)
    answers: list[str] = field(default_factory=list)
    """What the issuers said when they were asked and all was well."""

    @property
    def has_faults(self) -> bool:
        return any(found.level == ERROR for found in self.all)

    def count(self, level: str) -> int:
        return sum(found.level == level for found in self.all)

    def exit_code(self, *, strict: bool) -> int:
        if any(found.rule in ("file", "unreachable") for found in self.all):
            return failure.ENVIRONMENT
        return failure.NO if self.has_faults or (strict and self.count(WARNING)) else failure.YES

    def failed(self, rule: str, text: str) -> None:
        self.all.append(Found(ERROR, rule, text[:LONGEST_TEXT]))

    def fault(self, fault: ConfigFault | Any, config: AuthenticationConfiguration | None = None) -> None:
        text = without_content(fault.text)
        text = text if len(text) <= LONGEST_TEXT else text[:LONGEST_TEXT] + "…"
        self.all.append(
            Found(ERROR, fault.kind, text, fault.field, fault.line, fault.column, fault_hint(fault, config))
        )

    def hint(self, hint: Hint, decoded: Decoded) -> None:
        self.found(hint.level, hint.rule, hint.path, hint.text, decoded, hint.hint)

    def found(self, level: str, rule: str, path: Path, text: str, decoded: Decoded, hint: str = "") -> None:
        """Something about a field; its path is put before the text, as Kubernetes does."""
        from kubeauthn._core.authentication.faults import format_field

        shown = format_field(path)
        self.all.append(Found(level, rule, f"{shown}: {text}", shown, *place(decoded.root, path), hint))

    def sort(self) -> None:
        """By place; at one place faults come first."""
        self.all.sort(key=lambda found: (found.line, found.column, (ERROR, WARNING, NOTE).index(found.level)))

    def as_json(self) -> dict[str, Any]:
        return {
            "file": self.name,
            "ok": not self.has_faults,
            "issuers": self.issuers,
            "findings": [found.as_json() for found in self.all],
            "answers": self.answers,
        }
