"""After a failed signature, the pause before the next one is asked for. No lock, no clock: the shell has both."""

from __future__ import annotations

from kubeauthn._core import limits
from kubeauthn.errors import CredentialWaiting


class SigningPause:
    """A client opens connection after connection, and each would bring a wrong PIN to a token that counts them."""

    __slots__ = ("_failures", "_last_failure", "_not_before")

    def __init__(self) -> None:
        self._failures = 0
        self._not_before = 0.0
        self._last_failure = ""

    def waiting(self, now: float) -> CredentialWaiting | None:
        """The error for those who come before the next attempt is due."""
        seconds = min(self._not_before - now, limits.BACKOFF_LONGEST_SECONDS)
        if seconds <= 0:
            return None
        return CredentialWaiting(f"{self._last_failure}; next attempt in {seconds:.1f} s", retry_after=seconds)

    def failed(self, message: str, now: float) -> None:
        self._failures += 1
        seconds = limits.BACKOFF_FIRST_SECONDS * 2.0 ** min(self._failures - 1, 30)
        self._not_before = now + min(seconds, limits.BACKOFF_LONGEST_SECONDS)
        self._last_failure = message

    def succeeded(self) -> None:
        self._failures = 0
        self._not_before = 0.0
