"""What a benchmark's run leaves behind: the page and the plot are of the results, and of nothing else."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

from bench import plot, report
from bench.measure import limit_row

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


@pytest.mark.parametrize(("path", "part"), report.pages(), ids=["docs/benchmarks.md", "README.md"])
def test_the_page_holds_the_figures_of_the_results(path: Path, part: Callable[[dict[str, Any]], str]) -> None:
    page = path.read_text(encoding="utf-8")
    assert page == report.page_with(page, part(FOUND)), "python -m bench.report --write"


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
    assert "| authenticate: ES256 | kube-apiserver's code | 9.1 µs | 10 µs | 0.91 × | ≤ 0.769 × | ±5% / ±10% |" in told


def test_without_a_missed_goal_there_is_no_table_of_them() -> None:
    told = report.measured_part({**FOUND, "results": [result("x", "y", 0.5, goal="≤ 1 ×")]})
    assert "1 of 1 goals are met" in told
    assert "Missed" not in told


def test_what_was_left_out_is_said() -> None:
    assert "Left out, because it was not there: Go." in report.measured_part({**FOUND, "left_out": ["Go"]})


def test_a_page_without_its_marks_is_not_written_over() -> None:
    with pytest.raises(ValueError, match="lost the marks"):
        report.page_with("# Benchmarks\n", "figures")


def test_the_readme_says_by_how_much_goals_are_missed() -> None:
    missed = result("authenticate: ES256", "kube-apiserver's code", 0.91, goal="≤ 0.769 ×", met=False)
    headline = result(*report.HEADLINES[0], 0.5, goal="≤ 1 ×")
    told = report.short_part({**FOUND, "results": [missed, headline, result("x", "y", 1.0)]})
    assert told.startswith("1 of 2 goals are met in the last full run (")
    assert "| authenticate: ES256 | kube-apiserver's code | 0.91 × | ≤ 0.769 × | 18.3% | ±5% / ±10% |" in told
    assert "| authenticate: RS256 | kube-apiserver's code | 5 µs | 10 µs | 0.5 × | ≤ 1 × | ±5% / ±10% |" in told


def test_a_headline_whose_goal_is_missed_is_not_shown_as_met() -> None:
    missed = result(*report.HEADLINES[0], 2.0, goal="≤ 1 ×", met=False)
    told = report.short_part({**FOUND, "results": [missed]})
    assert "met, for example" not in told
    assert "| 2 × | ≤ 1 × | 100.0% | ±5% / ±10% |" in told


@pytest.mark.parametrize(
    ("ratio", "unit", "goal", "reached", "by"),
    [
        (1.04, "µs", "≤ 1.03 ×", "1.04 ×", "1.0%"),
        (1.17, "1/s", "≥ 1.3 ×", "1.17 ×", "10.0%"),
        (1.3, "µs", "≤ 2 µs more", "3 µs more", "50.0%"),
        (18.0, "ms", "≤ 150 ms", "180 ms", "20.0%"),
        (0.9, "runs", "= 10", "9 runs", "10.0%"),
    ],
)
def test_how_far_a_goal_is_missed_whatever_its_kind(ratio: float, unit: str, goal: str, reached: str, by: str) -> None:
    assert report.behind(result("x", "y", ratio, unit, goal, met=False)) == (reached, by)


def test_a_limit_is_judged_by_the_median() -> None:
    assert limit_row("x", [1.0, 2.0, 9.0], most=2.0, unit="s").met
    row = limit_row("x", [1.0, 3.0, 9.0], most=2.0, unit="s")
    assert (row.met, row.ratio, row.goal, row.peer_name) == (False, 1.5, "≤ 2 s", "the limit")


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


def test_a_row_is_told_with_its_spread_and_how_well_its_ratio_is_known() -> None:
    known = {**result(*report.HEADLINES[0], 0.5, goal="≤ 1 ×"), "ratio_within": 0.0123}
    assert "| ±5% / ±10%, ratio ±1.2% |" in report.short_part({**FOUND, "results": [known]})
    unknown = {**result(*report.HEADLINES[0], 0.5, goal="≤ 1 ×"), "spread": ""}
    assert "| not taken |" in report.short_part({**FOUND, "results": [unknown]})


@pytest.mark.parametrize("key", [*plot.SHOWN, *report.HEADLINES], ids=" beside ".join)
def test_what_is_shown_is_named_as_it_is_measured(key: tuple[str, str]) -> None:
    peers = {each["peer_name"] for each in FOUND["results"] if each["name"] == key[0]}
    assert not peers or key[1] in peers


@pytest.mark.parametrize(
    ("ratio", "met", "kind"),
    [(0.5, True, "faster"), (2.0, True, "slower"), (0.9, False, "missed"), (2.0, False, "missed")],
)
def test_only_a_missed_goal_has_the_colour_of_a_warning(ratio: float, met: bool, kind: str) -> None:
    row = result(*plot.SHOWN[0], ratio, goal="≤ 0.5 ×", met=met)
    tree = ElementTree.fromstring(plot.svg({**FOUND, "results": [row]}))  # noqa: S314 - our own text
    bars = [node.get("class") for node in tree.iter() if node.tag.endswith("rect") and node.get("height") == "16"]
    assert bars == [kind]


def test_headings_are_of_the_rows_that_are_there() -> None:
    drawn = plot.svg({**FOUND, "results": [result(*plot.SHOWN[0], 0.5)]})
    assert plot.GROUPS[0][0] in drawn
    assert plot.GROUPS[1][0] not in drawn


def test_what_is_not_here_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(report.peer, "program", lambda: None)
    monkeypatch.setattr(report, "find", lambda name: None)
    monkeypatch.setattr(report.shutil, "which", lambda name: None)
    told = " ".join(report.left_out())
    assert all(name in told for name in ("Go", "kubectl", "openssl", "SoftHSM2", "Chromium"))


def test_a_plot_of_nothing_is_a_plot() -> None:
    ElementTree.fromstring(plot.svg({**FOUND, "results": []}))  # noqa: S314 - our own text


def test_colours_are_there_for_light_and_dark() -> None:
    assert "prefers-color-scheme: dark" in plot.svg(FOUND)
