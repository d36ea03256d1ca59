"""Go's sort, which is not stable: whatever it does with equal keys, the others are in order."""

from __future__ import annotations

import random

import pytest

from kubeauthn.cel.library import go_order as module
from kubeauthn.cel.library.go_order import go_order


@pytest.mark.parametrize("size", [0, 1, 2, 12, 13, 49, 50, 200, 1000])
def test_the_keys_are_in_order_and_none_is_lost(size: int) -> None:
    source = random.Random(size)
    shapes = (
        [source.randrange(5) for _ in range(size)],
        [source.random() for _ in range(size)],
        list(range(size)),
        list(range(size, 0, -1)),
        [place % 7 for place in range(size)],
        [0] * size,
        [*range(size // 2), *range(size - size // 2)],
    )
    for keys in shapes:
        order = go_order(keys)
        assert sorted(order) == list(range(size))
        assert [keys[place] for place in order] == sorted(keys)


class _Undecided:
    """A key that is given its value when it is compared, each time so that the pivot is a bad one."""

    decided = 0
    candidate: _Undecided | None = None

    def __init__(self) -> None:
        self.value = float("inf")

    def __lt__(self, other: _Undecided) -> bool:
        if self.value == other.value == float("inf"):
            chosen = self if self is _Undecided.candidate else other
            chosen.value = _Undecided.decided
            _Undecided.decided += 1
        if self.value == float("inf"):
            _Undecided.candidate = self
        elif other.value == float("inf"):
            _Undecided.candidate = other
        return self.value < other.value


def test_the_worst_keys_end_in_a_heap(monkeypatch: pytest.MonkeyPatch) -> None:
    keys = [_Undecided() for _ in range(399)]
    monkeypatch.setattr(_Undecided, "candidate", keys[0])
    monkeypatch.setattr(_Undecided, "decided", 0)
    go_order(keys)
    heaps = []
    heap_sort = module._Sorting.heap_sort

    def counted(sorting: module._Sorting, start: int, length: int) -> None:
        heaps.append(length)
        heap_sort(sorting, start, length)

    monkeypatch.setattr(module._Sorting, "heap_sort", counted)
    values = [key.value for key in keys]
    assert [values[place] for place in go_order(values)] == sorted(values)
    assert heaps
