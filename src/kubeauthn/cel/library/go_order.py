"""The order in which Go's `sort.Slice` leaves elements: cel-go sorts with it, and it is not stable.

Up to twelve elements it inserts one after the other. Of more it makes a quicksort that looks for patterns, whose
choices depend on nothing but the comparisons and the number of elements; so elements of equal keys come out in an
order that is odd and always the same. The same choices are made here.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

__all__ = ["go_order"]

_MOST_INSERTED = 12
_FIRST_OF_NINE = 50
"""From so many elements on, the pivot is a median of nine and a few that are out of place are shifted."""
_MOST_SHIFTED = 5
_ALL_SWAPPED = 12
"""Of the comparisons for a median of nine: the elements are falling."""
_WORD = (1 << 64) - 1


def go_order(keys: Sequence[Any]) -> list[int]:
    """The positions of the keys, as Go sorts them. Keys are compared with `<` alone."""
    sorting = _Sorting(keys)
    sorting.sort(0, len(keys), len(keys).bit_length())
    return sorting.places


class _Sorting:
    def __init__(self, keys: Sequence[Any]) -> None:
        self.keys = keys
        self.places = list(range(len(keys)))

    def less(self, one: int, two: int) -> bool:
        return bool(self.keys[self.places[one]] < self.keys[self.places[two]])

    def swap(self, one: int, two: int) -> None:
        places = self.places
        places[one], places[two] = places[two], places[one]

    def sort(self, start: int, end: int, bad_pivots: int) -> None:
        """Sort a part. `bad_pivots`: how many are borne with."""
        balanced = partitioned = True
        while end - start > _MOST_INSERTED:
            length = end - start
            if bad_pivots == 0:
                self.heap_sort(start, length)
                return
            if not balanced:
                self.scatter(start, length)
                bad_pivots -= 1
            pivot, swaps = self.choose_pivot(start, length)
            if swaps == _ALL_SWAPPED:
                self.places[start:end] = self.places[start:end][::-1]
                pivot = end - 1 - (pivot - start)
            if balanced and partitioned and swaps in (0, _ALL_SWAPPED) and self.is_sorted_by_shifting(start, end):
                return
            if start > 0 and not self.less(start - 1, pivot):
                start = self.skip_equal(start, end, pivot)
                continue
            middle, partitioned = self.partition(start, end, pivot)
            left, right = middle - start, end - middle
            balanced = min(left, right) >= length // 8
            if left < right:
                self.sort(start, middle, bad_pivots)
                start = middle + 1
            else:
                self.sort(middle + 1, end, bad_pivots)
                end = middle
        for place in range(start + 1, end):
            self.sink(place, start)

    def sink(self, place: int, lowest: int) -> None:
        """Move an element to the left, past those that are greater."""
        while place > lowest and self.less(place, place - 1):
            self.swap(place, place - 1)
            place -= 1

    def choose_pivot(self, start: int, length: int) -> tuple[int, int]:
        """The pivot, and how many of the elements that were looked at for it were out of order."""
        quarter = length // 4
        candidates = [start + quarter, start + quarter * 2, start + quarter * 3]
        swaps = 0
        if length >= _FIRST_OF_NINE:
            for number, place in enumerate(candidates):
                candidates[number], more = self.median(place - 1, place, place + 1)
                swaps += more
        pivot, more = self.median(*candidates)
        return pivot, swaps + more

    def median(self, one: int, two: int, three: int) -> tuple[int, int]:
        swaps = 0
        if self.less(two, one):
            one, two, swaps = two, one, swaps + 1
        if self.less(three, two):
            two, three, swaps = three, two, swaps + 1
        if self.less(two, one):
            one, two, swaps = two, one, swaps + 1
        return two, swaps

    def partition(self, start: int, end: int, pivot: int) -> tuple[int, bool]:
        """The pivot's new place, with all that is less before it; and whether that was so already."""
        self.swap(start, pivot)
        low, high = start + 1, end - 1
        swapped = False
        while True:
            while low <= high and self.less(low, start):
                low += 1
            while low <= high and not self.less(high, start):
                high -= 1
            if low > high:
                self.swap(high, start)
                return high, not swapped
            self.swap(low, high)
            swapped = True
            low, high = low + 1, high - 1

    def skip_equal(self, start: int, end: int, pivot: int) -> int:
        """Where what is greater than the pivot begins, in a part that has nothing less."""
        self.swap(start, pivot)
        low, high = start + 1, end - 1
        while True:
            while low <= high and not self.less(start, low):
                low += 1
            while low <= high and self.less(start, high):
                high -= 1
            if low > high:
                return low
            self.swap(low, high)
            low, high = low + 1, high - 1

    def is_sorted_by_shifting(self, start: int, end: int) -> bool:
        """Put a few elements right that are out of place; whether all of the part is sorted then."""
        place = start + 1
        for _ in range(_MOST_SHIFTED):
            while place < end and not self.less(place, place - 1):
                place += 1
            if place == end:
                return True
            if end - start < _FIRST_OF_NINE:
                return False
            self.swap(place, place - 1)
            if place - start >= 2:
                self.sink(place - 1, 0)
            if end - place >= 2:
                right = place + 1
                while right < end and self.less(right, right - 1):
                    self.swap(right, right - 1)
                    right += 1
        return False

    def scatter(self, start: int, length: int) -> None:
        """Break a pattern that made a bad pivot: swap three in the middle with chosen others."""
        random = length
        mask = (1 << length.bit_length()) - 1
        middle = start + length // 4 * 2
        for place in range(middle - 1, middle + 2):
            random ^= random << 13 & _WORD
            random ^= random >> 7
            random ^= random << 17 & _WORD
            other = random & mask
            self.swap(place, start + (other - length if other >= length else other))

    def heap_sort(self, start: int, length: int) -> None:
        for root in range((length - 1) // 2, -1, -1):
            self.sift_down(start, root, length)
        for last in range(length - 1, -1, -1):
            self.swap(start, start + last)
            self.sift_down(start, 0, last)

    def sift_down(self, start: int, root: int, length: int) -> None:
        while (child := 2 * root + 1) < length:
            if child + 1 < length and self.less(start + child, start + child + 1):
                child += 1
            if not self.less(start + root, start + child):
                return
            self.swap(start + root, start + child)
            root = child
