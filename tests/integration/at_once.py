"""A command that many terminals start at the same time."""

from __future__ import annotations

import subprocess
from collections.abc import Mapping, Sequence


def start_at_once(command: Sequence[str], environment: Mapping[str, str], count: int) -> list[subprocess.Popen[str]]:
    return [
        subprocess.Popen(
            command,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for _ in range(count)
    ]
