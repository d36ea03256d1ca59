"""Two replicas behind the real HAProxy: one is killed and comes back under load, and nobody notices who tries twice."""

from __future__ import annotations

import shutil
import socket
import subprocess
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx2
import pytest

from kubeauthn.testing import CertificateAuthority, Issuer
from tests.conftest import SYSTEM_PATH
from tests.integration.serve_process import Serve, configuration, review, until

PAGE = Path(__file__).resolve().parents[2] / "docs" / "running.md"


def documented(bind: str, authority: Path, one: str, two: str) -> str:
    """The configuration of the page, with the addresses of this test."""
    text = PAGE.read_text().partition("```haproxy\n")[2].partition("```")[0]
    changes = {
        ":8443 ssl crt /etc/haproxy/webhook.pem": bind,
        "/etc/haproxy/replicas.crt": str(authority),
        "192.0.2.1:8443": one,
        "192.0.2.2:8443": two,
    }
    for old, new in changes.items():
        assert text.count(old) == 1, old
        text = text.replace(old, new)
    return text


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


@contextmanager
def haproxy(directory: Path, ca: CertificateAuthority, *replicas: str) -> Iterator[httpx2.URL]:
    port = free_port()
    file, authority = directory / "haproxy.cfg", directory / "replicas.crt"
    authority.write_bytes(ca.certificate_pem)
    file.write_text(documented(f"127.0.0.1:{port}", authority, *replicas))
    program = shutil.which("haproxy", path=SYSTEM_PATH)
    assert program
    process = subprocess.Popen([program, "-db", "-f", str(file)], stderr=subprocess.DEVNULL)
    try:
        yield httpx2.URL(f"http://127.0.0.1:{port}")
    finally:
        process.terminate()
        process.wait(40)


RETRY_SECONDS = 0.1
"""kube-apiserver waits half a second. At once, HAProxy may not have seen that its other connections are dead too."""


class Caller(threading.Thread):
    """Asks about one token again and again, and tries once more where that fails, as a careful client would."""

    def __init__(self, url: httpx2.URL, token: str, name: str, stop: threading.Event, phase: list[str]) -> None:
        super().__init__(daemon=True)
        self.url, self.token, self.user, self.stop = url, token, name, stop
        self.phase = phase
        self.answered = self.retried = 0
        self.lost: list[str] = []

    def run(self) -> None:
        with httpx2.Client(base_url=self.url, timeout=10) as client:
            while not self.stop.is_set() and self.answered < 20_000:
                problem = self.ask(client)
                if problem:
                    self.retried += 1
                    self.stop.wait(RETRY_SECONDS)
                    problem = self.ask(client)
                if problem:
                    self.lost.append(f"{problem} while {self.phase[0]}")
                self.answered += 1
                self.stop.wait(0.002)

    def ask(self, client: httpx2.Client) -> str:
        try:
            answer = client.post("/", json=review(self.token))
        except httpx2.HTTPError as error:
            return type(error).__name__
        if answer.status_code != 200:
            return str(answer.status_code)
        user = answer.json()["status"].get("user", {}).get("username")
        return "" if user == self.user else f"wrong answer: {user}"


@pytest.mark.needs("haproxy")
def test_a_replica_that_is_killed_and_comes_back_costs_at_most_one_retry(tmp_path: Path):
    ports, ca = [free_port(), free_port()], CertificateAuthority()
    with Issuer() as issuer:
        file = tmp_path / "authentication.yaml"
        file.write_text(configuration(issuer))

        def replica(port: int) -> Serve:
            return Serve(file, "--listen", f"127.0.0.1:{port}", tls=tmp_path / f"tls-{port}", ca=ca)

        tokens = {name: issuer.token(name, audience="kubernetes") for name in ("jane", "john", "eve", "bob")}
        with replica(ports[0]) as one, replica(ports[1]) as two:
            one.ready(), two.ready()
            with haproxy(tmp_path, ca, *(f"127.0.0.1:{port}" for port in ports)) as url:
                until(lambda: _answers(url), "HAProxy finds both")
                stop, phase = threading.Event(), ["both are there"]
                callers = [Caller(url, token, name, stop, phase) for name, token in tokens.items()]
                for caller in callers:
                    caller.start()
                try:
                    until(lambda: all(caller.answered > 50 for caller in callers), "there is load")
                    phase[0] = "one was killed"
                    for pid in (two.process.pid, *two.workers()):
                        _kill(pid)
                    two.process.wait(40)
                    seen = [caller.answered for caller in callers]
                    until(
                        lambda: all(c.answered > s + 100 for c, s in zip(callers, seen, strict=True)),
                        "it goes on with one",
                    )
                    with replica(ports[1]) as again:
                        again.ready()
                        before = _decided(again)
                        until(lambda: _decided(again) > before + 50, "the new one takes its part")
                        phase[0] = "one was told to end"
                        one.process.terminate()  # an orderly end, under load as well
                        one.process.wait(30)
                        seen = [caller.answered for caller in callers]
                        until(
                            lambda: all(c.answered > s + 100 for c, s in zip(callers, seen, strict=True)),
                            "it goes on with the other",
                        )
                        stop.set()
                        for caller in callers:
                            caller.join(20)
                finally:
                    stop.set()
    assert not [lost for caller in callers for lost in caller.lost]
    assert sum(caller.answered for caller in callers) > 800


def _kill(pid: int) -> None:
    import os
    import signal

    try:
        os.kill(pid, signal.SIGKILL)
    except ProcessLookupError:
        pass


def _answers(url: httpx2.URL) -> bool:
    try:
        return httpx2.get(url.join("/readyz"), timeout=5).status_code == 200
    except httpx2.HTTPError:
        time.sleep(0.05)
        return False


def _decided(server: Serve) -> float:
    lines = [line for line in server.metrics().splitlines() if line.startswith("kubeauthn_decisions_total{")]
    return sum(float(line.rpartition(" ")[2]) for line in lines)
