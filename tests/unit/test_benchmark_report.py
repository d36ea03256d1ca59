"""What a benchmark's run leaves behind: the page and the plot are of the results, and of nothing else."""

from __future__ import annotations

import json
from typing import Any
from xml.etree import ElementTree

import pytest

from bench import plot, report

FOUND: dict[str, Any] = json.loads(report.RESULTS.read_text(encoding="utf-8"))


def result(
    name: str, peer: str, ratio: float, unit: str = "µs", goal: str = "none", met: bool = True
) -> dict[str, Any]:
    return {
        "name": name,
        "ours": 10.0 * ratio,
        "peer": 10.0,
        "unit": unit,
        "ratio": ratio,
        "goal": goal,
        "met": met,
        "spread": "±5% / ±10%",
        "peer_name": peer,
    }


def test_the_page_holds_the_figures_of_the_results() -> None:
    page = report.PAGE.read_text(encoding="utf-8")
    assert page == report.page_with(page, FOUND), "python -m bench.report --write"


def test_the_plot_is_of_the_results() -> None:
    assert report.PLOT.read_text(encoding="utf-8") == plot.svg(FOUND), "python -m bench.report --write"


def test_every_result_has_the_fields_that_readers_rely_on() -> None:
    for each in FOUND["results"]:
        assert {"name", "ours", "peer", "unit", "ratio", "goal", "met"} <= each.keys()
    assert FOUND["machine"]["cores"]
    assert FOUND["versions"]


def test_a_missed_goal_is_told_with_its_figures() -> None:
    missed = result("authenticate: ES256", "kube-apiserver's code", 0.91, goal="≤ 0.769 ×", met=False)
    told = report.measured_part({**FOUND, "results": [missed, result("x", "y", 1.0)]})
    assert "0 of 1 goals are met" in told
    assert "| authenticate: ES256 | kube-apiserver's code | 9.1 µs | 10 µs | 0.91 × | ≤ 0.769 × |" in told


def test_without_a_missed_goal_there_is_no_table_of_them() -> None:
    told = report.measured_part({**FOUND, "results": [result("x", "y", 0.5, goal="≤ 1 ×")]})
    assert "1 of 1 goals are met" in told
    assert "Missed" not in told


def test_what_was_left_out_is_said() -> None:
    assert "Left out, because it was not there: Go." in report.measured_part({**FOUND, "left_out": ["Go"]})


def test_a_page_without_its_marks_is_not_written_over() -> None:
    with pytest.raises(ValueError, match="lost the marks"):
        report.page_with("# Benchmarks\n", FOUND)


@pytest.mark.parametrize(
    ("unit", "ratio", "times"), [("µs", 0.5, 2.0), ("ms", 4.0, 0.25), ("1/s", 2.0, 2.0), ("MB/s", 0.25, 0.25)]
)
def test_times_as_fast_goes_one_way_for_times_and_rates(unit: str, ratio: float, times: float) -> None:
    assert plot.times_as_fast(result("x", "y", ratio, unit)) == times


def test_goals_that_are_no_ratio_have_no_mark() -> None:
    assert plot.goal_times(result("x", "y", 1.0, goal="≤ 2 µs more")) is None
    assert plot.goal_times(result("x", "y", 1.0, goal="≤ 0.5 ×")) == 2.0
    assert plot.goal_times(result("x", "y", 1.0, unit="1/s", goal="≥ 1.3 ×")) == 1.3


def test_the_plot_is_well_formed_whatever_the_names_and_figures_are() -> None:
    hostile = "</text><script>alert(1)</script>"
    name, peer = plot.SHOWN[0]
    rows = [
        result(*plot.SHOWN[1], 0.001),
        result(*plot.SHOWN[2], 900.0, met=False, goal="≤ 0.5 ×"),
        result(name, peer, 1.0),
    ]
    machine = {**FOUND["machine"], "processor": hostile}
    drawn = plot.svg({**FOUND, "machine": machine, "results": rows})
    tree = ElementTree.fromstring(drawn)  # noqa: S314 - our own text
    assert not [node for node in tree.iter() if node.tag.endswith("script")]
    assert "goal missed" in drawn
    assert hostile in "".join(tree.itertext())


def test_a_plot_of_nothing_is_a_plot() -> None:
    ElementTree.fromstring(plot.svg({**FOUND, "results": []}))  # noqa: S314 - our own text


def test_colours_are_there_for_light_and_dark() -> None:
    assert "prefers-color-scheme: dark" in plot.svg(FOUND)
