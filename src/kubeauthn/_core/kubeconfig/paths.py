"""Paths in a kubeconfig are relative to the directory of the file they stand in."""

from __future__ import annotations

import sys

if sys.platform == "win32":
    import ntpath as _rules
else:
    import posixpath as _rules


def directory_of(path: str | None) -> str | None:
    return _rules.dirname(path) if path else None


def resolve_file(reference: str, directory: str | None) -> str:
    """A file that a field names, from the directory of its kubeconfig."""
    if not reference or directory is None or _rules.isabs(reference):
        return reference
    return _rules.normpath(_rules.join(directory, reference))


def resolve_command(command: str, directory: str | None) -> str:
    """A bare name is looked up in PATH when it is run; only a command with a separator is a file."""
    return resolve_file(command, directory) if has_separator(command) else command


def has_separator(command: str) -> bool:
    return _rules.sep in command or bool(_rules.altsep and _rules.altsep in command)
