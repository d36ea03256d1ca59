"""After a failed signature, the pause before the next one is asked for. No lock, no clock: the shell has both."""

from __future__ import annotations

from kubeauthn._core import limits
from kubeauthn.errors import CredentialError, CredentialWaiting, PluginFailed


class SigningPause:
    """A client opens connection after connection, and each would bring a wrong PIN to a token that counts them."""

    __slots__ = ("_failures", "_last_failure", "_not_before", "_refusal")

    def __init__(self) -> None:
        self._failures = 0
        self._not_before = 0.0
        self._last_failure = ""
        self._refusal: tuple[str, str] | None = None

    def refusal(self) -> CredentialError | None:
        """The error for everybody from now on, after a stored PIN was wrong, or may have been."""
        return PluginFailed(self._refusal[0], hint=self._refusal[1]) if self._refusal is not None else None

    def standing(self, now: float) -> CredentialError | None:
        """The same; or the error for those who come before the next attempt is due."""
        if (refusal := self.refusal()) is not None:
            return refusal
        seconds = min(self._not_before - now, limits.BACKOFF_LONGEST_SECONDS)
        if seconds <= 0:
            return None
        return CredentialWaiting(f"{self._last_failure}; next attempt in {seconds:.1f} s", retry_after=seconds)

    def failed(self, message: str, now: float, *, person: bool) -> None:
        """Where a person is asked, they decide when to go on: the pause does not grow.

        It is there for what begins a connection anew by itself: a library that tries three times, handshakes in a row.
        """
        self._failures = 1 if person else self._failures + 1
        seconds = limits.BACKOFF_FIRST_SECONDS * 2.0 ** min(self._failures - 1, 30)
        self._not_before = now + min(seconds, limits.BACKOFF_LONGEST_SECONDS)
        self._last_failure = message

    def refused(self, message: str) -> None:
        """The PIN was wrong, and nobody is there to type another."""
        self._refusal = (
            f"{message}: the PIN was wrong, and a stored one is not tried again",
            "correct what is stored, then start this program anew",
        )

    def perhaps_refused(self, message: str) -> None:
        """A PIN is stored, and the signer does not say what failed."""
        self._refusal = (
            f"{message}: the stored PIN may have been wrong, and is not tried again",
            "see what the signer said, then start this program anew; a signer that ends with exit code 75 "
            "says that it was not the PIN",
        )

    def succeeded(self) -> None:
        self._failures = 0
        self._not_before = 0.0
