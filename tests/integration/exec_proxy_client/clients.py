"""Clients of proxies, as processes of their own."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from kubeauthn.testing import ApiServer

PATH = "/api/v1/namespaces"
EXTENSIONS = [{"name": "client.authentication.k8s.io/exec-proxy", "extension": {"enabled": True}}]
root_only = pytest.mark.skipif(os.geteuid() != 0, reason="changes the owner of files")


def use(server: ApiServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, user: dict[str, object]) -> None:
    monkeypatch.setenv("KUBECONFIG", str(server.write_kubeconfig(tmp_path / "config", user)))


def users(server: ApiServer) -> list[str | None]:
    return [each.user for each in server.requests]


def start_client(code: str) -> subprocess.Popen[bytes]:
    return subprocess.Popen([sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE)


CLIENT = f"""
import sys
from kubeauthn.client import connect
api = connect()
assert api.get({PATH!r}).status_code == 200
print("ready", flush=True)
sys.stdin.readline()
"""


def ready(client: subprocess.Popen[bytes]) -> None:
    assert client.stdout is not None
    assert client.stdout.readline() == b"ready\n"


def running(pid: int) -> bool:
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
        # while a thread of it is left, its sockets are open
        return state != "Z" or len(list(Path(f"/proc/{pid}/task").iterdir())) > 1
    except OSError:
        return False


def end(process: subprocess.Popen[bytes]) -> None:
    process.kill()
    process.wait(40)
    for pipe in (process.stdin, process.stdout):
        if pipe is not None:
            pipe.close()
