"""`kubeauthn serve` as a process of its own, for tests: started, talked to, and ended by its id."""

from __future__ import annotations

import json
import os
import signal
import ssl
import subprocess
import sys
import threading
import time
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import httpx2

from kubeauthn.testing import CertificateAuthority

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from datetime import datetime
    from pathlib import Path
    from typing import Self

    from kubeauthn.testing import Issuer

PATIENCE = 30.0


def configuration(issuer: Issuer, *, prefix: str = "", extra: str = "") -> str:
    authority = "".join(f"        {line}\n" for line in issuer.ca.certificate_pem.decode().splitlines())
    return (
        "apiVersion: apiserver.config.k8s.io/v1\nkind: AuthenticationConfiguration\n"
        f"{extra}jwt:\n- issuer:\n    url: {issuer.url}\n    audiences: [kubernetes]\n"
        f"    certificateAuthority: |\n{authority}"
        f'  claimMappings:\n    username: {{claim: sub, prefix: "{prefix}"}}\n'
        '    groups: {claim: groups, prefix: ""}\n'
    )


def review(token: str, *, version: str = "v1", audiences: list[str] | None = None) -> dict[str, Any]:
    spec: dict[str, Any] = {"token": token}
    if audiences is not None:
        spec["audiences"] = audiences
    return {"apiVersion": f"authentication.k8s.io/{version}", "kind": "TokenReview", "spec": spec}


def until(condition: Callable[[], Any], what: str, seconds: float = PATIENCE) -> Any:
    ends = time.monotonic() + seconds
    while time.monotonic() < ends:
        found = condition()
        if found:
            return found
        time.sleep(0.02)
    raise AssertionError(f"not within {seconds} seconds: {what}")


class Serve:
    """Use it as a context manager. `lines` are the log, as objects."""

    def __init__(
        self,
        file: Path,
        *options: str,
        tls: Path | None = None,
        ca: CertificateAuthority | None = None,
        program: Sequence[str] = (sys.executable, "-m", "kubeauthn"),
    ) -> None:
        self.ca = ca or CertificateAuthority()
        command = [*program, "serve", str(file), "--log-format", "json", *options]
        if "--listen" not in options:
            command += ["--listen", "127.0.0.1:0"]
        if tls is not None:
            write_certificate(self.ca, tls)
            command += ["--tls-cert", str(tls / "tls.crt"), "--tls-key", str(tls / "tls.key")]
        self._command = command
        self.lines: list[dict[str, Any]] = []
        self.raw: list[str] = []
        self.stdout: list[str] = []

    def __enter__(self) -> Self:
        self.process = subprocess.Popen(self._command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        self._readers = [
            threading.Thread(target=self._read_log, daemon=True),
            threading.Thread(target=self._read_stdout, daemon=True),
        ]
        for reader in self._readers:
            reader.start()
        try:
            self.address: str = until(self._address, "the server listens")
        except AssertionError:
            self.process.kill()
            self.__exit__()
            raise AssertionError("".join(self.raw)) from None
        return self

    def __exit__(self, *_: object) -> None:
        if self.process.poll() is None:
            self.process.terminate()
        try:
            self.process.wait(PATIENCE)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        for reader in self._readers:
            reader.join(PATIENCE)
        for stream in (self.process.stdout, self.process.stderr):
            if stream is not None:
                stream.close()

    def _address(self) -> str | None:
        if self.process.poll() is not None:
            raise AssertionError("ended")
        return next((line["address"] for line in self.lines if line["message"] == "listening"), None)

    def _read_log(self) -> None:
        assert self.process.stderr is not None
        for line in self.process.stderr:
            self.raw.append(line)
            if line.startswith("{"):
                self.lines.append(json.loads(line))

    def _read_stdout(self) -> None:
        assert self.process.stdout is not None
        self.stdout.extend(self.process.stdout)

    def client(self, *, http2: bool = False, **options: Any) -> httpx2.Client:
        if self.address.startswith("https"):
            options.setdefault("verify", self.ca.client_context())
        base = self.address if self.address.startswith("http") else "http://localhost"
        return httpx2.Client(base_url=base, http1=not http2, http2=http2, timeout=PATIENCE, **options)

    def review(self, token: str, **options: Any) -> dict[str, Any]:
        """`status`, over a connection of its own."""
        with self.client() as client:
            answer = client.post("/", json=review(token, **options))
        assert answer.status_code == 200, answer.text
        status: dict[str, Any] = answer.json()["status"]
        return status

    def ready(self) -> Self:
        def asked() -> bool:
            with self.client() as client:
                return client.get("/readyz").status_code == 200

        until(asked, "the issuers have keys")
        return self

    def said(self, message: str, count: int = 1) -> list[dict[str, Any]]:
        """Waits until the log has it."""

        def found() -> list[dict[str, Any]] | None:
            lines = [line for line in self.lines if line["message"] == message]
            return lines if len(lines) >= count else None

        lines: list[dict[str, Any]] = until(found, message)
        return lines

    def metrics(self) -> str:
        with self.client() as client:
            return client.get("/metrics").text

    def workers(self) -> list[int]:
        with open(f"/proc/{self.process.pid}/task/{self.process.pid}/children") as file:
            children = [int(pid) for pid in file.read().split()]
        return [pid for pid in children if b"spawn_main" in _command_line(pid)]

    def hang_up(self) -> None:
        os.kill(self.process.pid, signal.SIGHUP)


def _command_line(pid: int) -> bytes:
    try:
        with open(f"/proc/{pid}/cmdline", "rb") as file:
            return file.read()
    except OSError:
        return b""


def write_certificate(ca: CertificateAuthority, directory: Path, *, not_after: datetime | None = None) -> bytes:
    """A new one, in place of the old. Returns it in DER."""
    directory.mkdir(exist_ok=True)
    pair = ca.issue_server(not_after=not_after, not_before=not_after and not_after - timedelta(days=1))
    for name, content in (("tls.crt", pair.chain_pem), ("tls.key", pair.key_pem)):
        (directory / f"{name}.new").write_bytes(content)
        (directory / f"{name}.new").rename(directory / name)
    return ssl.PEM_cert_to_DER_cert(pair.certificate_pem.decode())


def replace(file: Path, text: str) -> None:
    new = file.with_suffix(".new")
    new.write_text(text)
    new.rename(file)
