"""How readings become rows: when there are enough of them, how well a ratio is known, and what is said of it."""

from __future__ import annotations

import gc

import pytest

from bench.measure import (
    Pairs,
    count_row,
    growth_rows,
    in_order,
    interleaved,
    own_garbage_only,
    rate_row,
    ratio_row,
    ratio_within,
    told_spread,
)


def scattered(middle: float, part: float, count: int) -> list[float]:
    """Evenly between `part` below and `part` above the middle, in no order that repeats."""
    return [middle * (1 + part * (2 * (number * 0.618034 % 1) - 1)) for number in range(count)]


def test_the_ratio_of_steadier_readings_is_known_better():
    steady, restless = (ratio_within((scattered(2.0, part, 400), [1.0] * 400)) for part in (0.02, 0.2))
    assert steady is not None
    assert restless is not None
    assert steady < restless / 5


def test_more_readings_make_the_ratio_known_better():
    few, many = (ratio_within((scattered(2.0, 0.2, count), [1.0] * count)) for count in (20, 2000))
    assert few is not None
    assert many is not None
    assert many < few


@pytest.mark.parametrize("count", [0, 1, 5])
def test_of_a_few_readings_nothing_is_claimed(count: int):
    assert ratio_within(([1.0] * count, [1.0] * count)) is None


def test_the_interval_holds_the_middle_readings_and_not_the_outliers():
    ours = [1.0] * 95 + [50.0] * 5
    assert ratio_within((ours, [1.0] * 100)) == 0.0


def taken(pairs: Pairs, part: float) -> int:
    for mine in scattered(1.0, part, 10_000):
        if pairs.enough():
            break
        pairs.ours.append(mine)
        pairs.peer.append(1.0)
    return len(pairs.ours)


def test_steady_pairs_end_at_the_least_and_restless_ones_at_the_most():
    assert taken(Pairs(least=50, most=900, within=0.01), 0.0) == 50
    assert taken(Pairs(least=50, most=900, within=0.0001), 0.5) == 900
    assert 50 < taken(Pairs(least=50, most=9000, within=0.02), 0.4) < 9000


def test_pairs_that_take_long_end_in_time():
    pairs = Pairs(least=50, most=9000, within=0.0001, seconds=150.0)
    assert taken(pairs, 0.5) == 100
    assert sum(pairs.ours + pairs.peer) > 150.0


def test_the_number_of_pairs_does_not_hang_on_the_side_of_a_goal():
    for factor in (0.9, 1.1):
        pairs = Pairs(least=50, most=900, within=0.02)
        pairs.ours += [factor * each for each in scattered(1.0, 0.02, 50)]
        pairs.peer += [1.0] * 50
        assert pairs.enough()


def test_who_begins_changes():
    assert in_order(0, "ours", "peer") == ((1, "peer"), (0, "ours"))
    assert in_order(1, "ours", "peer") == ((0, "ours"), (1, "peer"))


def test_readings_of_both_are_kept_apart_in_turns():
    order: list[str] = []
    readings = interleaved(lambda: order.append("ours") or 1.0, lambda: order.append("peer") or 2.0, 3)  # type: ignore[func-returns-value]
    assert readings == ([1.0] * 3, [2.0] * 3)
    assert order[2:] == ["peer", "ours", "ours", "peer", "peer", "ours"]


def test_what_was_there_before_is_collected_again_afterwards():
    before = gc.get_freeze_count()
    with own_garbage_only():
        assert gc.get_freeze_count() > before
    assert gc.get_freeze_count() == 0


def test_one_reading_has_no_spread():
    assert told_spread([1.0]) == "one reading"
    assert told_spread([1.0], [2.0]) == "one reading"
    assert told_spread([1.0, 1.0, 1.0], [2.0, 2.0, 2.0]) == "±0% / ±0%"


def test_a_row_says_how_well_its_ratio_is_known():
    readings = (scattered(2.0, 0.1, 50), [1.0] * 50)
    for row in (ratio_row("x", readings, peer_name="y", goal=None), rate_row("x", readings, peer_name="y", goal=None)):
        assert row.ratio_within == ratio_within(readings)
        assert row.as_dict()["ratio_within"] == row.ratio_within


def test_growth_is_judged_by_the_least_reading_of_each_size():
    ten, hundred = growth_rows("x", {1: [1.0, 9.0], 10: [10.0, 99.0], 100: [300.0, 400.0]}, 12, unit="MB", scale=1)
    assert (ten.name, ten.ours, ten.peer, ten.unit, ten.met) == ("x: 10", 10.0, 1.0, "MB", True)
    assert (hundred.ratio, hundred.met, hundred.goal) == (30.0, False, "≤ 12 ×")


def test_growth_without_a_goal_is_there_to_be_seen():
    (row,) = growth_rows("x", {1: [1.0], 10: [1000.0]}, None)
    assert (row.goal, row.met, row.spread) == ("none", True, "one reading")


def test_a_count_says_over_how_many_repetitions():
    assert count_row("x", 2, 1, "runs", "each of 5").spread == "each of 5"
    assert not count_row("x", 2, 1, "runs").met
