"""The compatibility page as it is committed. `python -m tests.compat --check` measures it anew; this takes no time."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.compat.__main__ import MOST_RUNS, PAGE, check
from tests.compat.columns import COLUMNS, GROUPS
from tests.compat.page import WITH_KUBEAUTHN, render, tables
from tests.compat.rows import ROWS, wrong_cells

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module")
def page() -> str:
    return PAGE.read_text(encoding="utf-8")


@pytest.fixture
def all_right() -> dict[str, dict[str, str]]:
    return {name: {row.key: row.right for row in ROWS} for name in COLUMNS}


def locked_versions() -> dict[str, str]:
    pins = (line.partition(" ")[0].partition("==") for line in (ROOT / "constraints.txt").read_text().splitlines())
    return {name.lower().replace("_", "-"): version for name, equal, version in pins if equal}


def test_page_names_the_versions_of_the_constraints(page: str):
    *_, versions = tables(page)
    named = {name.lower().replace("_", "-"): version for name, version in versions[1:]}
    measured = {library.distribution.replace("_", "-") for group in GROUPS for library in group}
    assert named == {name: locked_versions()[name] for name in measured}


def test_heads_of_the_tables_name_the_same_versions(page: str):
    _, *comparisons, _ = tables(page)
    locked = locked_versions()
    for group, table in zip(GROUPS, comparisons, strict=True):
        for library in group:
            wanted = f"{library.title} {locked[library.distribution.replace('_', '-')]}"
            assert [head for head in table[0] if head.startswith(wanted)], wanted


def test_every_row_is_there_and_every_cell_with_kubeauthn_is_right(page: str):
    _, *comparisons, _ = tables(page)
    green = 0
    for table in comparisons:
        head, *rows = table
        assert [row[0] for row in rows] == [row.title for row in ROWS]
        ours = [number for number, name in enumerate(head) if name.endswith(WITH_KUBEAUTHN)]
        assert ours
        for row in rows:
            assert {row[number] for number in ours} == {"✓"}, row
        green += len(ours) * len(rows)
    assert green == sum(column.ours for column in COLUMNS.values()) * len(ROWS)


def test_overview_counts_what_the_tables_say(page: str):
    overview, *comparisons, _ = tables(page)
    counted: dict[str, int] = {}
    for head, *rows in comparisons:
        for number, name in enumerate(head[2:], 2):
            if WITH_KUBEAUTHN not in name:
                counted[name] = sum(row[number].startswith("✓") for row in rows)
    assert {name: int(alone) for name, alone, _ in overview[1:] if alone} == counted


# -- what makes a run fail ------------------------------------------------------------------------


def test_a_wrong_cell_with_kubeauthn_is_found(all_right: dict[str, dict[str, str]]):
    assert list(wrong_cells(all_right)) == []
    all_right["kr8s with kubeauthn"]["403"] = "several runs"
    assert list(wrong_cells(all_right)) == [
        "kr8s with kubeauthn: Plugin run again after a 403: expected 'no run', got 'several runs'"
    ]


def test_with_kubeauthn_not_even_the_second_best_will_do(all_right: dict[str, dict[str, str]]):
    all_right["httpx with kubeauthn"]["401"] = "yes, next call"
    assert len(list(wrong_cells(all_right))) == 1


def test_a_row_that_was_not_measured_is_found_in_every_column(all_right: dict[str, dict[str, str]]):
    del all_right["kr8s alone"]["both"]
    assert list(wrong_cells(all_right)) == ["kr8s alone: Certificate and token together: not measured"]


def test_a_client_alone_may_be_wrong_and_the_page_says_so(all_right: dict[str, dict[str, str]]):
    all_right["kr8s alone"]["403"] = "several runs"
    assert list(wrong_cells(all_right)) == []
    assert render(all_right).count("✗ several runs") == 1


def test_check_shows_what_differs_in_every_run(page: str, capsys: pytest.CaptureFixture[str]):
    runs = iter([page])
    assert check(page, lambda: next(runs)) == 0
    assert capsys.readouterr().err == ""
    runs = iter([page.replace("✗ goes on anonymously", "✓", 1)] * MOST_RUNS)
    assert check(page, lambda: next(runs)) == 1
    assert list(runs) == []
    shown = capsys.readouterr().err
    assert "-| The plugin fails | an error, nothing is sent | ✗ goes on anonymously |" in shown
    assert "+| The plugin fails | an error, nothing is sent | ✓ |" in shown
    assert "make compat" in shown


def test_check_takes_what_was_seen_in_one_run_of_a_few(page: str):
    """What a client does with twenty calls at once hangs on which of them comes first."""
    one, other = page.replace("✗ several runs", "✗ calls fail", 1), page.replace("✗ ignored", "✓", 1)
    runs = iter([one, other])
    assert check(page, lambda: next(runs)) == 0
    runs = iter([one, one, one])
    assert check(page, lambda: next(runs)) == 1
    runs = iter([page + "more\n"] * MOST_RUNS)
    assert check(page, lambda: next(runs)) == 1
