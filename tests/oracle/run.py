"""The two runs: generated cases for a time, and the recorded cases once."""

from __future__ import annotations

import base64
import json
import random
import re
import secrets
import signal
import time
import tomllib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from tests.oracle.claim_sources import source_cases
from tests.oracle.compare import RECORDED, Difference, Sides, comparable
from tests.oracle.configurations import configuration_cases
from tests.oracle.expressions import expression_cases
from tests.oracle.outcome import Outcome, kept
from tests.oracle.process import Oracle, OracleFault
from tests.oracle.reduce import reduced
from tests.oracle.sweep import sweep_cases
from tests.peers import find
from tests.peers.programs import SIGNATURE_LAST

__all__ = ["NO_ORACLE", "find_oracle", "fuzz", "replay", "say", "still_open", "sweep"]

NO_ORACLE = 3
MOST_FINDINGS_OF_A_KIND = 60
MOST_FINDINGS_ALIKE = 4
"""Reducing the same fault again and again finds nothing new."""
MOST_WAITING = 10
"""A run is counted in processor time, which on a machine that does nothing else is about the time on the clock; on one
that does not let it work, it ends after that many times as long."""


def say(text: str) -> None:
    print(text.encode("utf-8", "backslashreplace").decode(), flush=True)


def find_oracle(minor: str) -> Path | None:
    """The built oracle; where it is not, says how to get it."""
    program = find(f"oracle-{minor}")
    if program is None:
        say(f"oracle: not built; `python -m tests.peers.build oracle-{minor}` builds it, and needs Go")
    return program


def fuzz(
    minor: str, seconds: float, seed: int | None, only: str | None = None, findings: Path | None = None
) -> Outcome:
    """Compare generated cases until both sides together have worked for so long."""
    program = find_oracle(minor)
    assert program is not None
    seed = secrets.randbelow(1 << 32) if seed is None else seed
    source = random.Random(seed)
    streams = {
        "cel": expression_cases(source),
        "authn": configuration_cases(source),
        "sources": source_cases(source),
    }
    # Of a token that a source gave nothing can be asked again with one fault alone.
    sources = [] if minor in SIGNATURE_LAST else ["sources"]
    chosen = [only] if only else [*["cel"] * 9, *["authn"] * 3, *sources]
    outcome = Outcome(minor, seed=seed)
    say(f"oracle {minor}: seed {seed}, {seconds:.0f} s")
    started = time.monotonic()
    seen: dict[str, int] = {}
    alike: dict[str, int] = {}
    stopped: list[int] = []
    signal.signal(signal.SIGTERM, lambda number, frame: stopped.append(number))  # what was compared until then counts
    with Oracle(program) as oracle:
        sides = Sides(oracle, minor)
        outcome.versions = oracle.versions()
        while not stopped and _worked(oracle) < seconds and time.monotonic() - started < seconds * MOST_WAITING:
            case = next(streams[source.choice(chosen)])
            difference = _unexplained(outcome, sides, case)
            if difference is None:
                continue
            sort = f"{'cel' if 'expr' in case else 'authn'} {difference.kind}"
            seen[sort] = seen.get(sort, 0) + 1
            looks = f"{sort} {_outline(difference.theirs)} {_outline(difference.ours)}"
            alike[looks] = alike.get(looks, 0) + 1
            if seen[sort] <= MOST_FINDINGS_OF_A_KIND and alike[looks] <= MOST_FINDINGS_ALIKE:
                small = _reduce(sides, difference)
                outcome.unexplained.append(small)
                _report(small, findings)
        outcome.processor_seconds = _worked(oracle)
    outcome.seconds = time.monotonic() - started
    say(
        f"oracle {minor}: seed {seed}, {outcome.cases} cases in {outcome.seconds:.0f} s "
        f"({outcome.processor_seconds:.0f} s of processor), {outcome.unanswered} unanswered"
    )
    say(f"differences that are meant: {_counted(outcome.meant)}; others: {_counted(seen)}")
    return outcome if only else kept(outcome)


def _unexplained(outcome: Outcome, sides: Sides, case: dict[str, Any], known: str = "") -> Difference | None:
    """Compare one case and count what came of it. `known`: why the case may differ, whatever differs."""
    outcome.cases += 1
    try:
        difference = sides.compare(case)
    except OracleFault:
        outcome.unanswered += 1
        return None
    if difference is None:
        return None
    reason = difference.reason or known
    if reason:
        outcome.meant[reason] = outcome.meant.get(reason, 0) + 1
        return None
    return difference


def _counted(what: dict[str, int]) -> str:
    return ", ".join(f"{count} {name}" for name, count in sorted(what.items())) or "none"


def _worked(oracle: Oracle) -> float:
    return time.process_time() + oracle.processor_seconds()


def still_open(outcome: Outcome) -> list[Difference]:
    """The differences of an earlier run that are there now, too."""
    program = find_oracle(outcome.minor)
    if program is None or not outcome.unexplained:
        return outcome.unexplained
    found = []
    with Oracle(program) as oracle:
        sides = Sides(oracle, outcome.minor)
        for difference in outcome.unexplained:
            now = sides.compare(difference.case)
            if now is not None and not now.reason:
                found.append(now)
    return found


def _reduce(sides: Sides, difference: Difference) -> Difference:
    best = difference

    def still(case: dict[str, Any]) -> bool:
        nonlocal best
        try:
            found = sides.compare(case)
        except OracleFault:
            return False
        same = found is not None and found.kind == difference.kind and not found.reason
        if same and found is not None:
            best = found
        return same

    reduced(difference.case, still)
    return best


def _outline(text: str) -> str:
    """A text without what is quoted and counted in it: the same for findings that are alike."""
    return re.sub(r"'[^']*'|\"[^\"]*\"|\d+", "_", text)[:200]


def _report(difference: Difference, findings: Path | None) -> None:
    about = difference.case.get("expr") or difference.case.get("config", "")
    parts = str(difference.case.get("token") or "").split(".")
    if len(parts) == 3 and difference.kind not in ("decode", "config faults"):
        head = base64.urlsafe_b64decode("".join(c for c in parts[0] if c.isalnum() or c in "-_") + "===")
        about += f"\n  header {head!r}\n  claims {difference.case.get('claims')}"
    say(
        f"DIFFERENCE {difference.kind}: {about[:2500]}\n"
        f"  theirs {difference.theirs[:700]}\n  ours   {difference.ours[:700]}"
    )
    if findings is not None:
        findings.parent.mkdir(parents=True, exist_ok=True)
        case = {**difference.case, "expect": difference.answers[0]}
        with findings.open("a", encoding="utf-8") as file:
            file.write(json.dumps(case) + "\n")


def replay(minor: str, files: Sequence[Path] = ()) -> Outcome:
    """Recorded cases (of these files, else all), asked of the live code: does it still say so, and do we agree?"""
    program = find_oracle(minor)
    assert program is not None
    known = tomllib.loads((RECORDED / "known.toml").read_text(encoding="utf-8"))
    outcome = Outcome(minor)
    changed = 0
    started = time.monotonic()
    with Oracle(program) as oracle:
        sides = Sides(oracle, minor)
        outcome.versions = oracle.versions()
        for file in files or sorted(RECORDED.glob("*.jsonl")):
            kind = "authn" if file.name.startswith("authn") else "cel"
            for line in filter(str.strip, file.read_text(encoding="utf-8").splitlines()):
                case = json.loads(line)
                is_known = "ours" in case or case["name"] in known.get(kind, {})
                before = outcome.unanswered
                _keep(outcome, _unexplained(outcome, sides, case, "recorded as ours or known" if is_known else ""))
                changed += outcome.unanswered == before and _has_changed(sides, case)
        outcome.processor_seconds = _worked(oracle)
    outcome.seconds = time.monotonic() - started
    say(
        f"oracle {minor}: {outcome.cases} recorded cases in {outcome.seconds:.0f} s; "
        f"{changed} answered otherwise than recorded, "
        f"{sum(outcome.meant.values())} differences that are meant, {outcome.unanswered} unanswered"
    )
    say(f"{outcome.cases - len(outcome.unexplained)} passed, {len(outcome.unexplained)} failed")
    return outcome if files else kept(outcome)


def sweep(minor: str) -> Outcome:
    """One odd value at a time, everywhere."""
    program = find_oracle(minor)
    assert program is not None
    outcome = Outcome(minor)
    with Oracle(program) as oracle:
        sides = Sides(oracle, minor)
        for case in sweep_cases():
            _keep(outcome, _unexplained(outcome, sides, case))
    say(
        f"oracle {minor}: {outcome.cases} cases, {outcome.unanswered} unanswered; "
        f"differences that are meant: {_counted(outcome.meant)}"
    )
    say(f"{outcome.cases - len(outcome.unexplained)} passed, {len(outcome.unexplained)} failed")
    return outcome


def _keep(outcome: Outcome, difference: Difference | None) -> None:
    if difference is not None:
        outcome.unexplained.append(difference)
        _report(difference, None)


def _has_changed(sides: Sides, case: dict[str, Any]) -> bool:
    """Whether the live code answers otherwise than it did when the case was recorded."""
    if case.get("kubernetes", sides.minor) != sides.minor:
        return False
    if case.get("volatile") or case["expect"].get("volatile") or case["expect"].get("variants") or case.get("variants"):
        return False
    try:
        return comparable(case, sides.oracle_answer(case)) != comparable(case, case["expect"])
    except OracleFault:
        return False
