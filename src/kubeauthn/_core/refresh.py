"""When to run a plugin, when to keep what it gave, and when to wait. No lock, no clock: the shell has both."""

from __future__ import annotations

from kubeauthn._core import limits
from kubeauthn._core.credential import Credential
from kubeauthn.errors import CredentialWaiting


class RefreshState:
    """One credential and its history.

    After a failed run the next one is not due for a while, so that a broken plugin is not run in
    a hot loop. The same holds when a credential that was made *because* of a 401 is itself refused:
    running the plugin again would most likely change nothing.
    """

    __slots__ = ("_failures", "_last_failure", "_losses", "_not_before", "_refusals", "current")

    def __init__(self) -> None:
        self.current: Credential | None = None
        self._not_before = 0.0
        self._failures = 0
        self._refusals = 0
        self._losses = 0
        self._last_failure = ""

    def usable(self, now: float) -> Credential | None:
        credential = self.current
        return credential if credential is not None and credential.usable(now) else None

    def must_wait(self, now: float) -> CredentialWaiting | None:
        """The error for those who come before the next run is due."""
        seconds = self._not_before - now
        if seconds <= 0:
            return None
        # A clock that was set back must not stretch the wait beyond its longest.
        seconds = min(seconds, limits.BACKOFF_LONGEST_SECONDS)
        return CredentialWaiting(f"{self._last_failure}; next attempt in {seconds:.1f} s", retry_after=seconds)

    def made(self, credential: Credential) -> None:
        self.current = credential
        self._failures = 0
        self._not_before = 0.0

    def failed(self, message: str, now: float) -> None:
        self.current = None
        self._failures += 1
        self._wait(message, self._failures, now)

    def refused(self, credential: Credential, now: float) -> bool:
        """A server answered 401 to it. True if it was still the current one and is now dropped."""
        if credential is not self.current:
            return False
        self.current = None
        self._refusals = 1 if credential.proven else self._refusals + 1
        if self._refusals > 1:
            self._wait("the server refused the new credential (401)", self._refusals - 1, now)
        return True

    def lost(self, credential: Credential, message: str, now: float) -> None:
        """Nobody listens at the proxy it leads through, or its signer has another key by now. When the next one never
        works either, it is time to wait."""
        if credential is not self.current:
            return
        self.current = None
        self._losses = 1 if credential.proven else self._losses + 1
        if self._losses > 1:
            self._wait(message, self._losses - 1, now)

    def after_fork(self) -> None:
        """A proxy is its client's alone, and a child is another client."""
        if self.current is not None and self.current.route is not None:
            self.current = None

    def accepted(self, credential: Credential) -> None:
        credential.proven = True
        self._refusals = self._losses = 0

    def _wait(self, message: str, times: int, now: float) -> None:
        seconds = limits.BACKOFF_FIRST_SECONDS * 2.0 ** min(times - 1, 30)
        self._not_before = now + min(seconds, limits.BACKOFF_LONGEST_SECONDS)
        self._last_failure = message
