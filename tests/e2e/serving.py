"""`kubeauthn serve` as a process, and the files that tie it to a kube-apiserver."""

from __future__ import annotations

import sys
import urllib.error
import urllib.request
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import yaml

from kubeauthn.testing import CertificateAuthority, Issuer
from tests.e2e.cluster import kubeconfig_text
from tests.e2e.processes import Running, free_port, poll

__all__ = ["Serving", "configuration", "webhook_kubeconfig"]

READY_SECONDS = 30.0


def entry(issuer: Issuer, **parts: Any) -> dict[str, Any]:
    """One `jwt` entry for an issuer."""
    return {
        "issuer": {
            "url": issuer.url,
            "audiences": [issuer.client_id],
            "certificateAuthority": issuer.ca.certificate_pem.decode(),
        },
        **parts,
    }


def configuration(first: Issuer, second: Issuer) -> str:
    """Two issuers: one mapped by claims with prefixes, one by expressions with rules."""
    by_claim = entry(
        first,
        claimMappings={
            "username": {"claim": "sub", "prefix": "first:"},
            "groups": {"claim": "groups", "prefix": "first:"},
        },
    )
    by_expression = entry(
        second,
        claimValidationRules=[
            {"expression": "claims.?tenant.orValue('') == 'prod'", "message": "wrong tenant"},
            {"claim": "kind", "requiredValue": "user"},
        ],
        claimMappings={
            "username": {"expression": "'second:' + claims.sub"},
            "groups": {"expression": "dyn(claims.?roles.orValue([])).map(r, 'role:' + r)"},
            "uid": {"claim": "oid"},
            "extra": [{"key": "example.com/tenant", "valueExpression": "claims.tenant"}],
        },
        userValidationRules=[{"expression": "!user.username.startsWith('second:system:')", "message": "reserved"}],
    )
    document = {
        "apiVersion": "apiserver.config.k8s.io/v1",
        "kind": "AuthenticationConfiguration",
        "jwt": [by_claim, by_expression],
    }
    return str(yaml.safe_dump(document, sort_keys=False))


class Serving:
    """The server on a port of its own; `restart` takes the same port again."""

    def __init__(self, directory: Path, config: Path, *flags: str) -> None:
        self.ca = CertificateAuthority("webhook CA")
        self.port = free_port()
        self.url = f"https://127.0.0.1:{self.port}"
        leaf = self.ca.issue_server()
        certificate, key = directory / f"serve-{self.port}.crt", directory / f"serve-{self.port}.key"
        certificate.write_bytes(leaf.chain_pem)
        key.touch(mode=0o600)
        key.write_bytes(leaf.key_pem)
        self._log = directory / f"serve-{self.port}.log"
        self._command = [
            sys.executable,
            "-m",
            "kubeauthn",
            "serve",
            config,
            "--listen",
            f"127.0.0.1:{self.port}",
            "--tls-cert",
            certificate,
            "--tls-key",
            key,
            *flags,
        ]
        self._running: Running | None = None

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    @property
    def running(self) -> Running:
        assert self._running is not None
        return self._running

    @property
    def log(self) -> str:
        return self._log.read_text(errors="replace")

    def start(self) -> None:
        self._running = Running(self._command, self._log)
        poll(self._is_ready, READY_SECONDS, f"kubeauthn serve is ready\n{self._log.read_text()[-2000:]}")

    def stop(self) -> None:
        if self._running is not None:
            self._running.stop(30.0)
            self._running = None

    def metrics(self) -> str:
        return self._get("/metrics")

    def _is_ready(self) -> bool:
        self.running.check_alive()
        try:
            self._get("/readyz")
        except (urllib.error.URLError, OSError):
            return False
        return True

    def _get(self, path: str) -> str:
        opener = urllib.request.build_opener(
            urllib.request.ProxyHandler({}), urllib.request.HTTPSHandler(context=self.ca.client_context())
        )
        with opener.open(f"{self.url}{path}", timeout=5) as answer:
            return str(answer.read().decode())


def webhook_kubeconfig(path: Path, serving: Serving, url: str = "") -> Path:
    """What kube-apiserver reads; `url` where somebody stands between the two."""
    path.write_text(kubeconfig_text(f"{url or serving.url}/authenticate", serving.ca, {}))
    return path
