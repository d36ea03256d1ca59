"""Servers that are measured from outside: started, ready, and what the kernel says of them and their children."""

from __future__ import annotations

import os
import signal
import socket
import ssl
import subprocess
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

_TICK = os.sysconf("SC_CLK_TCK")
_PATIENCE = 60.0
_ROOT = Path(__file__).resolve().parent.parent


@contextmanager
def running(
    command: Sequence[str], *, log: Path | None = None, environment: dict[str, str] | None = None
) -> Iterator[int]:
    """The process id of a server that ends with the block."""
    with open(log or os.devnull, "wb") as told:
        process = subprocess.Popen(
            command, stdout=told, stderr=told, cwd=_ROOT, env={**os.environ, **(environment or {})}
        )
        try:
            yield process.pid
        finally:
            process.send_signal(signal.SIGTERM)
            try:
                process.wait(30)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()


def await_answers(
    port: int, context: ssl.SSLContext, request: bytes, wanted: bytes, times: int, pause: float = 0.05
) -> None:
    """Until so many new connections in a row get the answer: every worker has probably been asked."""
    ends, good = time.monotonic() + _PATIENCE, 0
    while good < times:
        if time.monotonic() > ends:
            raise RuntimeError(f"the server on port {port} does not give the right answer")
        good = good + 1 if _answers(port, context, request, wanted) else 0
        if not good:
            time.sleep(pause)


def _answers(port: int, context: ssl.SSLContext, request: bytes, wanted: bytes) -> bool:
    with suppress(OSError), socket.create_connection(("127.0.0.1", port), timeout=5) as plain:
        with context.wrap_socket(plain, server_hostname="127.0.0.1") as connection:
            connection.sendall(request)
            received = b""
            while wanted not in received and (more := connection.recv(65536)):
                received += more
                if received.partition(b"\r\n\r\n")[2].endswith(b"}"):
                    break
            return wanted in received
    return False


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        found: int = probe.getsockname()[1]
        return found


def processor_seconds(pid: int) -> float:
    """Of a process and all below it."""
    total = 0
    for each in family(pid):
        with suppress(OSError):
            fields = Path(f"/proc/{each}/stat").read_text().rpartition(")")[2].split()
            total += int(fields[11]) + int(fields[12])
    return total / _TICK


def megabytes(pid: int) -> float:
    """Of a process and all below it; what several share is counted once."""
    total = 0
    for each in family(pid):
        with suppress(OSError):
            for line in Path(f"/proc/{each}/smaps_rollup").read_text().splitlines():
                if line.startswith("Pss:"):
                    total += int(line.split()[1])
    return total / 1e3


def resident_megabytes(pid: int) -> float:
    """Of one process, by a file that may be read even of one which lets nobody look into it."""
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith("VmRSS:"):
            return int(line.split()[1]) / 1024
    return 0.0


def family(pid: int) -> list[int]:
    found = [pid]
    for each in found:
        for children in Path(f"/proc/{each}/task").glob("*/children"):
            with suppress(OSError):
                found += [int(child) for child in children.read_text().split()]
    return found
