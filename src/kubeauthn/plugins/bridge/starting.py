"""Starts a bridge where none runs, and asks it for what a client needs."""

from __future__ import annotations

import os
import select
import subprocess
import sys
import time
from typing import Any

from kubeauthn.errors import EnvironmentFailure
from kubeauthn.plugins.bridge import control

START_SECONDS = 20.0


def credential(name: str) -> dict[str, Any]:
    """`certificate`, `key` (PEM) and `expires_at` for the bridge, which is started if it is absent."""
    answer = control.ask(name, "credential")
    if answer is None:
        start(name)
        answer = _until_it_answers(name)
    if not all(isinstance(answer.get(part), str) for part in ("certificate", "key")):
        raise EnvironmentFailure("the bridge gave no certificate")
    return answer


def start(name: str) -> None:
    """In a session of its own, so that it outlives whoever started it. Returns when it is ready."""
    readable, writable = os.pipe()
    try:
        environ = {key: value for key, value in os.environ.items() if key != "KUBERNETES_EXEC_INFO"}
        with open(os.devnull, "r+b") as null:
            process = subprocess.Popen(
                [sys.executable, "-P", "-m", "kubeauthn.plugins.bridge.daemon", name, str(writable)],
                stdin=null,
                stdout=null,
                stderr=null,
                env=environ,
                cwd="/",
                pass_fds=(writable,),
                start_new_session=True,
            )
        os.close(writable)
        writable = -1
        told = _read(readable)
    finally:
        os.close(readable)
        if writable >= 0:
            os.close(writable)
    process.returncode = process.poll() or 0  # it stays: Python must not complain that nobody waited
    verdict, _, rest = told.partition(" ")
    if verdict == "error":
        message, _, hint = rest.partition("\n")
        raise EnvironmentFailure(f"the bridge cannot start: {message}", hint=hint or None)
    if not verdict:
        raise EnvironmentFailure(f"the bridge did not start within {START_SECONDS:g} s")


def _read(descriptor: int) -> str:
    data, end = b"", time.monotonic() + START_SECONDS
    while (left := end - time.monotonic()) > 0 and select.select([descriptor], [], [], left)[0]:
        piece = os.read(descriptor, 4096)
        if not piece:
            break
        data += piece
    return data.decode("utf-8", "replace")


def _until_it_answers(name: str) -> dict[str, Any]:
    """Another start may have been first; then it is the one that will answer."""
    end = time.monotonic() + START_SECONDS
    while time.monotonic() < end:
        answer = control.ask(name, "credential")
        if answer is not None:
            return answer
        time.sleep(0.02)
    raise EnvironmentFailure("the bridge does not answer")
