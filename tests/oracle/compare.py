"""Asks both sides about a case and says what differs, and whether that difference is meant."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from kubeauthn.cel.deep_stack import DeepStack
from kubeauthn.testing import recorded_authn, recorded_cel
from tests.oracle.meant import meant
from tests.oracle.process import Oracle

__all__ = ["Difference", "Sides", "comparable"]

RECORDED = Path(__file__).resolve().parents[1] / "recorded"
VARIANTS = 4
"""How often the oracle is asked again before a difference counts: the order of a Go map is no answer."""
Case = dict[str, Any]


@dataclass(frozen=True)
class Difference:
    """What differs for one case; `reason` where it is meant."""

    kind: str
    case: Case
    theirs: str
    ours: str
    reason: str = ""
    answers: tuple[Case, ...] = field(default=(), repr=False)


class Sides:
    """Kubernetes' code of one minor, and ours for the same minor."""

    def __init__(self, oracle: Oracle, minor: str) -> None:
        self._oracle = oracle
        self.minor = minor
        self._keys = json.loads((RECORDED / "jwks.json").read_text(encoding="utf-8"))
        self._authn = recorded_authn.Judge(self._keys)

    def compare(self, case: Case) -> Difference | None:
        """The first thing that differs, or None. Differences that Go's own disorder makes are none."""
        answers: list[Case] = []
        mismatches: list[tuple[str, str, str]] = []
        ours: Case = {}
        for _ in range(VARIANTS):
            answers.append(self._oracle.ask(self.with_keys(case)))
            if not ours:
                ours = self.answer(case)
            mismatches = self._mismatches(case, answers, ours)
            if not mismatches:
                return None
        what, theirs, found = mismatches[0]
        if what == "error text" and self._says_one_of_many(case, answers):
            return Difference(what, case, theirs, found, "map order", tuple(answers))
        reason = meant(case, answers[0], ours, what, self.oracle_answer, self.answer)
        return Difference(what, case, theirs, found, reason, tuple(answers))

    def _says_one_of_many(self, case: Case, answers: list[Case]) -> bool:
        """Whether the oracle itself has another error each time, since a Go map has no order."""
        texts = {self.oracle_answer(case).get("evalError") for _ in range(VARIANTS)}
        return None not in texts and len(texts | {answer.get("evalError") for answer in answers}) > 1

    def oracle_answer(self, case: Case) -> Case:
        return self._oracle.ask(self.with_keys(case))

    def with_keys(self, case: Case) -> Case:
        if "expr" in case:
            return case
        given = case.get("jwks")
        return {**case, "jwks": self._keys} if given is None or given == "default" else case

    def answer(self, case: Case) -> Case:
        """Our answer, by the rules of this minor."""
        if "expr" in case:
            with DeepStack(case["expr"]):
                return recorded_cel.answer({**case, "kubernetes": self.minor})
        return self._authn.answer({**case, "kubernetes": self.minor})

    @staticmethod
    def _mismatches(case: Case, answers: list[Case], ours: Case) -> list[tuple[str, str, str]]:
        if any("panic" in answer for answer in answers):
            return [("panic", json.dumps(answers[0])[:600], json.dumps(ours)[:600])]
        if "expr" not in case:
            return min((recorded_authn._compare(answer, ours) for answer in answers), key=len)
        costs_vary = len({answer.get("cost") for answer in answers}) > 1
        found = []
        for answer in answers:
            expected = {**answer, "cost": ours.get("cost")} if costs_vary else answer
            found.append(recorded_cel._compare(expected, ours))
        return min(found, key=len)


def comparable(case: Case, answer: Case) -> Case:
    """An answer with what no two runs of the real program share put away: orders of maps and addresses."""
    plain = {key: value for key, value in answer.items() if key not in ("variants", "volatile")}
    if "expr" in case:
        if "value" in plain:
            plain["value"] = recorded_cel._canonical(plain["value"])
        return plain
    error = recorded_authn._without_scheme(plain.get("strictDecodeError"))
    return {**plain, "strictDecodeError": error, "configErrors": plain.get("configErrors") or []}
