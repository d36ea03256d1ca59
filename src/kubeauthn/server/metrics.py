"""Numbers for Prometheus, counted in each worker and added up when somebody asks.

Prometheus' own client keeps numbers of several processes in files; here they travel over the channel that ties workers
to their supervisor, so that counting is one addition and nothing has to be written anywhere.
"""

from __future__ import annotations

from bisect import bisect_left
from typing import TYPE_CHECKING, Any, Literal

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    Kind = Literal["counter", "gauge", "histogram"]

LATENCY_BUCKETS = (
    0.0001,
    0.00025,
    0.0005,
    0.001,
    0.0025,
    0.005,
    0.01,
    0.025,
    0.05,
    0.1,
    0.25,
    0.5,
    1.0,
    2.5,
    5.0,
    10.0,
)


class Cell:
    """One number. `cell.value += 1` is all it takes."""

    __slots__ = ("value",)

    def __init__(self) -> None:
        self.value = 0.0


class Distribution:
    """Observations in buckets."""

    __slots__ = ("_bounds", "counts", "total")

    def __init__(self, bounds: Sequence[float]) -> None:
        self._bounds = bounds
        self.counts = [0] * (len(bounds) + 1)
        self.total = 0.0

    def observe(self, value: float) -> None:
        self.counts[bisect_left(self._bounds, value)] += 1
        self.total += value


class Family:
    """All numbers of one name."""

    __slots__ = ("bounds", "cells", "help", "kind", "labels", "name")

    def __init__(self, name: str, kind: Kind, text: str, labels: Sequence[str], bounds: Sequence[float] = ()) -> None:
        self.name = name
        self.kind: Kind = kind
        self.help = text
        self.labels = tuple(labels)
        self.bounds = tuple(bounds)
        self.cells: dict[tuple[str, ...], Any] = {}

    def cell(self, *values: str) -> Cell:
        found: Cell | None = self.cells.get(values)
        if found is None:
            found = self.cells[values] = Cell()
        return found

    def distribution(self, *values: str) -> Distribution:
        found: Distribution | None = self.cells.get(values)
        if found is None:
            found = self.cells[values] = Distribution(self.bounds)
        return found

    def forget(self) -> None:
        """For numbers about something that may be gone, and that are set anew each time."""
        self.cells.clear()


class Registry:
    """The families of one process, in the order in which they were named."""

    def __init__(self) -> None:
        self.families: dict[str, Family] = {}

    def counter(self, name: str, text: str, labels: Sequence[str] = ()) -> Family:
        return self._family(Family(name, "counter", text, labels))

    def gauge(self, name: str, text: str, labels: Sequence[str] = ()) -> Family:
        """Of several workers' values the largest is shown."""
        return self._family(Family(name, "gauge", text, labels))

    def histogram(
        self, name: str, text: str, labels: Sequence[str] = (), buckets: Sequence[float] = LATENCY_BUCKETS
    ) -> Family:
        return self._family(Family(name, "histogram", text, labels, buckets))

    def _family(self, family: Family) -> Family:
        return self.families.setdefault(family.name, family)

    def snapshot(self) -> list[Any]:
        """As plain lists, for another process."""
        return [
            [f.name, f.kind, f.help, f.labels, f.bounds, [[key, _plain(cell)] for key, cell in list(f.cells.items())]]
            for f in list(self.families.values())
        ]

    def add(self, snapshot: Iterable[Any], *, gone: bool = False) -> None:
        """Another process' numbers join these. Of one that is gone only what was counted stays."""
        for name, kind, text, labels, bounds, cells in snapshot:
            family = self._family(Family(name, kind, text, labels, bounds))
            for key, plain in cells:
                if kind == "histogram":
                    _add_distribution(family.distribution(*key), plain)
                elif kind == "counter":
                    family.cell(*key).value += plain
                elif not gone:
                    cell = family.cell(*key)
                    cell.value = max(cell.value, plain)

    def text(self) -> str:
        """In Prometheus' text format."""
        lines: list[str] = []
        for family in self.families.values():
            lines += [f"# HELP {family.name} {_escaped_help(family.help)}", f"# TYPE {family.name} {family.kind}"]
            for key, cell in sorted(family.cells.items()):
                labels = [f'{name}="{_escaped(value)}"' for name, value in zip(family.labels, key, strict=True)]
                if isinstance(cell, Distribution):
                    lines += _distribution_lines(family, labels, cell)
                else:
                    lines.append(f"{family.name}{_braced(labels)} {_number(cell.value)}")
        return "\n".join(lines) + "\n"


def _plain(cell: Cell | Distribution) -> Any:
    return [list(cell.counts), cell.total] if isinstance(cell, Distribution) else cell.value


def _add_distribution(into: Distribution, plain: Any) -> None:
    counts, total = plain
    for index, count in enumerate(counts):
        into.counts[index] += count
    into.total += total


def _distribution_lines(family: Family, labels: list[str], cell: Distribution) -> list[str]:
    lines, below = [], 0
    for bound, count in zip((*family.bounds, float("inf")), cell.counts, strict=True):
        below += count
        edge = "+Inf" if bound == float("inf") else _number(bound)
        edged = [*labels, f'le="{edge}"']
        lines.append(f"{family.name}_bucket{_braced(edged)} {below}")
    lines.append(f"{family.name}_sum{_braced(labels)} {_number(cell.total)}")
    lines.append(f"{family.name}_count{_braced(labels)} {below}")
    return lines


def _braced(labels: list[str]) -> str:
    return "{" + ",".join(labels) + "}" if labels else ""


def _number(value: float) -> str:
    return str(int(value)) if value == int(value) and abs(value) < 1e15 else repr(value)


def _escaped(value: str) -> str:
    return value.replace("\\", "\\\\").replace("\n", "\\n").replace('"', '\\"')


def _escaped_help(value: str) -> str:
    return value.replace("\\", "\\\\").replace("\n", "\\n")
