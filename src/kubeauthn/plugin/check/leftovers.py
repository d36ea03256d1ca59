"""Which processes outlive the run that started them. Linux only: elsewhere none is seen."""

from __future__ import annotations

import os
import signal
import time
from dataclasses import dataclass

GRACE_SECONDS = 0.5
"""A child may end a moment after its parent."""
_POLL_SECONDS = 0.02
_ENVIRONMENT_BYTES = 1 << 20


@dataclass(frozen=True, slots=True)
class Leftover:
    pid: int
    name: str
    group: int


def leftovers(session: int | None, mark: str) -> tuple[Leftover, ...]:
    """What still runs after a short wait: members of the plugin's session, or whatever carries its mark
    in the environment (a daemon makes a session of its own)."""
    deadline = time.monotonic() + GRACE_SECONDS
    while True:
        found = _scan(session, mark.encode())
        if not found or time.monotonic() > deadline:
            return found
        time.sleep(_POLL_SECONDS)


def end_group(found: tuple[Leftover, ...], group: int) -> None:
    """End what stayed in the plugin's own group. A daemon with a session of its own is meant to stay, and does."""
    for leftover in found:
        if leftover.group == group:
            try:
                os.kill(leftover.pid, signal.SIGKILL)
            except (ProcessLookupError, PermissionError):
                pass


def _scan(session: int | None, mark: bytes) -> tuple[Leftover, ...]:
    try:
        pids = [int(name) for name in os.listdir("/proc") if name.isdecimal()]
    except OSError:
        return ()
    found = []
    for pid in pids:
        if pid == os.getpid():
            continue
        try:
            with open(f"/proc/{pid}/stat", "rb") as file:
                name, state, group, its_session = _stat(file.read(4096))
            if state in ("Z", "X"):
                continue
            if its_session != session:
                with open(f"/proc/{pid}/environ", "rb") as file:
                    if mark not in file.read(_ENVIRONMENT_BYTES).split(b"\0"):
                        continue
        except (OSError, ValueError, IndexError):
            continue  # gone meanwhile, or another user's
        found.append(Leftover(pid, name, group))
    return tuple(found)


def _stat(line: bytes) -> tuple[str, str, int, int]:
    """Name, state, group and session. The name is in brackets and may itself hold brackets and spaces."""
    name = line[line.index(b"(") + 1 : line.rindex(b")")].decode("utf-8", "replace")
    state, _parent, group, session = line[line.rindex(b")") + 1 :].split()[:4]
    return name, state.decode(), int(group), int(session)
