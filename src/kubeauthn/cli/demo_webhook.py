"""`kubeauthn serve` for the demo: a process of its own, whose address is read from what it prints, and its sure end."""

from __future__ import annotations

import base64
import os
import queue
import signal
import ssl
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from contextlib import AbstractContextManager
from importlib.util import find_spec
from pathlib import Path

import yaml

from kubeauthn.errors import EnvironmentFailure, MissingExtra

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import IO

Shield = Callable[[], AbstractContextManager[None]]
"""Holds interruptions back while it lasts."""
START_SECONDS = 20.0
STOP_SECONDS = 5.0
GRACE_SECONDS = 1
PRINTED_BYTES = 1 << 16
_NEEDED = {"granian": "granian", "prometheus_client": "prometheus-client", "re2": "google-re2"}


def check_installed() -> None:
    """Raises MissingExtra: better here than in the log of a process that has ended."""
    for module, package in _NEEDED.items():
        if not _is_there(module):
            raise MissingExtra(package, "serve")


def _is_there(module: str) -> bool:
    try:
        return find_spec(module) is not None
    except (ModuleNotFoundError, ValueError):  # by somebody who hides it
        return False


class Webhook:
    """`url` and `ca` are what it tells kube-apiserver, in the file that it prints. `stop` ends whatever was started."""

    def __init__(self, configuration: Path, directory: Path, environment: dict[str, str]) -> None:
        self._directory = directory
        self._log = directory / "webhook.log"
        self._environment = {**environment, "TMPDIR": str(directory)}
        listen = ("--listen", "127.0.0.1:0", "--self-signed", "--grace-period", str(GRACE_SECONDS))
        self._command = [sys.executable, "-P", "-m", "kubeauthn", "serve", str(configuration), *listen]
        self._process: subprocess.Popen[bytes] | None = None
        self.url = ""
        self.ca = b""

    def start(self, shield: Shield) -> None:
        """Returns when it is ready. The shield is held until the process is known, so that it can be stopped."""
        ends = time.monotonic() + START_SECONDS
        with open(self._log, "wb") as log, shield():
            # A session of its own: Ctrl-C is for the demo, which then ends this one, workers and all.
            self._process = subprocess.Popen(
                self._command,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=log,
                env=self._environment,
                start_new_session=True,
            )
        self._read_address(self._process, START_SECONDS)
        self._wait_until_ready(self._process, ends)

    def _read_address(self, process: subprocess.Popen[bytes], seconds: float) -> None:
        printed: queue.Queue[bytes] = queue.Queue()
        threading.Thread(target=_read_file, args=(process.stdout, printed), daemon=True).start()
        try:
            document = yaml.safe_load(printed.get(timeout=seconds))
        except queue.Empty:
            raise EnvironmentFailure(f"the webhook does not listen after {seconds:g} seconds") from None
        if not isinstance(document, dict):
            raise EnvironmentFailure(f"the webhook did not start: {self._last_words()}")
        cluster = document["clusters"][0]["cluster"]
        self.url = cluster["server"]
        self.ca = base64.b64decode(cluster["certificate-authority-data"])

    def _wait_until_ready(self, process: subprocess.Popen[bytes], ends: float) -> None:
        """It listens before it has the issuer's keys."""
        import httpx2

        where = self.url.removesuffix("/authenticate") + "/readyz"
        context = ssl.create_default_context(cadata=self.ca.decode())
        with httpx2.Client(verify=context, trust_env=False, timeout=START_SECONDS) as client:
            while True:
                try:
                    if client.get(where).status_code == 200:
                        return
                except httpx2.HTTPError:
                    pass  # the worker is on its way, or gone: see below
                if process.poll() is not None or time.monotonic() > ends:
                    raise EnvironmentFailure(f"the webhook is not ready: {self._last_words()}")
                time.sleep(0.05)

    def _last_words(self) -> str:
        lines = self._log.read_text("utf-8", "replace").splitlines()
        return lines[-1][:400] if lines else "it said nothing"

    def stop(self) -> None:
        """By its id, then whatever is left of its group: the workers of a server that was killed live on."""
        process = self._process
        if process is None:
            return
        if process.poll() is None:
            process.terminate()
            try:
                process.wait(GRACE_SECONDS + STOP_SECONDS)
            except subprocess.TimeoutExpired:
                pass
        _kill_group(process)
        process.wait()
        if process.stdout is not None:
            process.stdout.close()


def _read_file(stream: IO[bytes], printed: queue.Queue[bytes]) -> None:
    """One kubeconfig; its last line is known. An empty text if the process ends before."""
    content = b""
    for line in iter(stream.readline, b""):
        content += line
        if line.startswith(b"current-context:") or len(content) > PRINTED_BYTES:
            printed.put(content)
            return
    printed.put(b"")


def _kill_group(leader: subprocess.Popen[bytes]) -> None:
    """Until nobody of it is left; bounded, because an init that buries nobody would leave dead members for ever."""
    ends = time.monotonic() + STOP_SECONDS
    while time.monotonic() < ends:
        try:
            os.killpg(leader.pid, signal.SIGKILL)
        except (ProcessLookupError, PermissionError):
            return
        leader.poll()
        time.sleep(0.02)
