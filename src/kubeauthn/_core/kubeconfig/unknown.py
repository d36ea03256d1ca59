"""Fields that nobody reads: a typing mistake such as `sever` for `server`. For a diagnosis; clients pass over them."""

from __future__ import annotations

from kubeauthn._core.kubeconfig.decode import ENTRY_FIELDS, EXEC_FIELD_NAMES
from kubeauthn._core.kubeconfig.faults import FIELD_CHARACTERS
from kubeauthn._core.yaml_document import Path, parse

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Any


def unknown_fields(text: str, section: str, name: str) -> list[tuple[Path, str]]:
    """The path of each in one entry, and a known name that is near it, or "". The text must be a kubeconfig."""
    body_key, fields = ENTRY_FIELDS[section]
    document = parse(text).value
    entries = document.get(section) if isinstance(document, dict) else None
    for index, entry in enumerate(entries if isinstance(entries, list) else ()):
        if isinstance(entry, dict) and (entry.get("name") or "") == name:
            at: Path = (section, index)
            found = _unknown(entry, ("name", body_key), at)
            body = entry.get(body_key)
            found += _unknown(body, fields, (*at, body_key))
            plugin = body.get("exec") if isinstance(body, dict) and section == "users" else None
            return found + _unknown(plugin, EXEC_FIELD_NAMES, (*at, body_key, "exec"))
    return []


def _unknown(value: Any, known: Iterable[str], at: Path) -> list[tuple[Path, str]]:
    names = tuple(known)
    keys = [key for key in value if isinstance(key, str) and key not in names] if isinstance(value, dict) else []
    return [((*at, key), _near(key, names)) for key in keys]


def _near(key: str, names: tuple[str, ...]) -> str:
    from difflib import get_close_matches

    near = get_close_matches(key, names, n=1) if len(key) <= FIELD_CHARACTERS else []
    return near[0] if near else ""
