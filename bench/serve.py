"""`kubeauthn serve` beside a bare Granian application: processor time of the workers for each request.

Both run with TLS and keep-alive on this machine, and the same client asks them in turns. The client is Python and takes
a core of its own, so requests per second would measure the client: what is compared is the time that the kernel
says the worker processes used. 70 % of the bare rate is 1/0.7 of its time for each request.
"""

from __future__ import annotations

import json
import os
import socket
import ssl
import statistics
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from bench.measure import Row, ratio_row
from kubeauthn.server import Authenticator, load_configuration
from kubeauthn.testing import CertificateAuthority, Issuer

CONNECTIONS = 4
REPEATED = 1000
_TICK = os.sysconf("SC_CLK_TCK")


def rows(folder: Path, *, quick: bool) -> Iterator[Row]:
    requests, rounds = (2000, 2) if quick else (12_000, 5)
    ca = CertificateAuthority()
    pair = ca.issue_server()
    certificate, key, file = folder / "tls.crt", folder / "tls.key", folder / "authn.yaml"
    certificate.write_bytes(pair.chain_pem)
    key.write_bytes(pair.key_pem)
    with Issuer() as issuer:
        file.write_text(configuration(issuer))
        repeated = [request(issuer.token(f"user-{n}", audience="a")) for n in range(REPEATED)]
        different = [request(issuer.token(f"once-{n}", audience="a")) for n in range(requests * (rounds + 1))]
        alone = _authenticate_alone(issuer, requests)
        for workers in (1, 2):
            tls = ("--tls-cert", str(certificate), "--tls-key", str(key))
            port = _free_port()
            ours = [sys.executable, "-m", "kubeauthn", "serve", str(file), "--listen", f"127.0.0.1:{port}", *tls]
            bare_port = _free_port()
            bare = [sys.executable, "-m", "bench.serve_bare", str(certificate), str(key), str(bare_port), str(workers)]
            with running([*ours, "--workers", str(workers)], port) as pid, running(bare, bare_port) as bare_pid:
                load(bare_port, ca, repeated, len(repeated) * 2)
                cached: tuple[list[float], list[float]] = ([], [])
                fresh: list[float] = []
                for number in range(rounds):
                    cached[1].append(cost(bare_pid, bare_port, ca, repeated, requests))
                    load(port, ca, repeated, len(repeated) * 2)  # results are remembered for seconds only
                    cached[0].append(cost(pid, port, ca, repeated, requests))
                    part = different[number * requests : (number + 1) * requests] if workers == 1 else []
                    if part:
                        fresh.append(cost(pid, port, ca, part, requests))
            name = f"serve, HTTP/1.1, {REPEATED} tokens repeated, {workers} worker{'s' if workers > 1 else ''}"
            yield ratio_row(name, cached, peer_name="bare Granian", goal=1 / 0.7)
            if fresh:
                above = statistics.median(fresh) - statistics.median(cached[1])
                ratio = above / alone
                row = "serve, HTTP/1.1, all tokens different, 1 worker, above bare"
                yield Row(row, above * 1e6, alone * 1e6, "µs", ratio, "≤ 1.3 ×", ratio <= 1.3, "", "authenticate alone")


def configuration(issuer: Issuer) -> str:
    entry = {
        "issuer": {
            "url": issuer.url,
            "audiences": ["a"],
            "certificateAuthority": issuer.ca.certificate_pem.decode(),
        },
        "claimMappings": {"username": {"claim": "sub", "prefix": ""}},
    }
    return json.dumps(
        {"apiVersion": "apiserver.config.k8s.io/v1", "kind": "AuthenticationConfiguration", "jwt": [entry]}
    )


def request(token: str) -> bytes:
    review = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenReview", "spec": {"token": token}}
    body = json.dumps(review).encode()
    head = f"POST / HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\ncontent-length: {len(body)}\r\n\r\n"
    return head.encode() + body


def cost(pid: int, port: int, ca: CertificateAuthority, requests: Sequence[bytes], count: int) -> float:
    """Seconds of processor time for each request."""
    before = _processor_seconds(pid)
    load(port, ca, requests, count)
    return (_processor_seconds(pid) - before) / count


def load(port: int, ca: CertificateAuthority, requests: Sequence[bytes], count: int) -> None:
    """`count` requests over a few connections. Every answer must be an authenticated one."""
    faults: list[bytes] = []

    def ask(first: int) -> None:
        context = ca.client_context()
        with socket.create_connection(("127.0.0.1", port), timeout=30) as plain:
            with context.wrap_socket(plain, server_hostname="127.0.0.1") as connection:
                for number in range(first, count, CONNECTIONS):
                    connection.sendall(requests[number % len(requests)])
                    answer = _answer(connection)
                    if b'"authenticated":true' not in answer:
                        faults.append(answer)
                        return

    threads = [threading.Thread(target=ask, args=(first,)) for first in range(CONNECTIONS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if faults:
        raise AssertionError(f"a wrong answer: {faults[0][:300]!r}")


def _answer(connection: ssl.SSLSocket) -> bytes:
    received = connection.recv(65536)
    while received:
        head, end, body = received.partition(b"\r\n\r\n")
        if end:
            length = int(head.lower().partition(b"content-length:")[2].partition(b"\r\n")[0])
            if len(body) >= length:
                return body
        received += connection.recv(65536)
    return received


@contextmanager
def running(command: list[str], port: int) -> Iterator[int]:
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        _until_it_listens(port)
        time.sleep(3)  # every worker is there, and has its issuer's keys
        yield process.pid
    finally:
        process.terminate()
        process.wait(30)


def _until_it_listens(port: int) -> None:
    for _ in range(600):
        try:
            socket.create_connection(("127.0.0.1", port), timeout=1).close()
        except OSError:
            time.sleep(0.05)
        else:
            return
    raise AssertionError(f"nobody listens on port {port}")


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        found: int = probe.getsockname()[1]
        return found


def _processor_seconds(pid: int) -> float:
    """Of all worker processes: the children of the one that was started."""
    children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    total = 0
    for child in children:
        fields = Path(f"/proc/{child}/stat").read_text().rpartition(")")[2].split()
        total += int(fields[11]) + int(fields[12])
    return total / _TICK


def _authenticate_alone(issuer: Issuer, count: int) -> float:
    authenticator = Authenticator(load_configuration(configuration(issuer)), keys={issuer.url: issuer.jwks()})
    tokens = [issuer.token(f"alone-{n}", audience="a") for n in range(min(count, 3000))]
    begun = time.process_time()
    for token in tokens:
        authenticator.authenticate(token)
    return (time.process_time() - begun) / len(tokens)
