"""Results of tokens, remembered for seconds: bounded, and never past `exp`. No lock and no clock.

Keys are hashes: a token is not kept. Values are packed bytes, so that a result costs little more than its text.
"""

from __future__ import annotations

from collections import OrderedDict

from kubeauthn._core.authentication import fetch_limits

_SPREAD = 1024
"""Lifetimes end up to a quarter earlier, by the first byte of the key: what was asked for in one rush, after a reload
for instance, is then not decided anew in one rush."""


class ResultTable:
    """One kind of result, all with the same longest lifetime; the oldest goes first."""

    __slots__ = ("_bytes", "_entries", "_lifetime", "_most", "_most_bytes")

    def __init__(self, lifetime: float, most: int, most_bytes: int) -> None:
        self._lifetime = lifetime
        self._most = most
        self._most_bytes = most_bytes
        # Not a dict: that one looks for its oldest entry through the places of all that have gone before it, which
        # takes longer than checking the token once thousands come and go.
        self._entries: OrderedDict[bytes, tuple[float, bytes]] = OrderedDict()
        self._bytes = 0

    def __len__(self) -> int:
        return len(self._entries)

    def get(self, key: bytes, now: float) -> tuple[float, bytes] | None:
        """When it ends, and what it is."""
        entry = self._entries.get(key)
        return entry if entry is not None and self.is_current(entry[0], now) else None

    def is_current(self, ends: float, now: float) -> bool:
        # Nothing ends later than a lifetime from now: what seems to was stored before the clock was set back.
        return now < ends <= now + self._lifetime

    def put(self, key: bytes, packed: bytes, now: float, not_after: float) -> bool:
        """False if it is not remembered: too large, or over at once."""
        size = len(packed)
        # `not a > b` where `a <= b` would do: what ends at a time that is no number is not remembered either.
        if not not_after > now or size > fetch_limits.RESULT_BYTES or self._most < 1:
            return False
        entries = self._entries
        if key in entries:
            self._bytes -= len(entries.pop(key)[1])
        while entries and (len(entries) >= self._most or self._bytes + size > self._most_bytes):
            self._drop_oldest()
        ends = now + self._lifetime * (1 - key[0] / _SPREAD)
        entries[key] = (ends if ends < not_after else not_after, packed)
        self._bytes += size
        self._drop_ended(now)
        return True

    def clear(self) -> None:
        # A new one: somebody without the lock may be reading the old.
        self._entries = OrderedDict()
        self._bytes = 0

    def _drop_ended(self, now: float) -> None:
        """Two at a time from the old end: memory goes back after a rush, and no call pays for all of it."""
        for _ in range(2):
            oldest = next(iter(self._entries.values()), None)
            if oldest is None or now < oldest[0]:
                return
            self._drop_oldest()

    def _drop_oldest(self) -> None:
        self._bytes -= len(self._entries.popitem(last=False)[1][1])


class ResultCache:
    """Successes and failures, and a generation that ends with every `clear`.

    Who decides about a token notes the generation first and gives it back with the result: one that was decided with
    a configuration or keys of before a `clear` is then not remembered after it.
    """

    __slots__ = ("failures", "generation", "successes")

    def __init__(self, successes: ResultTable | None = None, failures: ResultTable | None = None) -> None:
        # Not `or`: an empty table is false.
        self.successes = _default_successes() if successes is None else successes
        self.failures = _default_failures() if failures is None else failures
        self.generation = 0

    def clear(self) -> None:
        self.generation += 1
        self.successes.clear()
        self.failures.clear()


def _default_successes() -> ResultTable:
    return ResultTable(fetch_limits.SUCCESS_SECONDS, fetch_limits.SUCCESSES, fetch_limits.SUCCESSES_BYTES)


def _default_failures() -> ResultTable:
    return ResultTable(fetch_limits.FAILURE_SECONDS, fetch_limits.FAILURES, fetch_limits.FAILURES_BYTES)
