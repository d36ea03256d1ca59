"""A descriptor of this process by a path, for libraries that open files and take nothing else."""

from __future__ import annotations

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
