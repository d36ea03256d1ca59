"""The request out of the environment, so that nothing that runs later can see it.

A signer's request holds the configuration, and with it perhaps a PIN. `os.environ.pop` alone keeps it from programs
that the plugin starts, but the system still shows the first environment in `/proc/PID/environ`: that memory is
overwritten too.
"""

from __future__ import annotations

import os
import sys

_ENV_START, _ENV_END = 47, 48
"""Fields 50 and 51 of `/proc/self/stat`, counted from behind the name, which may hold spaces."""


def take_out(name: str) -> str | None:
    """The variable's value, which from here on is nowhere but in the caller's hands."""
    value = os.environ.pop(name, None)
    if value is None:
        return None
    system = sys.modules.get("posix")
    if system is not None:
        system.environ.pop(os.fsencode(name), None)  # what os.environ was made from
    if sys.platform == "linux":
        _overwrite(os.fsencode(f"{name}="))
    return value


def _overwrite(prefix: bytes) -> None:
    """In the memory of this process. Where /proc is not mounted nobody can look there either."""
    try:
        with open("/proc/self/stat", "rb") as file:
            fields = file.read().rpartition(b")")[2].split()
        start, end = int(fields[_ENV_START]), int(fields[_ENV_END])
        with open("/proc/self/mem", "r+b", buffering=0) as memory:
            memory.seek(start)
            area = memory.read(end - start)
            at = 0
            while at < len(area):
                stop = area.find(b"\0", at)
                stop = stop if stop >= 0 else len(area)
                if area.startswith(prefix, at):
                    memory.seek(start + at)
                    memory.write(b"\0" * (stop - at))
                at = stop + 1
    except (OSError, ValueError, IndexError, OverflowError):
        return
