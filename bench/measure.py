"""Two ways of doing one thing, timed in turns, so that whatever else the machine does falls on both."""

from __future__ import annotations

import gc
import statistics
import time
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from itertools import pairwise


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


def in_turns(readers: Mapping[str, Callable[[], float]], rounds: int) -> dict[str, list[float]]:
    """`rounds` readings of each of several, in turns, each turn beginning with another one."""
    names = list(readers)
    readings: dict[str, list[float]] = {name: [] for name in names}
    for name in names:
        readers[name]()  # warm up
    for number in range(rounds):
        first = number % len(names)
        for name in names[first:] + names[:first]:
            gc.collect()
            readings[name].append(readers[name]())
    return readings


def cpu_per_call(function: Callable[[], object], calls: int) -> Callable[[], float]:
    """A reading: the processor time of this process for one call, which another process's load does not lengthen."""

    def reading() -> float:
        started = time.process_time()
        for _ in range(calls):
            function()
        return (time.process_time() - started) / calls

    return reading


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
    if len(readings) < 2:
        return 0.0
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
    told = "none" if goal is None else f"≤ {goal:.3g} ×"
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


def rate_row(
    name: str, readings: tuple[list[float], list[float]], *, peer_name: str, goal: float | None, unit: str = "1/s"
) -> Row:
    """More is better: the goal is a least ratio."""
    ours, peer = (statistics.median(side) for side in readings)
    ratio = statistics.median(mine / theirs for mine, theirs in zip(*readings, strict=True))
    met = goal is None or ratio >= goal
    told = "none" if goal is None else f"≥ {goal:.3g} ×"
    return Row(name, ours, peer, unit, ratio, told, met, _spreads(readings), peer_name)


def above_row(
    name: str, ours: list[float], peer: list[float], floor: list[float], *, peer_name: str, goal: float | None
) -> Row:
    """What each takes above a floor that neither can go below; the goal is a largest ratio of the two."""
    mine = [max(0.0, reading - least) for reading, least in zip(ours, floor, strict=True)]
    theirs = [max(1e-9, reading - least) for reading, least in zip(peer, floor, strict=True)]
    return ratio_row(name, (mine, theirs), peer_name=peer_name, goal=goal)


def growth_rows(name: str, seconds: Mapping[int, float], most: float) -> list[Row]:
    """Ten times the work may take at most `most` times as long, at every size."""
    rows = []
    for few, many in pairwise(seconds):
        ratio = seconds[many] / seconds[few]
        ours, peer = seconds[many] * 1e6, seconds[few] * 1e6
        told = f"≤ {most:g} ×"
        rows.append(Row(f"{name}: {many:,}", ours, peer, "µs", ratio, told, ratio <= most, "", f"{few:,}"))
    return rows


def count_row(name: str, ours: int, wanted: int, unit: str) -> Row:
    """Not a time but a count that must be just so."""
    return Row(name, ours, wanted, unit, ours / wanted, f"= {wanted}", ours == wanted, "", "wanted")


def _spreads(readings: tuple[list[float], list[float]]) -> str:
    return " / ".join(f"±{spread(side):.0%}" for side in readings)
