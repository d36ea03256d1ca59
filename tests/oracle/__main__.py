"""Compares us with Kubernetes' own code.

    python -m tests.oracle --minutes N [--minor 1.37] [--seed N] [--only cel|authn|sources] [--findings FILE]
    python -m tests.oracle --recorded [--minor 1.37] [FILE …]
    python -m tests.oracle --sweep [--minor 1.37]
    python -m tests.oracle --write-page

The first generates cases until the time is over, reduces each difference to a small case and appends it to the
findings file; seed, count and duration are printed, and the exit status is 1 if there is a difference that is not
meant. The second replays everything in tests/recorded. The third puts every odd value into every field, member of a
header and claim. The first two keep their outcome in build/oracle; the last writes
docs/compat/kubernetes.md from the outcomes that are there, and runs what has none.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from tests.oracle.run import NO_ORACLE, find_oracle, fuzz, replay, say, sweep
from tests.peers.programs import CHECKED_ONLY, MINORS

ROOT = Path(__file__).resolve().parents[2]


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.oracle", description="compare us with Kubernetes' own code")
    parser.add_argument("--minutes", type=float, default=1.0)
    parser.add_argument("--minor", choices=(*MINORS, *CHECKED_ONLY), default=MINORS[0])
    parser.add_argument("--seed", type=int, default=None)
    parser.add_argument("--only", choices=("cel", "authn", "sources"), default=None)
    parser.add_argument("--findings", type=Path, default=ROOT / "build" / "oracle-findings.jsonl")
    parser.add_argument("--recorded", action="store_true", help="replay tests/recorded instead")
    parser.add_argument("--sweep", action="store_true", help="one odd value at a time instead")
    parser.add_argument(
        "--write-page", action="store_true", help="write docs/compat/kubernetes.md from runs of all minors"
    )
    parser.add_argument("files", nargs="*", type=Path, metavar="FILE", help="with --recorded: these cases only")
    options = parser.parse_args(arguments)
    if find_oracle(options.minor) is None:
        return NO_ORACLE
    if options.write_page:
        from tests.oracle.page import write_page

        return write_page(ROOT, options.minutes, options.seed)
    if options.sweep:
        return 1 if sweep(options.minor).unexplained else 0
    if options.recorded:
        return 1 if replay(options.minor, options.files).unexplained else 0
    outcome = fuzz(options.minor, options.minutes * 60, options.seed, options.only, options.findings)
    if outcome.unexplained:
        say(f"findings: {options.findings}")
    return 1 if outcome.unexplained else 0


if __name__ == "__main__":
    sys.exit(main())
