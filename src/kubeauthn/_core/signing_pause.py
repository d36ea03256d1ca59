"""After a failed signature, the pause before the next one is asked for. No lock, no clock: the shell has both."""

from __future__ import annotations

from kubeauthn._core import limits
from kubeauthn.errors import CredentialError, CredentialWaiting, PluginFailed


class SigningPause:
    """A client opens connection after connection, and each would bring a wrong PIN to a token that counts them."""

    __slots__ = ("_failures", "_last_failure", "_not_before", "_refused")

    def __init__(self) -> None:
        self._failures = 0
        self._not_before = 0.0
        self._last_failure = ""
        self._refused = False

    def standing(self, now: float) -> CredentialError | None:
        """The error for those who come before the next attempt is due; or at any time, after a stored PIN was wrong."""
        if self._refused:
            return PluginFailed(
                f"{self._last_failure}: the PIN was wrong, and a stored one is not tried again",
                hint="correct what is stored, then start this program anew",
            )
        seconds = min(self._not_before - now, limits.BACKOFF_LONGEST_SECONDS)
        if seconds <= 0:
            return None
        return CredentialWaiting(f"{self._last_failure}; next attempt in {seconds:.1f} s", retry_after=seconds)

    def failed(self, message: str, now: float) -> None:
        self._failures += 1
        seconds = limits.BACKOFF_FIRST_SECONDS * 2.0 ** min(self._failures - 1, 30)
        self._not_before = now + min(seconds, limits.BACKOFF_LONGEST_SECONDS)
        self._last_failure = message

    def refused(self, message: str) -> None:
        """The PIN was wrong, and nobody is there to type another."""
        self._refused, self._last_failure = True, message

    def succeeded(self) -> None:
        self._failures = 0
        self._not_before = 0.0
