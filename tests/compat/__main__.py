"""`python -m tests.compat --write` or `--check`."""

from __future__ import annotations

import argparse
import difflib
import sys
from collections.abc import Callable

from tests.compat.columns import COLUMNS
from tests.compat.page import render
from tests.compat.rows import wrong_cells
from tests.compat.run import ROOT, ColumnFailed, run_columns

PAGE = ROOT / "docs" / "compat" / "python-clients.md"
MOST_RUNS = 3


class Unfit(Exception):
    """There is no page: a column could not be measured, or kubeauthn itself is wrong in one."""


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.compat", description=__doc__)
    what = parser.add_mutually_exclusive_group(required=True)
    what.add_argument("--write", action="store_true", help="measure, and write the page")
    what.add_argument("--check", action="store_true", help="measure, and fail if the page says anything else")
    arguments = parser.parse_args()
    try:
        if arguments.write:
            PAGE.parent.mkdir(parents=True, exist_ok=True)
            PAGE.write_text(measured_page(), encoding="utf-8")
            return 0
        return check(PAGE.read_text(encoding="utf-8") if PAGE.exists() else "", measured_page)
    except Unfit as error:
        print(error, file=sys.stderr)
        return 1


def measured_page() -> str:
    try:
        measured = run_columns(COLUMNS)
    except ColumnFailed as error:
        raise Unfit(f"could not be measured: {error}") from None
    wrong = list(wrong_cells(measured))
    if wrong:
        raise Unfit("\n".join(("not right, and nothing is written:", *wrong)))
    return render(measured)


def check(committed: str, measure: Callable[[], str]) -> int:
    """0 if each line of the page is seen in one of a few runs; else the difference is printed.

    What another client does with twenty calls at once can be one thing in one run and another in the next.
    """
    expected = committed.splitlines()
    runs: list[list[str]] = []
    while len(runs) < MOST_RUNS:
        runs.append(measure().splitlines())
        if all(len(run) == len(expected) for run in runs) and all(
            any(run[number] == line for run in runs) for number, line in enumerate(expected)
        ):
            return 0
    name = str(PAGE.relative_to(ROOT))
    lines = difflib.unified_diff(expected, runs[-1], f"{name} (committed)", f"{name} (measured)", lineterm="", n=1)
    print("\n".join((*lines, "", "`make compat` writes the page anew")), file=sys.stderr)
    return 1


if __name__ == "__main__":
    sys.exit(main())
