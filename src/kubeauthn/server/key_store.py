"""`--keep-keys DIR`: last good key sets on disk, so that a restart while an issuer is down still serves.

Who can write there can make keys that tokens are believed by. So the directory must be ours or root's, and nobody
else's to write; a file that is older than the limit, or says that it is from the future, is not read.
"""

from __future__ import annotations

import asyncio
import json
import logging
import os
import time
from hashlib import sha256
from typing import TYPE_CHECKING

from kubeauthn._core.authentication import fetch_limits
from kubeauthn._core.jose.keys import KeySet
from kubeauthn._io.files import Problem, read_or_problem, write_atomically
from kubeauthn.errors import EnvironmentFailure, KubeauthnError
from kubeauthn.server.discovery import issuer_documents

if TYPE_CHECKING:
    from collections.abc import Callable

    from kubeauthn._core.authentication.model import Issuer
    from kubeauthn._io.async_http import Document
    from kubeauthn._secret import Secret
    from kubeauthn.server.discovery import Documents
    from kubeauthn.server.keysets import DiscoveredKeys

_log = logging.getLogger("kubeauthn.server")

FORMAT = "kubeauthn.keys/v1"
_LOOK_SECONDS = 1.0
_FUTURE_SECONDS = 60.0


class Recording:
    """Documents that remember the last good answer: right after a fetch that worked, that is the key set."""

    def __init__(self, inner: Documents) -> None:
        self._inner = inner
        self.last = b""

    async def get(
        self, url: str, *, seconds: float, most_bytes: int = fetch_limits.DOCUMENT_BYTES, bearer: Secret | None = None
    ) -> Document:
        answer = await self._inner.get(url, seconds=seconds, most_bytes=most_bytes, bearer=bearer)
        if answer.status == 200:
            self.last = answer.body
        return answer


class KeyStore:
    """Raises EnvironmentFailure for a directory that others can write to."""

    def __init__(self, directory: str, seconds: float, *, clock: Callable[[], float] = time.time) -> None:
        self._directory = directory
        self._seconds = seconds
        self._clock = clock
        _check_private(directory)

    def recording(self, issuer: Issuer) -> Recording:
        return Recording(issuer_documents(issuer))

    def load(self, issuer: Issuer) -> KeySet | None:
        """The keys kept for this very issuer entry, if they are young enough."""
        content = read_or_problem(self._path(issuer), fetch_limits.DOCUMENT_BYTES + 4096, pipes=False)
        if isinstance(content, Problem):
            if not content.missing:
                _log.warning("kept keys of issuer %s are not used: the file %s", issuer.url, content.reason)
            return None
        try:
            kept = json.loads(content)
            age = self._clock() - float(kept["fetchedAt"])
            if kept["format"] != FORMAT or kept["issuer"] != issuer.url:
                raise ValueError("they are another issuer's")
            if not -_FUTURE_SECONDS <= age <= self._seconds:
                raise ValueError(f"they are {age:.0f} seconds old, and {self._seconds:.0f} is the limit")
            keys = KeySet.from_dict(kept["keys"])
        except (ValueError, KeyError, TypeError, RecursionError, KubeauthnError) as error:
            _log.warning("kept keys of issuer %s are not used: %s", issuer.url, error)
            return None
        _log.info("issuer %s: starting with keys that were kept %.0f seconds ago", issuer.url, age)
        return keys if keys else None

    async def keep(self, issuer: Issuer, recorded: Recording, discovered: DiscoveredKeys) -> None:
        """Write the keys down after each fetch that worked, until cancelled."""
        written: float | None = None
        while True:
            fetched = discovered.status.fetched_at
            if fetched is not None and fetched != written:
                written = fetched
                self._write(issuer, recorded.last, fetched)
            await asyncio.sleep(_LOOK_SECONDS)

    def _write(self, issuer: Issuer, document: bytes, fetched: float) -> None:
        try:
            kept = {"format": FORMAT, "issuer": issuer.url, "fetchedAt": fetched, "keys": json.loads(document)}
            if "keys" in kept["keys"]:
                write_atomically(self._path(issuer), json.dumps(kept).encode())
        except (OSError, ValueError, TypeError, RecursionError, KubeauthnError) as error:
            _log.warning("keys of issuer %s could not be kept: %s", issuer.url, type(error).__name__)

    def _path(self, issuer: Issuer) -> str:
        """Another address or CA is another issuer."""
        identity = "\0".join((issuer.url, issuer.discovery_url, issuer.certificate_authority))
        return os.path.join(self._directory, f"{sha256(identity.encode()).hexdigest()}.json")


def _check_private(directory: str) -> None:
    try:
        os.makedirs(directory, mode=0o700, exist_ok=True)
        state = os.stat(directory)
    except OSError as error:
        raise EnvironmentFailure(f"{directory}: {error.strerror or 'cannot be used'}") from None
    if state.st_uid not in (0, os.geteuid()):
        raise EnvironmentFailure(f"{directory} belongs to another user: keys that are kept there cannot be trusted")
    if state.st_mode & 0o022:
        raise EnvironmentFailure(
            f"{directory} can be written by others: keys that are kept there cannot be trusted",
            hint=f"chmod go-w {directory}",
        )
