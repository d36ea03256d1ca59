"""`kubeauthn plugin oidc` beside an issuer: run as a client runs it, with a program in the browser's place."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from kubeauthn._core import execwire
from kubeauthn.plugins.oidc.settings import Settings
from kubeauthn.testing import Issuer

KUBEAUTHN = str(Path(sys.executable).parent / "kubeauthn")
BROWSER = Path(__file__).with_name("oidc_browser.py")


class OidcScene:
    """One issuer, one home."""

    def __init__(self, issuer: Issuer, directory: Path) -> None:
        self.issuer = issuer
        self.directory = directory
        self.ca = directory / "issuer-ca.pem"
        self.ca.write_bytes(issuer.ca.certificate_pem)
        self.record = directory / "browser.jsonl"
        self.browser = f"{sys.executable} -I -S {BROWSER} {self.ca} {self.record}"

    @property
    def words(self) -> list[str]:
        return [
            f"--issuer-url={self.issuer.url}",
            f"--client-id={self.issuer.client_id}",
            f"--certificate-authority={self.ca}",
            f"--browser-command={self.browser}",
            "--listen=127.0.0.1:0",
            "--scope=offline_access",
        ]

    def settings(self, **changes: Any) -> Settings:
        plain = {
            "issuer_url": self.issuer.url,
            "client_id": self.issuer.client_id,
            "certificate_authority": str(self.ca),
            "browser_command": self.browser,
            "listen": ("127.0.0.1:0",),
            "scopes": ("openid", "offline_access"),
            "seconds": 30.0,
        }
        return Settings(**{**plain, **changes})

    def command(self, *words: str) -> list[str]:
        return [KUBEAUTHN, "plugin", "oidc", *self.words, *words]

    def environment(self, *, person: bool = True, **more: str) -> dict[str, str]:
        info = execwire.encode_exec_info(execwire.V1, interactive=person, cluster=None)
        return {**os.environ, execwire.VARIABLE: info, **more}

    def run(self, *words: str, person: bool = True, **more: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            self.command(*words),
            env=self.environment(person=person, **more),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=50,
        )

    def token(self, *words: str, **options: Any) -> str:
        done = self.run(*words, **options)
        assert done.returncode == 0, done.stderr
        return str(json.loads(done.stdout)["status"]["token"])

    def pages(self) -> list[dict[str, Any]]:
        return [json.loads(line) for line in self.record.read_text().splitlines()] if self.record.exists() else []

    def asked(self, path: str) -> int:
        return sum(request.path == path for request in self.issuer.requests)

    def cache(self) -> Path:
        return Path(os.environ["HOME"], ".cache", "kubeauthn", "oidc")

    def kept(self) -> Path:
        (file,) = self.cache().glob("*.json")
        return file


def until(condition: Callable[[], Any], seconds: float = 20.0) -> Any:
    deadline = time.monotonic() + seconds
    while not (found := condition()):
        assert time.monotonic() < deadline, "it never came to that"
        time.sleep(0.02)
    return found
