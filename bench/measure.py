"""Two ways of doing one thing, timed in turns, so that whatever else the machine does falls on both."""

from __future__ import annotations

import gc
import math
import statistics
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from itertools import pairwise
from typing import TypeVar

_T = TypeVar("_T")


@dataclass(frozen=True)
class Row:
    """One line of the results; `ours` and `peer` are in `unit`. A row without a goal is met, and there to be seen.

    `ratio_within` is how well the ratio is known: half the width of the 95 % interval of its median, as a part of it.
    """

    name: str
    ours: float
    peer: float
    unit: str
    ratio: float
    goal: str
    met: bool
    spread: str
    peer_name: str
    ratio_within: float | None = None

    def as_dict(self) -> dict[str, object]:
        return asdict(self)


@contextmanager
def own_garbage_only() -> Iterator[None]:
    """For readings too short to clear up before each: what is there already, every peer's library, is not gone through.

    Both sides must be alike. Whoever makes more objects than the other has more collections in here than elsewhere.
    """
    gc.collect()
    gc.freeze()
    try:
        yield
    finally:
        gc.unfreeze()


def interleaved(
    ours: Callable[[], float], peer: Callable[[], float], rounds: int, *, elsewhere: bool = False
) -> tuple[list[float], list[float]]:
    """`rounds` readings of each, in turns, the order changing each time."""
    readings: tuple[list[float], list[float]] = ([], [])
    ours(), peer()  # warm up
    for number in range(rounds):
        for index, function in in_order(number, ours, peer):
            _clear_up(elsewhere)
            readings[index].append(function())
    return readings


def in_order(number: int, ours: _T, peer: _T) -> tuple[tuple[int, _T], tuple[int, _T]]:
    """Which comes first changes with the number of the round."""
    return ((0, ours), (1, peer)) if number % 2 else ((1, peer), (0, ours))


def in_turns(
    readers: Mapping[str, Callable[[], float]], rounds: int, *, elsewhere: bool = False
) -> dict[str, list[float]]:
    """`rounds` readings of each of several, in turns, each turn beginning with another one."""
    names = list(readers)
    readings: dict[str, list[float]] = {name: [] for name in names}
    for name in names:
        readers[name]()  # warm up
    for number in range(rounds):
        first = number % len(names)
        for name in names[first:] + names[:first]:
            _clear_up(elsewhere)
            readings[name].append(readers[name]())
    return readings


def _clear_up(elsewhere: bool) -> None:
    """What one reading leaves must not be cleared up in the next; nothing of it is where another process works."""
    if not elsewhere:
        gc.collect()


@dataclass
class Pairs:
    """Readings of two, in turns, until the median of their ratios is known well enough.

    How many it takes is decided by how much they scatter, never by the side of a goal on which the median lies.
    """

    least: int
    most: int
    within: float
    seconds: float = math.inf
    ours: list[float] = field(default_factory=list)
    peer: list[float] = field(default_factory=list)

    def enough(self) -> bool:
        count = len(self.ours)
        if count >= self.most:
            return True
        if count < self.least or count % self.least:
            return False
        known = ratio_within((self.ours, self.peer))
        steady = known is not None and known <= self.within
        return steady or sum(self.ours) + sum(self.peer) > self.seconds


def ratio_within(readings: tuple[list[float], list[float]]) -> float | None:
    """Half the 95 % interval of the median of the ratios, as a part of it; None of fewer than six, which have none."""
    ratios = sorted(mine / theirs for mine, theirs in zip(*readings, strict=True) if theirs)
    count, middle = len(ratios), statistics.median(ratios or [0.0])
    if count < 6 or not middle:
        return None
    reach = 0.98 * math.sqrt(count)
    low, high = max(0, math.floor(count / 2 - reach)), min(count - 1, math.ceil(count / 2 + reach))
    return (ratios[high] - ratios[low]) / 2 / middle


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


def told_spread(*sides: list[float]) -> str:
    """Of each side; one reading alone has none, and saying ±0% would be a claim."""
    if all(len(each) < 2 for each in sides):
        return "one reading"
    return " / ".join(f"±{spread(each):.0%}" for each in sides)


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
    ours, peer, ratio = _medians(readings)
    met = goal is None or ratio <= goal
    told = "none" if goal is None else f"≤ {goal:.3g} ×"
    spreads, within = told_spread(*readings), ratio_within(readings)
    return Row(name, ours * scale, peer * scale, unit, ratio, told, met, spreads, peer_name, within)


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
    return Row(name, ours, peer, unit, ours / peer, f"≤ {goal:g} {unit} more", met, told_spread(*readings), peer_name)


def rate_row(
    name: str, readings: tuple[list[float], list[float]], *, peer_name: str, goal: float | None, unit: str = "1/s"
) -> Row:
    """More is better: the goal is a least ratio."""
    ours, peer, ratio = _medians(readings)
    met = goal is None or ratio >= goal
    told = "none" if goal is None else f"≥ {goal:.3g} ×"
    return Row(name, ours, peer, unit, ratio, told, met, told_spread(*readings), peer_name, ratio_within(readings))


def _medians(readings: tuple[list[float], list[float]]) -> tuple[float, float, float]:
    """Of ours, of the peer's and of the ratios of neighbours."""
    ours, peer = (statistics.median(side) for side in readings)
    return ours, peer, statistics.median(mine / theirs for mine, theirs in zip(*readings, strict=True))


def above_row(
    name: str, ours: list[float], peer: list[float], floor: list[float], *, peer_name: str, goal: float | None
) -> Row:
    """What each takes above a floor that neither can go below; the goal is a largest ratio of the two."""
    mine = [max(0.0, reading - least) for reading, least in zip(ours, floor, strict=True)]
    theirs = [max(1e-9, reading - least) for reading, least in zip(peer, floor, strict=True)]
    return ratio_row(name, (mine, theirs), peer_name=peer_name, goal=goal)


def growth_rows(
    name: str, readings: Mapping[int, list[float]], most: float | None, *, unit: str = "µs", scale: float = 1e6
) -> list[Row]:
    """Ten times the work may take at most `most` times as much, at every size; None: to be seen, not judged.

    Of each size the least reading: whatever else the machine does only ever adds.
    """
    rows = []
    for few, many in pairwise(readings):
        ours, peer = (min(readings[size]) * scale for size in (many, few))
        told = "none" if most is None else f"≤ {most:g} ×"
        met, spreads = most is None or ours <= most * peer, told_spread(readings[many], readings[few])
        rows.append(Row(f"{name}: {many:,}", ours, peer, unit, ours / peer, told, met, spreads, f"{few:,}"))
    return rows


def count_row(name: str, ours: int, wanted: int, unit: str, told: str = "") -> Row:
    """Not a time but a count that must be just so, in every repetition."""
    return Row(name, ours, wanted, unit, ours / wanted, f"= {wanted}", ours == wanted, told, "wanted")


def limit_row(name: str, readings: list[float], *, most: float, unit: str) -> Row:
    """No peer: the median must not be above a limit that is in the same unit."""
    ours = statistics.median(readings)
    return Row(
        name, ours, most, unit, ours / most, f"≤ {most:g} {unit}", ours <= most, told_spread(readings), "the limit"
    )
