"""Two ways of doing one thing, timed in turns, so that whatever else the machine does falls on both."""

from __future__ import annotations

import gc
import statistics
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass


@dataclass(frozen=True)
class Row:
    """One line of the results; `ours` and `peer` are in `unit`. A row without a goal is met, and there to be seen."""

    name: str
    ours: float
    peer: float
    unit: str
    ratio: float
    goal: str
    met: bool
    spread: str
    peer_name: str

    def as_dict(self) -> dict[str, object]:
        return asdict(self)


def interleaved(ours: Callable[[], float], peer: Callable[[], float], rounds: int) -> tuple[list[float], list[float]]:
    """`rounds` readings of each, in turns, the order changing each time."""
    readings: tuple[list[float], list[float]] = ([], [])
    ours(), peer()  # warm up
    for number in range(rounds):
        order = ((0, ours), (1, peer)) if number % 2 else ((1, peer), (0, ours))
        for index, function in order:
            gc.collect()
            readings[index].append(function())
    return readings


def seconds_per_call(function: Callable[[], object], calls: int) -> Callable[[], float]:
    """A reading: the mean time of one call over `calls` calls."""

    def reading() -> float:
        started = time.perf_counter()
        for _ in range(calls):
            function()
        return (time.perf_counter() - started) / calls

    return reading


def spread(readings: list[float]) -> float:
    """Half the distance between the quartiles, as a part of the median."""
    low, middle, high = statistics.quantiles(readings, n=4)
    return (high - low) / 2 / middle if middle else 0.0


def ratio_row(
    name: str,
    readings: tuple[list[float], list[float]],
    *,
    peer_name: str,
    goal: float | None,
    unit: str = "µs",
    scale: float = 1e6,
) -> Row:
    """The goal is a largest ratio: the median of the ratios of neighbours, which a passing load slows alike."""
    ours, peer = (statistics.median(side) for side in readings)
    ratio = statistics.median(mine / theirs for mine, theirs in zip(*readings, strict=True))
    met = goal is None or ratio <= goal
    told = "none" if goal is None else f"≤ {goal:g} ×"
    return Row(name, ours * scale, peer * scale, unit, ratio, told, met, _spreads(readings), peer_name)


def difference_row(
    name: str,
    readings: tuple[list[float], list[float]],
    *,
    peer_name: str,
    goal: float,
    unit: str = "µs",
    scale: float = 1e6,
) -> Row:
    """The goal is a largest difference of the medians, in `unit`."""
    ours, peer = (statistics.median(side) * scale for side in readings)
    met = ours - peer <= goal
    return Row(name, ours, peer, unit, ours / peer, f"≤ {goal:g} {unit} more", met, _spreads(readings), peer_name)


def count_row(name: str, ours: int, wanted: int, unit: str) -> Row:
    """Not a time but a count that must be just so."""
    return Row(name, ours, wanted, unit, ours / wanted, f"= {wanted}", ours == wanted, "", "wanted")


def _spreads(readings: tuple[list[float], list[float]]) -> str:
    return " / ".join(f"±{spread(side):.0%}" for side in readings)
