"""Find the executable that a command names, as Go's `exec.LookPath` does."""

from __future__ import annotations

import errno
import os

from kubeauthn._core.limits import SCRIPT_LINE_BYTES

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator


def find_executable(command: str) -> str | None:
    """The path to run, or None. A command with a separator is taken as it is.

    What `PATH` finds relative to the current directory is not used: whoever can write there
    could otherwise choose the plugin.
    """
    return next((path for path in _candidates(command) if is_executable(path)), None)


def find_unexecutable(command: str) -> str | None:
    """Where `find_executable` finds nothing: the path of a file that is there and may not be executed, or None."""
    if find_executable(command) is not None:
        return None
    return next((path for path in _candidates(command) if os.path.isfile(path)), None)


def why_not_found(command: str) -> tuple[str, str]:
    """Where `find_executable` finds nothing: why, and what to do about it, which may be empty."""
    if path := find_unexecutable(command):
        return f"{path} is there, but not executable", f"chmod +x {path}"
    if not is_path(command):
        return f"{command}: not found on PATH", ""
    return f"{command}: is a directory" if os.path.isdir(command) else f"{command}: no such file", ""


def why_not_started(path: str, error: OSError | ValueError) -> tuple[str, str]:
    """Where the system does not start what `find_executable` found: why, and what to do about it, which may be empty.

    Of a script whose interpreter is missing it says that there is no such file, as if the script were meant.
    """
    reason = (getattr(error, "strerror", None) or str(error)).lower()
    code = getattr(error, "errno", None)
    if code not in (errno.ENOENT, errno.ENOEXEC) or not os.path.isfile(path):
        return reason, ""
    begin = _beginning(path)
    if code == errno.ENOEXEC:
        if begin.startswith(b"\xef\xbb\xbf"):
            return f"{reason}: a byte order mark stands before its first line", "save it as UTF-8 without it"
        return reason, "a script begins with #! and its interpreter; a program is made for one kind of machine"
    if not begin.startswith(b"#!"):
        return "what loads it is not there", "is it made for another system?"
    line = begin[2:].partition(b"\n")[0]
    if line.endswith(b"\r"):
        return "its lines end as on Windows, so its interpreter is not found", f"sed -i 's/\\r$//' {path}"
    return f"its interpreter is not there: {os.fsdecode(line.strip().partition(b' ')[0])}", ""


def is_executable(path: str) -> bool:
    return os.path.isfile(path) and os.access(path, os.X_OK)


def is_path(command: str) -> bool:
    """Whether the command has a separator, and so is not looked for on `PATH`."""
    return os.sep in command or bool(os.altsep and os.altsep in command)


def _candidates(command: str) -> Iterator[str]:
    if is_path(command):
        yield command
    elif command:
        for directory in os.environ.get("PATH", os.defpath).split(os.pathsep):
            if os.path.isabs(directory):
                for suffix in _suffixes(command):
                    yield os.path.join(directory, command + suffix)


def _beginning(path: str) -> bytes:
    try:
        with open(path, "rb") as file:
            return file.read(SCRIPT_LINE_BYTES)
    except OSError:
        return b""


def _suffixes(command: str) -> list[str]:
    if os.name != "nt":
        return [""]
    known = os.environ.get("PATHEXT", ".COM;.EXE;.BAT;.CMD").lower().split(";")
    return [""] if any(command.lower().endswith(suffix) for suffix in known) else known
