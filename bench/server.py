"""The API server that requests are timed against, in a process of its own so that it takes nothing from the client."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

TOKEN = "bench-token"


@dataclass(frozen=True)
class RunningServer:
    url: str
    ca: bytes


@contextmanager
def server_in_another_process() -> Iterator[RunningServer]:
    with subprocess.Popen(
        [sys.executable, "-m", "bench.server"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        cwd=Path(__file__).parent.parent,
    ) as process:
        assert process.stdout is not None
        try:
            told = json.loads(process.stdout.readline())
            yield RunningServer(told["url"], told["ca"].encode())
        finally:
            process.terminate()


def main() -> None:
    from kubeauthn.testing.apiserver import ApiServer

    with ApiServer(tokens={TOKEN: "bench"}) as server:
        print(json.dumps({"url": server.url, "ca": server.ca.certificate_pem.decode()}), flush=True)
        sys.stdin.read()


if __name__ == "__main__":
    main()
