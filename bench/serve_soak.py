"""Load on `kubeauthn serve` while its file changes each second and the issuer's keys every five.

    python -m bench.serve_soak [--seconds 60] [--workers 2] [--ahead 7]

Counts wrong answers, answers of 5xx and lost connections, of which there must be none, and shows how memory went.

The keys rotate as issuers should rotate them: a key is published at least 30 s before it signs. Unknown key ids cause a
look-up every 30 s at most (`fetch_limits.UNKNOWN_KEY_SECONDS`), or whoever sends made-up ones would have the issuer
asked without end. A look-up brings along every key that signs within the next 30 s, and so no token is ever refused.
With a new key every 5 s that takes seven keys ahead. With `--ahead 0` a key signs as soon as it is published, and a
second rotation within the 30 s shows as refusals: that is the limit at work, and docs/running.md says so.

A wrong answer is a user of neither the configuration before nor the one after a change, or a refusal of a good token.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import math
import os
import signal
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass, field
from pathlib import Path
from statistics import mean

import httpx2

from kubeauthn._core.authentication import fetch_limits
from kubeauthn.testing import Issuer

CALLERS = 8
ROTATE_SECONDS = 5.0
RELOAD_SECONDS = 1.0
AHEAD = math.ceil(fetch_limits.UNKNOWN_KEY_SECONDS / ROTATE_SECONDS) + 1
"""Keys that are published and do not sign yet. One more than 30 s take: a rotation may come a little early."""
KEPT_KEYS = 2
"""An issuer publishes a new key beside the last one, as real ones do."""


@dataclass
class Soak:
    """What was seen."""

    requests: int = 0
    wrong: dict[str, int] = field(default_factory=dict)
    """What went wrong, and how often: all of it is counted."""
    first_wrong_seconds: float | None = None
    reloads: int = 0
    rotations: int = 0
    memory: list[int] = field(default_factory=list)
    """Bytes of all workers together, once a second."""

    def memory_before_and_after(self) -> tuple[float, float]:
        """Bytes in the second third and in the last: the first one still fills caches."""
        third = max(1, len(self.memory) // 3)
        return mean(self.memory[third : 2 * third] or self.memory), mean(self.memory[-third:])


def configuration(issuer: Issuer, number: int) -> str:
    document = {
        "apiVersion": "apiserver.config.k8s.io/v1",
        "kind": "AuthenticationConfiguration",
        "jwt": [
            {
                "issuer": {
                    "url": issuer.url,
                    "audiences": ["kubernetes"],
                    "certificateAuthority": issuer.ca.certificate_pem.decode(),
                },
                "claimMappings": {"username": {"claim": "sub", "prefix": f"g{number}:"}},
            }
        ],
    }
    return json.dumps(document)


async def soak(seconds: float, workers: int, ahead: int = AHEAD) -> Soak:
    """`ahead` keys are published before they sign."""
    seen = Soak()
    with Issuer() as issuer, tempfile.TemporaryDirectory() as directory:
        for _ in range(ahead + 1):
            issuer.rotate()
        file = Path(directory, "authentication.yaml")
        file.write_text(configuration(issuer, 0))
        command = [sys.executable, "-m", "kubeauthn", "serve", str(file), "--listen", "127.0.0.1:0"]
        process = await asyncio.create_subprocess_exec(
            *command,
            "--workers",
            str(workers),
            "--log-format",
            "json",
            "--show-reasons",
            stderr=subprocess.PIPE,
            limit=1 << 20,
        )
        try:
            assert process.stderr is not None
            address = await asyncio.wait_for(_address(process.stderr), 30)
            draining = asyncio.create_task(_drain(process.stderr))
            await _ready(address)
            await _load(seen, issuer, file, address, process.pid, seconds)
            draining.cancel()
        finally:
            process.send_signal(signal.SIGTERM)
            await asyncio.wait_for(process.wait(), 40)
    return seen


async def _load(seen: Soak, issuer: Issuer, file: Path, address: str, pid: int, seconds: float) -> None:
    begun = time.monotonic()
    ends = begun + seconds
    # The numbers of configurations that may answer: from the last one known to be in force to the newest written.
    window = [0, 0]
    signing = 0

    def token() -> str:
        now = int(time.time())
        claims = {"iss": issuer.url, "aud": "kubernetes", "sub": "jane", "iat": now, "exp": now + 3600}
        return issuer.sign(claims, kid=issuer.kids[signing])

    tokens = [token()]

    async def change() -> None:
        nonlocal signing
        rotate_at = time.monotonic() + ROTATE_SECONDS
        while time.monotonic() < ends:
            window[1] += 1
            new = file.with_suffix(".new")
            new.write_text(configuration(issuer, window[1]))
            new.rename(file)
            seen.reloads += 1
            await asyncio.sleep(RELOAD_SECONDS)
            seen.memory.append(_memory(pid))
            if time.monotonic() >= rotate_at:
                rotate_at += ROTATE_SECONDS
                await asyncio.to_thread(issuer.rotate)
                seen.rotations += 1
                # Tokens of the new key come at once; those of the key before last are no longer sent.
                signing += 1
                tokens.append(token())
                del tokens[:-KEPT_KEYS]

    async def call(number: int) -> None:
        async with httpx2.AsyncClient(base_url=address, timeout=20) as client:
            while time.monotonic() < ends:
                token = tokens[(seen.requests + number) % len(tokens)]
                problem = await _ask(client, token, window)
                seen.requests += 1
                if problem:
                    seen.wrong[problem] = seen.wrong.get(problem, 0) + 1
                    if seen.first_wrong_seconds is None:
                        seen.first_wrong_seconds = time.monotonic() - begun

    await asyncio.gather(change(), *(call(number) for number in range(CALLERS)))


async def _ask(client: httpx2.AsyncClient, token: str, window: list[int]) -> str:
    body = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenReview", "spec": {"token": token}}
    oldest = window[0]
    try:
        answer = await client.post("/", json=body)
    except httpx2.HTTPError as error:
        return type(error).__name__
    if answer.status_code != 200:
        return f"status {answer.status_code}"
    status = answer.json()["status"]
    prefix, _, name = status.get("user", {}).get("username", "").partition(":")
    if not status.get("authenticated") or name != "jane" or not prefix[1:].isdigit():
        return f"not authenticated: {status.get('error', '')}"
    number = int(prefix[1:])
    # Whoever asked after an answer of generation n must get n or a later one, give or take the change of one moment.
    if not oldest - 1 <= number <= window[1]:
        return f"generation {number}, expected {oldest} to {window[1]}"
    window[0] = max(window[0], number)
    return ""


async def _address(stream: asyncio.StreamReader) -> str:
    while line := await stream.readline():
        if line.startswith(b"{") and "address" in (told := json.loads(line)):
            return str(told["address"])
    raise SystemExit("the server did not start")


async def _drain(stream: asyncio.StreamReader) -> None:
    while await stream.readline():
        pass


async def _ready(address: str) -> None:
    async with httpx2.AsyncClient(base_url=address) as client:
        for _ in range(600):
            if (await client.get("/readyz")).status_code == 200:
                return
            await asyncio.sleep(0.05)
    raise SystemExit("the server did not become ready")


def _memory(pid: int) -> int:
    """Of the process and its children."""
    pids = [pid, *map(int, Path(f"/proc/{pid}/task/{pid}/children").read_text().split())]
    page = os.sysconf("SC_PAGE_SIZE")
    return sum(int(Path(f"/proc/{number}/statm").read_text().split()[1]) * page for number in pids)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n\n")[0])
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument(
        "--ahead", type=int, default=AHEAD, help="keys that are published before they sign (%(default)s)"
    )
    arguments = parser.parse_args()
    seen = asyncio.run(soak(arguments.seconds, arguments.workers, arguments.ahead))
    wrong = sum(seen.wrong.values())
    print(f"{seen.requests} requests, {seen.reloads} reloads, {seen.rotations} rotations, {wrong} wrong")
    before, after = seen.memory_before_and_after()
    print(f"memory at the end {seen.memory[-1] >> 20} MiB, {after / before:.3f} times that of before")
    for problem, count in seen.wrong.items():
        print(f"  {count} x {problem}")
    if seen.first_wrong_seconds is not None:
        print(f"  the first after {seen.first_wrong_seconds:.1f} s")
    return 1 if seen.wrong else 0


if __name__ == "__main__":
    raise SystemExit(main())
