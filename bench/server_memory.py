"""What 100,000 remembered results cost in memory, and what finding one costs in time."""

from __future__ import annotations

import secrets
import time
import tracemalloc
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from bench.measure import Row, cpu_per_call, growth_rows, interleaved, limit_row, ratio_row
from kubeauthn._core.authentication import fetch_limits
from kubeauthn._core.authentication.result_cache import ResultCache, ResultTable
from kubeauthn._core.authentication.verdict import Authenticated, UserInfo
from kubeauthn.server.cache import CachedResults

RESULTS = 100_000
GOAL_MB = 100.0
GOAL_HIT_MICROSECONDS = 5.0
NOW = 1_800_000_000.0


def rows(folder: Path, *, quick: bool) -> Iterator[Row]:
    results = RESULTS // 10 if quick else RESULTS
    sizes = [results // 1000, results // 100, results // 10, results]
    readings: dict[int, list[float]] = {size: [] for size in sizes}
    for _ in range(1 if quick else 3):
        for size in sizes:
            readings[size].append(_megabytes(size))
    name = f"result cache: memory of {results:,} users with eight groups"
    yield limit_row(name, readings[results], most=GOAL_MB * results / RESULTS, unit="MB")
    yield from growth_rows("result cache: memory of users with eight groups", readings, 12, unit="MB", scale=1)
    yield _hit_row(quick)


def _megabytes(results: int) -> float:
    """All that the cache holds, measured by the allocator. Nothing of one user is shared with another's."""
    # Lifetimes that outlast the filling: the bound is on the number, and the number must be reached.
    tracemalloc.start()
    try:
        before = tracemalloc.get_traced_memory()[0]
        cache = CachedResults(ResultCache(successes=ResultTable(3600.0, results, fetch_limits.SUCCESSES_BYTES)))
        for number in range(results):
            cache.remember(f"token {number}", a_result(number), NOW, cache.generation)
        assert len(cache) == results, "the cache did not keep what it should"
        for number in range(results):
            assert cache.find(f"token {number}", NOW) is not None  # what was asked for again is kept at hand as well
        return (tracemalloc.get_traced_memory()[0] - before) / 1e6
    finally:
        tracemalloc.stop()


def _hit_row(quick: bool) -> Row:
    """A token of usual length, found; beside it a look into a dictionary with the token itself as the key."""
    token = secrets.token_urlsafe(800)
    cache = CachedResults()
    now = time.time()
    cache.remember(token, a_result(1), now, cache.generation)
    plain = {token: a_result(1)}
    calls, rounds = (5_000, 5) if quick else (50_000, 15)
    readings = interleaved(
        cpu_per_call(lambda: cache.find(token, now), calls), cpu_per_call(lambda: plain[token], calls), rounds
    )
    row = ratio_row("result cache: a hit", readings, peer_name="a dictionary look-up", goal=None)
    return replace(row, goal=f"≤ {GOAL_HIT_MICROSECONDS:g} µs", met=row.ours <= GOAL_HIT_MICROSECONDS)


def a_result(number: int) -> Authenticated:
    user = UserInfo(
        f"https://issuer.example.com#user-{number}@example.com",
        f"{number:08d}-7d1a-4c50-9f6e-0123456789ab",
        tuple(f"oidc:team-{number}-{group}" for group in range(8)),
        {
            "authentication.kubernetes.io/credential-id": (f"JTI={number:032x}",),
            "example.com/tenant": (f"tenant-{number}",),
        },
    )
    return Authenticated(user, "https://issuer.example.com", NOW + 7200 + number)
