"""Starts a bridge where none runs, and asks it for what a client needs."""

from __future__ import annotations

import json
import os
import select
import subprocess
import sys
import time
from typing import Any

from kubeauthn.errors import EnvironmentFailure
from kubeauthn.plugins.bridge import control, environment

START_SECONDS = 20.0
BUSY_SECONDS = 4.0
"""How long one that serves another environment is waited for; more than it stays after its last client."""
_AGAIN_SECONDS = 1.0
"""Between two starts: the one whose lock was held may be about to answer, or to end."""
_LEAVING_SECONDS = 0.2
CREDENTIAL = "credential "
SERVES = "serves "
HELD = "held"


def credential(name: str) -> dict[str, Any]:
    """`certificate`, `key` (PEM) and `expires_at` for the bridge, which is started if it is absent.

    One that has another environment than this process ends for it where nobody uses it; else this one is refused,
    since a plugin that ran there could have another identity.
    """
    mine = environment.marks(os.environ)
    begun = time.monotonic()
    start_at = begun
    while (now := time.monotonic()) < begun + START_SECONDS:
        answer = control.ask(name, CREDENTIAL + json.dumps(mine))
        if answer is None:
            if now >= start_at and start(name) == HELD:
                start_at = time.monotonic() + _AGAIN_SECONDS
        elif all(isinstance(answer.get(part), str) for part in ("certificate", "key")):
            return answer
        elif answer.get("leaving"):
            start_at = now + _LEAVING_SECONDS
        else:
            _refuse_or_wait(name, answer, time.monotonic() - begun)
        time.sleep(0.02)
    raise EnvironmentFailure("the bridge does not answer")


def _refuse_or_wait(name: str, answer: dict[str, Any], waited: float) -> None:
    end_it = f"kubeauthn bridge stop {name} ends it"
    if "differing" not in answer:
        raise EnvironmentFailure("the bridge gave no certificate", hint=f"{end_it}, and the next call starts another")
    if waited >= BUSY_SECONDS:
        raise EnvironmentFailure(
            f"the bridge is in use from another environment; not the same: {answer['differing']}",
            hint=f"kubeauthn kubectl and kubeauthn bridge run start one beside it; {end_it}",
        )
    time.sleep(0.1)


def serves_others(name: str) -> bool:
    """Whether programs with another environment use this bridge now."""
    answer = control.ask(name, SERVES + json.dumps(environment.marks(os.environ)))
    return answer is not None and bool(answer.get("others"))


def start(name: str) -> str:
    """In a session of its own, so that it outlives whoever started it. Returns when it is ready, or `HELD`."""
    readable, writable = os.pipe()
    try:
        with open(os.devnull, "r+b") as null:
            process = subprocess.Popen(
                [sys.executable, "-P", "-m", "kubeauthn.plugins.bridge.daemon", name, str(writable)],
                stdin=null,
                stdout=null,
                stderr=null,
                env=environment.carried(os.environ),
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
    return verdict


def _read(descriptor: int) -> str:
    data, end = b"", time.monotonic() + START_SECONDS
    while (left := end - time.monotonic()) > 0 and select.select([descriptor], [], [], left)[0]:
        piece = os.read(descriptor, 4096)
        if not piece:
            break
        data += piece
    return data.decode("utf-8", "replace")
