"""Asks both sides about a case and says what differs, and whether that difference is meant."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from kubeauthn.cel.deep_stack import DeepStack
from kubeauthn.testing import recorded_authn, recorded_cel
from tests.oracle.meant import has_growing_list, meant, of_older
from tests.oracle.process import Oracle
from tests.oracle.source_proofs import with_status_number
from tests.peers.programs import CHECKED_ONLY, MINORS

__all__ = ["Difference", "Sides", "comparable"]

RECORDED = Path(__file__).resolve().parents[1] / "recorded"
VARIANTS = 4
"""How often the oracle is asked again before a difference counts: the order of a Go map is no answer."""
MOST_ORDERS = 60
"""And how often before one that nothing explains does: of two answers by chance, one can come four times."""
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
            answers.append(self.oracle_answer(case))
            if not ours:
                ours = self.answer(case)
            mismatches = self._mismatches(case, answers, ours)
            if self.minor in CHECKED_ONLY and mismatches and _is_of_evaluation(mismatches[0][0], answers[-1], ours):
                return None
            if not mismatches:
                return None
        varies = len({json.dumps(comparable(case, answer), sort_keys=True) for answer in answers}) > 1
        if varies and self._says_ours(case, ours):
            return None
        what, theirs, found = mismatches[0]
        if self._has_no_order(case, what, answers, ours):
            return Difference(what, case, theirs, found, "map order", tuple(answers))
        reason = meant(case, answers[0], ours, what, self.oracle_answer, self.answer)
        if not reason and self.minor != MINORS[0] and what in ("verdict", "cost") and has_growing_list(case):
            reason = "growing"
        if not reason and self.minor != MINORS[0]:
            reason = of_older(case, answers[0], ours, what)
        if not reason and not varies and self._says_ours(case, ours):
            return None
        reason = reason or self._meant_beside_another(case, what, ours)
        return Difference(what, case, theirs, found, reason, tuple(answers))

    def _says_ours(self, case: Case, ours: Case) -> bool:
        """Whether one of the oracle's answers, asked often, is ours."""
        return any(not self._mismatches(case, [self.oracle_answer(case)], ours) for _ in range(MOST_ORDERS))

    def _meant_beside_another(self, case: Case, what: str, ours: Case) -> str:
        """Why ours differs from another of the oracle's answers, where it is chance which of them it gives.

        Of two members of a token's header that cannot be read, for instance, Go names any.
        """
        asked = [self.oracle_answer(case) for _ in range(MOST_ORDERS)]
        others = {json.dumps(comparable(case, answer), sort_keys=True): answer for answer in asked}
        if len(others) == 1:
            return ""
        reasons = (meant(case, other, ours, what, self.oracle_answer, self.answer) for other in others.values())
        return next(filter(None, reasons), "")

    def _has_no_order(self, case: Case, what: str, answers: list[Case], ours: Case) -> bool:
        """Whether the oracle itself has another error each time, or a list in another order: a Go map has none."""
        if "expr" not in case or what not in ("error text", "verdict"):
            return False
        answers = [*answers, *(self.oracle_answer(case) for _ in range(VARIANTS))]
        if what == "error text":
            texts = {answer.get("evalError") for answer in answers}
            return None not in texts and len(texts) > 1
        if any("value" not in answer for answer in (*answers, ours)):
            return False
        values = {json.dumps(recorded_cel._canonical(answer["value"])) for answer in answers}
        return len(values) > 1 and {_unordered(answer["value"]) for answer in answers} == {_unordered(ours["value"])}

    def oracle_answer(self, case: Case) -> Case:
        return with_status_number(case, self._oracle.ask(self.with_keys(case)))

    def with_keys(self, case: Case) -> Case:
        if "expr" in case:
            return case
        given = case.get("jwks")
        return {**case, "jwks": self._keys} if given is None or given == "default" else case

    def answer(self, case: Case) -> Case:
        """Our answer, by the rules of this minor; an error that is none of ours is an answer too, and a wrong one."""
        try:
            if "expr" in case:
                with DeepStack(case["expr"]):
                    return recorded_cel.answer({**case, "kubernetes": self.minor})
            return self._authn.answer({**case, "kubernetes": self.minor})
        except Exception as error:  # whatever it is, the run has to find the next one as well
            return {"crash": f"{type(error).__name__}: {error}"}

    @staticmethod
    def _mismatches(case: Case, answers: list[Case], ours: Case) -> list[tuple[str, str, str]]:
        if any("panic" in answer for answer in answers):
            return [("panic", json.dumps(answers[0])[:600], json.dumps(ours)[:600])]
        if "crash" in ours:
            return [("crash", json.dumps(answers[0])[:600], ours["crash"])]
        if "expr" not in case:
            return min((recorded_authn._compare(answer, ours) for answer in answers), key=len)
        costs_vary = len({answer.get("cost") for answer in answers}) > 1
        found = []
        for answer in answers:
            expected = {**answer, "cost": ours.get("cost")} if costs_vary else answer
            found.append(recorded_cel._compare(expected, ours))
        return min(found, key=len)


def _unordered(value: Any) -> str:
    """The text of a typed value in which the elements of lists and maps are sorted."""
    if isinstance(value, dict):
        return "{" + ",".join(f"{name}:{_unordered(inner)}" for name, inner in sorted(value.items())) + "}"
    if isinstance(value, list):
        return "[" + ",".join(sorted(map(_unordered, value))) + "]"
    return json.dumps(value)


def _is_of_evaluation(what: str, theirs: Case, ours: Case) -> bool:
    """Whether a difference is only in what comes out, and not in what is refused before a token is looked at."""
    if what in ("cost", "error text", "user", "text"):
        return True
    if what != "verdict" or "crash" in ours or "compileError" in theirs or "compileError" in ours:
        return False
    return theirs.get("outputType") == ours.get("outputType")


def comparable(case: Case, answer: Case) -> Case:
    """An answer with what no two runs of the real program share put away: orders of maps and addresses."""
    plain = {key: value for key, value in answer.items() if key not in ("variants", "volatile")}
    if "expr" in case:
        if "value" in plain:
            plain["value"] = recorded_cel._canonical(plain["value"])
        return plain
    error = recorded_authn._without_scheme(plain.get("strictDecodeError"))
    return {**plain, "strictDecodeError": error, "configErrors": plain.get("configErrors") or []}
