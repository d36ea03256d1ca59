"""Kubernetes' names for fields that are no CEL identifiers: `a__dot__b`, `a__slash__b`, `__namespace__`."""

from __future__ import annotations

__all__ = ["escape_name", "unescape_name", "unescape_or_none"]

_WORDS = {"underscores": "__", "dot": ".", "dash": "-", "slash": "/"}
_RESERVED = frozenset((
    "true", "false", "null", "in", "as", "break", "const", "continue", "else", "for", "function", "if", "import", "let",
    "loop", "package", "namespace", "return", "var", "void", "while",
))  # fmt: skip


def unescape_name(name: str) -> str:
    """The field that a name means. One with a wrong escape is taken as it is written."""
    unescaped = unescape_or_none(name)
    return name if unescaped is None else unescaped


def unescape_or_none(name: str) -> str | None:
    """The same, None for a wrong escape."""
    if "__" not in name:
        return name
    parts: list[str] = []
    at = 0
    while True:
        start = name.find("__", at)
        if start < 0:
            parts.append(name[at:])
            return "".join(parts)
        # an escape is two underscores, something without underscores, two underscores
        inner = start + 2
        while inner < len(name) and name[inner] == "_":
            inner += 1
        end = name.find("_", inner)
        if inner >= len(name) or end < 0:
            parts.append(name[at:])
            return "".join(parts)
        if not name.startswith("__", end):
            parts.append(name[at:end])
            at = end
            continue
        word = name[inner:end]
        parts.append(name[at : inner - 2])
        if word in _WORDS:
            parts.append(_WORDS[word])
        elif word in _RESERVED and inner == 2 and end + 2 == len(name):
            parts.append(word)
        else:
            return None
        at = end + 2


def escape_name(field: str) -> str | None:
    """The CEL identifier for a field, None if there is none."""
    if not field or field[0].isdigit() or not field.isascii():
        return None
    if field in _RESERVED:
        return f"__{field}__"
    if not all(char.isalnum() or char in "_.-/" for char in field):
        return None
    escaped = field.replace("__", "__underscores__")
    return escaped.replace(".", "__dot__").replace("-", "__dash__").replace("/", "__slash__")
