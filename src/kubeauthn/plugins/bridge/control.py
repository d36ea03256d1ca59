"""How a bridge is asked for a certificate, looked at, and stopped: one line each way on a private unix socket."""

from __future__ import annotations

import json
import os
import socket
import struct
from typing import Any

from kubeauthn._io.files import read_or_problem
from kubeauthn.errors import EnvironmentFailure
from kubeauthn.plugins.bridge import definition as definitions
from kubeauthn.plugins.bridge.environment import MARKS_BYTES

ASK_SECONDS = 10.0
ANSWER_BYTES = 64 * 1024
QUESTION_BYTES = MARKS_BYTES + ANSWER_BYTES
RUNNING = "running.json"


def socket_path(name: str) -> str | None:
    """Where the bridge said that it listens; it may be gone since."""
    content = read_or_problem(os.path.join(definitions.directory_of(name), RUNNING), ANSWER_BYTES)
    if not isinstance(content, bytes):
        return None
    try:
        path = json.loads(content)["socket"]
    except (ValueError, KeyError, TypeError):
        return None
    return path if isinstance(path, str) and os.path.isabs(path) else None


def ask(name: str, question: str) -> dict[str, Any] | None:
    """The bridge's answer; None where none runs."""
    path = socket_path(name)
    if path is None:
        return None
    try:
        with socket.socket(socket.AF_UNIX) as connection:
            connection.settimeout(ASK_SECONDS)
            connection.connect(path)
            if peer_of(connection) != os.geteuid():
                raise EnvironmentFailure("the bridge's socket is another user's")
            connection.sendall(f"{question}\n".encode())
            data = b""
            while piece := connection.recv(ANSWER_BYTES):
                data += piece
                if len(data) > ANSWER_BYTES:
                    raise EnvironmentFailure("the bridge's answer is too large")
    except OSError:
        return None
    try:
        answer = json.loads(data)
    except ValueError:
        return None  # it ended while it answered
    return answer if isinstance(answer, dict) else None


def peer_of(connection: socket.socket) -> int:
    """The user at the other end, as the kernel knows it."""
    if not hasattr(socket, "SO_PEERCRED"):
        return os.geteuid()  # the directory's mode alone says it there
    _, uid, _ = struct.unpack("3i", connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, struct.calcsize("3i")))
    return int(uid)
