"""The two runs: generated cases for a time, and the recorded cases once."""

from __future__ import annotations

import json
import random
import secrets
import time
import tomllib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from tests.oracle.compare import RECORDED, Difference, Sides, comparable
from tests.oracle.configurations import configuration_cases
from tests.oracle.expressions import expression_cases
from tests.oracle.outcome import Outcome, kept
from tests.oracle.process import Oracle, OracleFault
from tests.oracle.reduce import reduced
from tests.peers import find

__all__ = ["NO_ORACLE", "find_oracle", "fuzz", "replay", "say", "still_open"]

NO_ORACLE = 3
MOST_FINDINGS_OF_A_KIND = 20
"""Reducing the same fault again and again finds nothing new."""


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
    """Compare generated cases until the time is over."""
    program = find_oracle(minor)
    assert program is not None
    seed = secrets.randbelow(1 << 32) if seed is None else seed
    source = random.Random(seed)
    streams = {"cel": expression_cases(source), "authn": configuration_cases(source)}
    chosen = [only] if only else ["cel", "cel", "cel", "authn"]
    outcome = Outcome(minor, seed=seed)
    say(f"oracle {minor}: seed {seed}, {seconds:.0f} s")
    started = time.monotonic()
    seen: dict[str, int] = {}
    with Oracle(program) as oracle:
        sides = Sides(oracle, minor)
        outcome.versions = oracle.versions()
        while time.monotonic() - started < seconds:
            case = next(streams[source.choice(chosen)])
            outcome.cases += 1
            try:
                difference = sides.compare(case)
            except OracleFault:
                outcome.unanswered += 1
                continue
            if difference is None:
                continue
            if difference.reason:
                outcome.meant[difference.reason] = outcome.meant.get(difference.reason, 0) + 1
                continue
            sort = f"{'cel' if 'expr' in case else 'authn'} {difference.kind}"
            seen[sort] = seen.get(sort, 0) + 1
            if seen[sort] <= MOST_FINDINGS_OF_A_KIND:
                small = _reduce(sides, difference)
                outcome.unexplained.append(small)
                _report(small, findings)
    outcome.seconds = time.monotonic() - started
    kinds = ", ".join(f"{count} {sort}" for sort, count in sorted(seen.items())) or "none"
    meant = ", ".join(f"{count} {name}" for name, count in sorted(outcome.meant.items())) or "none"
    say(
        f"oracle {minor}: seed {seed}, {outcome.cases} cases in {outcome.seconds:.0f} s, "
        f"{outcome.unanswered} unanswered"
    )
    say(f"differences that are meant: {meant}; others: {kinds}")
    return outcome if only else kept(outcome)


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


def _report(difference: Difference, findings: Path | None) -> None:
    about = difference.case.get("expr") or difference.case.get("config", "")
    say(
        f"DIFFERENCE {difference.kind}: {about[:1500]}\n"
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
                outcome.cases += 1
                try:
                    changed += _has_changed(sides, case)
                    difference = sides.compare(case)
                except OracleFault:
                    outcome.unanswered += 1
                    continue
                if difference is None:
                    continue
                reason = "ours" in case or difference.reason or case["name"] in known.get(kind, {})
                if reason:
                    name = difference.reason or "recorded as ours or known"
                    outcome.meant[name] = outcome.meant.get(name, 0) + 1
                else:
                    outcome.unexplained.append(difference)
                    _report(difference, None)
    outcome.seconds = time.monotonic() - started
    say(
        f"oracle {minor}: {outcome.cases} recorded cases in {outcome.seconds:.0f} s; "
        f"{changed} answered otherwise than recorded, "
        f"{sum(outcome.meant.values())} differences that are meant, {outcome.unanswered} unanswered"
    )
    say(f"{outcome.cases - len(outcome.unexplained)} passed, {len(outcome.unexplained)} failed")
    return outcome if files else kept(outcome)


def _has_changed(sides: Sides, case: dict[str, Any]) -> bool:
    """Whether the live code answers otherwise than it did when the case was recorded."""
    if case.get("kubernetes", sides.minor) != sides.minor:
        return False
    if case.get("volatile") or case["expect"].get("volatile") or case["expect"].get("variants") or case.get("variants"):
        return False
    return comparable(case, sides.oracle_answer(case)) != comparable(case, case["expect"])
