"""`python -m bench [--quick] [--only NAME]`: every scenario, a table; in full, also bench/results and its page."""

from __future__ import annotations

import argparse
import importlib
import json
import os
import signal
import sys
import tempfile
import time
import traceback
from pathlib import Path

from bench import plot, report
from bench.measure import Row

SCENARIOS = (
    "authenticate",
    "cel",
    "configuration",
    "webhook",
    "serve",
    "hot_path",
    "adapters",
    "kubeconfig",
    "signer",
    "proxy",
    "memory",
    "startup",
    "server_memory",
    "first_steps",
)


LONGEST_SCENARIO = 30 * 60
"""Seconds. One that hangs ends as one that failed, and the others get their turn."""


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m bench", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="fewer repetitions, nothing written")
    parser.add_argument("--only", choices=SCENARIOS, action="append", help="this scenario alone")
    parser.add_argument("--output", type=Path, metavar="DIR", help="write results and plot there, of any run")
    arguments = parser.parse_args()
    begun = time.monotonic()
    rows: list[Row] = []
    failed: list[str] = []
    left_out = report.left_out()
    print(f"{report.described(report.machine())}, load {os.getloadavg()[0]:.2f}")
    for each in left_out:
        print(f"left out, because it is not here: {each}")
    print(header(), flush=True)
    names = arguments.only or SCENARIOS
    for number, name in enumerate(names, 1):
        started = time.monotonic()
        print(f"      {name} begins, {number} of {len(names)}", flush=True)  # its first row may take a minute
        try:
            rows += measured(name, quick=arguments.quick)
        except (Exception, SystemExit):  # the other scenarios are worth their time all the same
            traceback.print_exc()
            failed.append(name)
        print(f"      {name} took {time.monotonic() - started:.0f} s", flush=True)
    if arguments.output:
        found = report.document(rows, left_out)
        (arguments.output / "latest.json").write_text(json.dumps(found, indent=1, ensure_ascii=False) + "\n")
        (arguments.output / "latest.svg").write_text(plot.svg(found))
    if not arguments.quick and not arguments.only and not failed:
        report.write(report.document(rows, left_out))
    return verdict(rows, failed, time.monotonic() - begun, quick=arguments.quick)


def measured(name: str, *, quick: bool) -> list[Row]:
    scenario = importlib.import_module(f"bench.{name}")
    rows = []
    signal.signal(signal.SIGALRM, _too_long)
    signal.alarm(LONGEST_SCENARIO // 10 if quick else LONGEST_SCENARIO)
    try:
        with tempfile.TemporaryDirectory(prefix="kubeauthn-bench-") as folder:
            for row in scenario.rows(Path(folder), quick=quick):
                print(line(row), flush=True)
                rows.append(row)
    finally:
        signal.alarm(0)
    return rows


def _too_long(number: int, frame: object) -> None:
    raise TimeoutError("the scenario does not end")


def verdict(rows: list[Row], failed: list[str], seconds: float, *, quick: bool) -> int:
    with_goal = [row for row in rows if row.goal != "none"]
    missed = [row for row in with_goal if not row.met]
    print(f"\n{len(with_goal) - len(missed)} of {len(with_goal)} goals met, {len(rows)} rows, {seconds:.0f} s")
    if failed:
        print(f"not measured because of a fault: {', '.join(failed)}")
        return 1
    # Quick runs are too short to judge a few per cent by: they show that everything runs.
    return 1 if missed and not quick else 0


def header() -> str:
    return f"{'goal':<5} {'':<72} {'ours':>10} {'unit':<7} {'peer':>10} {'ratio':>8}   {'wanted':<14} spread"


def line(row: Row) -> str:
    mark = "-" if row.goal == "none" else "met" if row.met else "MISS"
    known = "" if row.ratio_within is None else f"ratio ±{row.ratio_within:.1%}"
    return (
        f"{mark:<5} {row.name:<72} {row.ours:>10.3f} {row.unit:<7} {row.peer:>10.3f} {row.ratio:>7.3f} ×  "
        f"{row.goal:<14} {row.spread:<13} {known:<13} beside {row.peer_name}"
    )


if __name__ == "__main__":
    sys.exit(main())
