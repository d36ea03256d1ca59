"""A fault of a configuration file: the text as Kubernetes prints it, the field, and the place."""

from __future__ import annotations

from kubeauthn._core.record import record
from kubeauthn.errors import AuthenticationConfigError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from kubeauthn._core.yaml_document import Path

SYNTAX, DECODE, STRICT, VALIDATION, EXPRESSION = "syntax", "decode", "strict", "validation", "expression"
"""Not YAML or JSON; not this kind of object; a field unknown or given twice; a rule broken; a bad expression."""


@record(frozen=True, slots=True)
class ConfigFault:
    """One thing that is wrong. `line` and `column` count from 1; 0 where the text has no place for it."""

    text: str
    field: str = ""
    line: int = 0
    column: int = 0
    kind: str = VALIDATION

    def __str__(self) -> str:
        return f"{self.line}:{self.column}: {self.text}" if self.line else self.text


def format_field(path: Path) -> str:
    """`jwt[0].issuer.url`."""
    shown = ""
    for step in path:
        if isinstance(step, int):
            shown += f"[{step}]"
        else:
            shown += f".{step}" if shown else step
    return shown


def parse_field(text: str) -> Path:
    """The way back, for fields of ours: their names have neither dots nor brackets."""
    path: list[str | int] = []
    for part in text.split("."):
        name, *indices = part.split("[")
        path += [name, *(int(index.rstrip("]")) for index in indices)]
    return tuple(path)


def config_error(faults: Sequence[ConfigFault], message: str = "") -> AuthenticationConfigError:
    """One error for all faults. Its message is what Kubernetes would print, one fault a line."""
    if not message and faults[0].kind in (SYNTAX, DECODE):
        message = faults[0].text  # Kubernetes goes no further than the first
    return AuthenticationConfigError(message or "\n".join(fault.text for fault in faults), errors=faults)
