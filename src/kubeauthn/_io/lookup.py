"""Find the executable that a command names, as Go's `exec.LookPath` does."""

from __future__ import annotations

import os


def find_executable(command: str) -> str | None:
    """The path to run, or None. A command with a separator is taken as it is.

    What `PATH` finds relative to the current directory is not used: whoever can write there
    could otherwise choose the plugin.
    """
    if os.sep in command or (os.altsep and os.altsep in command):
        return command if is_executable(command) else None
    if not command:
        return None
    for directory in os.environ.get("PATH", os.defpath).split(os.pathsep):
        if not os.path.isabs(directory):
            continue
        for suffix in _suffixes(command):
            path = os.path.join(directory, command + suffix)
            if is_executable(path):
                return path
    return None


def is_executable(path: str) -> bool:
    return os.path.isfile(path) and os.access(path, os.X_OK)


def _suffixes(command: str) -> list[str]:
    if os.name != "nt":
        return [""]
    known = os.environ.get("PATHEXT", ".COM;.EXE;.BAT;.CMD").lower().split(";")
    return [""] if any(command.lower().endswith(suffix) for suffix in known) else known
