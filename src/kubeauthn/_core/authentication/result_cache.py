"""Results of tokens, remembered for seconds: bounded, and never past `exp`. No lock and no clock.

Keys are hashes: a token is not kept. Values are packed bytes, so that a result costs little more than its text.
"""

from __future__ import annotations

from collections import deque

from kubeauthn._core.authentication import fetch_limits

_SPREAD = 1024
"""Lifetimes end up to a quarter earlier, by the first byte of the key: what was asked for in one rush, after a reload
for instance, is then not decided anew in one rush."""


Entry = tuple[float, bytes, bytes]
"""When it ends, what it is, and its key."""


class ResultTable:
    """One kind of result, all with the same longest lifetime; the oldest goes first."""

    __slots__ = ("_bytes", "_entries", "_lifetime", "_most", "_most_bytes", "_order")

    def __init__(self, lifetime: float, most: int, most_bytes: int) -> None:
        self._lifetime = lifetime
        self._most = most
        self._most_bytes = most_bytes
        self._entries: dict[bytes, Entry] = {}
        # Who came when. A dict would look for its oldest entry through the places of all that have gone before it, and
        # an OrderedDict takes three times as long to take one in. What was put again is in it twice, and counts twice.
        self._order: deque[Entry] = deque()
        self._bytes = 0

    def __len__(self) -> int:
        return len(self._entries)

    def get(self, key: bytes, now: float) -> Entry | None:
        entry = self._entries.get(key)
        return entry if entry is not None and self.is_current(entry[0], now) else None

    def is_current(self, ends: float, now: float) -> bool:
        # Nothing ends later than a lifetime from now: what seems to was stored before the clock was set back.
        return now < ends <= now + self._lifetime

    def put(self, key: bytes, packed: bytes, now: float, not_after: float) -> bool:
        """False if it is not remembered: too large, or over at once."""
        size = len(packed)
        # `not a > b` where `a <= b` would do: what ends at a time that is no number is not remembered either.
        if not not_after > now or size > fetch_limits.RESULT_BYTES or size > self._most_bytes or self._most < 1:
            return False
        ends = now + self._lifetime * (1 - key[0] / _SPREAD)
        entry = (ends if ends < not_after else not_after, packed, key)
        self._entries[key] = entry
        order = self._order
        order.append(entry)
        self._bytes += size
        if len(order) > self._most or self._bytes > self._most_bytes or now >= order[0][0]:
            self._make_room(now)
        return True

    def clear(self) -> None:
        # A new one: somebody without the lock may be reading the old.
        self._entries = {}
        self._order = deque()
        self._bytes = 0

    def _make_room(self, now: float) -> None:
        order = self._order
        while len(order) > self._most or self._bytes > self._most_bytes:
            self._drop_oldest()
        # Two at a time from the old end: memory goes back after a rush, and no call pays for all of it.
        for _ in range(2):
            if order and now >= order[0][0]:
                self._drop_oldest()

    def _drop_oldest(self) -> None:
        oldest = self._order.popleft()
        self._bytes -= len(oldest[1])
        key = oldest[2]
        if self._entries.get(key) is oldest:
            del self._entries[key]


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
