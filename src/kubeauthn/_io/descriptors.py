"""Descriptors of this process: how many it may have, and one by a path, for libraries that take nothing else."""

from __future__ import annotations

import contextlib
import os

from kubeauthn.errors import EnvironmentFailure

# Linux itself needs only the first; macOS has only the second.
_FOLDERS = ("/proc/self/fd", "/dev/fd")


def path_of(descriptor: int, folders: tuple[str, ...] = _FOLDERS) -> str:
    """Refused where there is none, before somebody is told that a file of his does not exist."""
    for folder in folders:
        if os.path.isdir(folder):
            return f"{folder}/{descriptor}"
    raise EnvironmentFailure(
        f"a private key cannot be loaded here without writing it to disk: there is neither {' nor '.join(folders)}",
        hint="mount /proc, or see docs/platforms.md",
    )


def make_room(wanted: int) -> int:
    """So many open files, as far as the system lets us: the usual 1,024 are not enough for a thousand connections.

    How many there may be now, at most `wanted`.
    """
    try:
        import resource
    except ImportError:  # Windows, which has no such limit
        return wanted
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = wanted if hard == resource.RLIM_INFINITY else min(hard, wanted)
    if soft != resource.RLIM_INFINITY and soft < wanted:
        with contextlib.suppress(OSError, ValueError):
            resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
            return wanted
        return soft
    return wanted
