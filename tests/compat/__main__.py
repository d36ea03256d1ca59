"""`python -m tests.compat --write` or `--check`."""

from __future__ import annotations

import argparse
import difflib
import sys

from tests.compat.columns import COLUMNS
from tests.compat.page import render
from tests.compat.rows import wrong_cells
from tests.compat.run import ROOT, ColumnFailed, run_columns

PAGE = ROOT / "docs" / "compat" / "python-clients.md"


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.compat", description=__doc__)
    what = parser.add_mutually_exclusive_group(required=True)
    what.add_argument("--write", action="store_true", help="measure, and write the page")
    what.add_argument("--check", action="store_true", help="measure, and fail if the page says anything else")
    arguments = parser.parse_args()
    try:
        measured = run_columns(COLUMNS)
    except ColumnFailed as error:
        print(f"could not be measured: {error}", file=sys.stderr)
        return 1
    wrong = list(wrong_cells(measured))
    if wrong:
        print("\n".join(("not right, and nothing is written:", *wrong)), file=sys.stderr)
        return 1
    page = render(measured)
    if arguments.write:
        PAGE.parent.mkdir(parents=True, exist_ok=True)
        PAGE.write_text(page, encoding="utf-8")
        return 0
    return compare(PAGE.read_text(encoding="utf-8") if PAGE.exists() else "", page)


def compare(committed: str, measured: str) -> int:
    """0 if they are the same; else the difference is printed."""
    if committed == measured:
        return 0
    name = str(PAGE.relative_to(ROOT))
    lines = difflib.unified_diff(
        committed.splitlines(), measured.splitlines(), f"{name} (committed)", f"{name} (measured)", lineterm="", n=1
    )
    print("\n".join((*lines, "", "`make compat` writes the page anew")), file=sys.stderr)
    return 1


if __name__ == "__main__":
    sys.exit(main())
