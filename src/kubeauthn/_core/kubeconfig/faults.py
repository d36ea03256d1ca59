"""A fault in a file: which file, which line, which field, and what is wrong. Never what a secret field holds."""

from __future__ import annotations

from kubeauthn._core.kubeconfig.model import Origin
from kubeauthn._core.record import record
from kubeauthn._core.yaml_document import Path, parse
from kubeauthn.errors import KubeconfigError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence, Set

_SECTIONS = ("clusters", "users", "contexts")

FAULTS_SHOWN = 200
"""How many faults a message spells out; the error's `faults` has them all."""

FIELD_CHARACTERS = 120
"""How much of a key that somebody wrote is repeated in a message."""


@record(frozen=True, slots=True)
class Fault:
    """One thing that is wrong. Its text form is `file:line: field: message`."""

    origin: Origin
    path: Path
    message: str

    @property
    def file(self) -> str | None:
        return self.origin.path

    @property
    def line(self) -> int | None:
        return self.origin.line

    @property
    def field(self) -> str:
        """Where in the document: `users[3].user.exec.command`."""
        return format_path(self.path)

    def __str__(self) -> str:
        return ": ".join(part for part in (str(self.origin), self.field, self.message) if part)


def format_path(path: Path) -> str:
    shown = ""
    for index, step in enumerate(path):
        if isinstance(step, int):
            shown += f"[{step}]"
        elif index == 1 and path[0] in _SECTIONS:
            shown += f'["{printable(step)}"]'  # an entry known by its name, where the index is not at hand
        else:
            shown += ("." if shown else "") + printable(step)
    return shown


def printable(text: str) -> str:
    """Somebody else's text, made harmless for one line of a message."""
    if len(text) > FIELD_CHARACTERS:
        text = text[:FIELD_CHARACTERS] + "…"
    return "".join(character if character.isprintable() else "\ufffd" for character in text)


def faults_error(
    faults: Sequence[Fault], *, error: type[KubeconfigError] = KubeconfigError, hint: str | None = None
) -> KubeconfigError:
    """One error for all of them, one line for each."""
    lines = [str(fault) for fault in faults[:FAULTS_SHOWN]]
    if len(faults) > FAULTS_SHOWN:
        lines.append(f"… and {len(faults) - FAULTS_SHOWN} more")
    return error("\n".join(lines), faults=faults, hint=hint)


def raise_faults(faults: Sequence[Fault], *, error: type[KubeconfigError] = KubeconfigError) -> None:
    """No fault, no error."""
    if faults:
        raise faults_error(faults, error=error)


def with_lines(faults: Sequence[Fault], text: str) -> list[Fault]:
    """The same faults of one file, with their lines, now that somebody wants to know."""
    from kubeauthn._core.yaml_lines import lines_of  # a file without faults does not load it

    by_index = _entry_paths(text, {fault.path for fault in faults if fault.line is None})
    lines = lines_of(text, by_index.values()) if by_index else {}
    return [
        fault
        if fault.line is not None
        else Fault(Origin(fault.origin.path, lines[by_index[fault.path]]), by_index[fault.path], fault.message)
        for fault in faults
    ]


def locate(text: str, path: Path) -> int:
    """The line of a field in a kubeconfig text. `path` may name an entry: `("users", "prod", "user", "exec")`."""
    from kubeauthn._core.yaml_lines import lines_of

    numbered = _entry_paths(text, {path})[path]
    return lines_of(text, [numbered])[numbered]


def _entry_paths(text: str, paths: Set[Path]) -> dict[Path, Path]:
    """Each path with itself, or `("users", "prod", …)` with the name turned into the index it has in this text."""
    numbered = {path: path for path in paths}
    named = [path for path in paths if len(path) > 1 and isinstance(path[1], str) and path[0] in _SECTIONS]
    if not named:
        return numbered
    document = parse(text).value
    places: dict[Path, int] = {}
    for section in _SECTIONS:
        entries = document.get(section) if isinstance(document, dict) else None
        for index, entry in enumerate(entries if isinstance(entries, list) else ()):
            if isinstance(entry, dict) and isinstance(name := entry.get("name"), str):
                places.setdefault((section, name), index)
    for path in named:
        if (place := places.get(path[:2])) is not None:
            numbered[path] = (path[0], place, *path[2:])
    return numbered
