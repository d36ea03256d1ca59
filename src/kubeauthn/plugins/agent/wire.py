"""What a signer and the agent say to each other: one JSON line each way, over a socket that only their user reaches."""

from __future__ import annotations

import json
import os
import stat

from kubeauthn._core.signerwire import PATH_KEY
from kubeauthn.errors import EnvironmentFailure

TYPE_CHECKING = False
if TYPE_CHECKING:
    import socket
    from collections.abc import Mapping
    from typing import Any

VERSION = 1
VARIABLE = "KUBEAUTHN_SIGNER_AGENT"
"""The agent's socket, where it is not in the usual place; `none` for "do not ask an agent"."""
LONGEST_LINE = 256 * 1024
SECONDS = 60.0
"""How long a signer waits for the agent, and the agent for a signer's next line: a person may be touching a key."""
NOT_IDENTITY = ("pin", "pinSource", "touch", PATH_KEY)
"""What does not say which key is meant: it need not be the same on both sides, and is the signer's own business."""


def socket_path(environ: Mapping[str, str]) -> str:
    """Where the agent listens; empty where there is no place that is only ours."""
    named = environ.get(VARIABLE, "")
    if named:
        return "" if named == "none" else named
    runtime = environ.get("XDG_RUNTIME_DIR", "")
    return os.path.join(runtime, "kubeauthn", "signer-agent.sock") if os.path.isabs(runtime) else ""


def check_place(path: str) -> None:
    """The socket's directory is ours, and nobody else may even look into it."""
    folder = os.path.dirname(path)
    try:
        status = os.lstat(folder)
    except OSError as error:
        raise EnvironmentFailure(f"signer agent: {folder}: {(error.strerror or 'cannot be read').lower()}") from None
    if not stat.S_ISDIR(status.st_mode) or status.st_uid != os.getuid() or status.st_mode & 0o077:
        raise EnvironmentFailure(
            f"signer agent: {folder} must be a directory of yours with mode 0700, else others could listen there",
            hint=f"{VARIABLE}=none goes without the agent",
        )


def check_peer(connection: socket.socket) -> None:
    """The process at the other end belongs to our user: the kernel says so, not the process."""
    import socket as sockets
    import struct

    if not hasattr(sockets, "SO_PEERCRED"):
        raise EnvironmentFailure("the signer agent needs a system that says who is at the other end of a socket")
    size = struct.calcsize("3i")
    _, user, _ = struct.unpack("3i", connection.getsockopt(sockets.SOL_SOCKET, sockets.SO_PEERCRED, size))
    if user != os.getuid():
        raise EnvironmentFailure(f"signer agent: the other end belongs to user {user}, not to {os.getuid()}")


def identity(configuration: Mapping[str, str]) -> dict[str, str]:
    return {name: value for name, value in configuration.items() if name not in NOT_IDENTITY and value}


def send(connection: socket.socket, message: dict[str, Any]) -> None:
    connection.sendall(json.dumps({"version": VERSION, **message}, separators=(",", ":")).encode() + b"\n")


def receive(connection: socket.socket) -> dict[str, Any] | None:
    """One message; None at the end. Never quotes what came: it may hold a PIN."""
    line = bytearray()
    while not line.endswith(b"\n"):
        chunk = connection.recv(65536)
        if not chunk:
            return None
        line += chunk
        if len(line) > LONGEST_LINE:
            raise EnvironmentFailure("signer agent: a message is too long")
    message = None
    try:
        message = json.loads(line)
    except (ValueError, RecursionError):
        pass
    if not isinstance(message, dict) or message.get("version") != VERSION:
        raise EnvironmentFailure("signer agent: the other end does not speak this version")
    return message
