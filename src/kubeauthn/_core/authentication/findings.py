"""What validation finds, with the texts of Kubernetes' field errors."""

from __future__ import annotations

import json

from kubeauthn._core.authentication.faults import VALIDATION, format_field
from kubeauthn._core.record import record
from kubeauthn.cel.go_text import quote

TYPE_CHECKING = False
if TYPE_CHECKING:
    from kubeauthn._core.yaml_document import Path

_HTML = {"<": "\\u003c", ">": "\\u003e", "&": "\\u0026", "\u2028": "\\u2028", "\u2029": "\\u2029"}


@record(frozen=True, slots=True)
class Finding:
    """A fault of a field, not yet with its place in the text."""

    path: Path
    text: str
    kind: str = VALIDATION


def required(path: Path, detail: str = "") -> Finding:
    return Finding(path, f"{format_field(path)}: Required value" + (f": {detail}" if detail else ""))


def invalid(path: Path, value: str, detail: str, kind: str = VALIDATION) -> Finding:
    return invalid_shown(path, quote(value), detail, kind)


def invalid_shown(path: Path, shown: str, detail: str, kind: str = VALIDATION) -> Finding:
    """For a value that is not shown as a quoted string."""
    return Finding(path, f"{format_field(path)}: Invalid value: {shown}: {detail}", kind)


def duplicate(path: Path, value: str) -> Finding:
    return Finding(path, f"{format_field(path)}: Duplicate value: {quote(value)}")


def too_many(path: Path, count: int, most: int) -> Finding:
    return Finding(path, f"{format_field(path)}: Too many: {count}: must have at most {most} items")


def internal(path: Path, detail: str, kind: str = VALIDATION) -> Finding:
    return Finding(path, f"{format_field(path)}: Internal error: {detail}", kind)


def as_json(value: object) -> str:
    """A value as Go marshals it: no spaces, and safe inside HTML."""
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    return (
        "".join(_HTML.get(character, character) for character in text)
        .replace("\\b", "\\u0008")
        .replace("\\f", "\\u000c")
    )
