"""When an issuer's keys are fetched, and which are at hand: no lock, no clock, no network.

The rules:

- the last good key set stays until a newer good one replaces it, however often fetching fails
- until there was one, the issuer is asked every `first_retry` seconds: it may be down when the server starts
- a token with an unknown key id may ask the issuer again, all tokens together once per `unknown_key` seconds
- a failed fetch starts that wait too, whatever caused it; else an issuer that is down is asked for every such token
- a key set is fetched anew after `refresh` seconds, so that a key the issuer withdrew ends here as well
"""

from __future__ import annotations

from typing import Generic, TypeVar

from kubeauthn._core.authentication import fetch_limits
from kubeauthn._core.record import record

Keys = TypeVar("Keys")


@record(frozen=True, slots=True)
class Intervals:
    first_retry: float = fetch_limits.FIRST_RETRY_SECONDS
    unknown_key: float = fetch_limits.UNKNOWN_KEY_SECONDS
    refresh: float = fetch_limits.REFRESH_SECONDS


@record(frozen=True, slots=True)
class KeySetStatus:
    """What health and metrics show. Times are as the state was told them: unix seconds, if its shell tells the time."""

    fingerprint: str
    """`sha256:` and the digest of the key set's document; "" before the first."""
    fetched_at: float | None
    failed_at: float | None
    failure: str
    """Why the last attempt failed; "" if it worked."""


class KeySetState(Generic[Keys]):
    __slots__ = (
        "_ask_again_at",
        "_due_at",
        "_failed_at",
        "_failure",
        "_fetched_at",
        "_fingerprint",
        "_intervals",
        "answers",
        "keys",
    )

    def __init__(self, intervals: Intervals | None = None) -> None:
        self.keys: Keys | None = None
        self.answers = 0
        """How many good key sets came, the same ones again counted too."""
        self._intervals = intervals or Intervals()
        self._fingerprint = ""
        self._fetched_at: float | None = None
        self._failed_at: float | None = None
        self._failure = ""
        self._due_at: float | None = None
        self._ask_again_at: float | None = None

    def seconds_until_due(self, now: float) -> float:
        """Until the next fetch that needs no token to cause it: the first one, or a refresh. 0: now."""
        interval = self._intervals.refresh if self.keys is not None else self._intervals.first_retry
        return _left(self._due_at, now, interval)

    def may_ask(self, now: float) -> bool:
        """May a token that finds no key cause a fetch?"""
        interval = self._intervals.unknown_key if self.keys is not None else self._intervals.first_retry
        return _left(self._ask_again_at, now, interval) == 0

    def asked(self, now: float) -> None:
        """A token causes a fetch, now."""
        self._wait_before_asking(now)

    def begun(self, now: float) -> None:
        """A fetch begins, whatever its cause. Nobody else begins one before its end is told, or long after."""
        self._due_at = now + self._retry()

    def fetched(self, keys: Keys, fingerprint: str, now: float) -> bool:
        """A good key set came. True if it is another one than before; if not, the same object stays."""
        changed = fingerprint != self._fingerprint
        if self.keys is None:
            self._ask_again_at = None  # the first keys may be old already: the first unknown key id need not wait
        if changed:
            self.keys, self._fingerprint = keys, fingerprint
        self.answers += 1
        self._fetched_at, self._failure = now, ""
        self._due_at = now + self._intervals.refresh
        return changed

    def failed(self, reason: str, now: float) -> None:
        self._failed_at, self._failure = now, reason
        self._due_at = now + self._retry()
        self._wait_before_asking(now)

    @property
    def status(self) -> KeySetStatus:
        return KeySetStatus(self._fingerprint, self._fetched_at, self._failed_at, self._failure)

    def _retry(self) -> float:
        return self._intervals.first_retry if self.keys is None else self._intervals.unknown_key

    def _wait_before_asking(self, now: float) -> None:
        self._ask_again_at = now + self._retry()


def _left(at: float | None, now: float, longest: float) -> float:
    """Seconds until `at`. What is further away than a wait can be was reckoned before the clock was set back: 0."""
    left = 0.0 if at is None else at - now
    return left if 0.0 < left <= longest + _ROUNDING else 0.0


_ROUNDING = 0.001
"""Seconds: sums of large and small floats are not exact."""
