"""A little of the fuzzing that `python -m tests.fuzz.cel` does for as long as one likes.

KUBEAUTHN_FUZZ_SECONDS and KUBEAUTHN_FUZZ_SEED make it more, or another one.
"""

from __future__ import annotations

import os
import random

import pytest

from kubeauthn.cel import CompileError
from kubeauthn.cel.kubernetes import claims_environment, user_environment
from kubeauthn.testing.recorded import run
from tests.fuzz.cel import DEFAULT_CLAIMS, RECORDED, examine, fuzz, load
from tests.fuzz.cel_mutations import mutated, soup
from tests.fuzz.cel_source import foreign_names

SECONDS = float(os.environ.get("KUBEAUTHN_FUZZ_SECONDS", "3"))
SEED = int(os.environ.get("KUBEAUTHN_FUZZ_SEED", "20261115"))


@pytest.mark.timeout(SECONDS + 60)
def test_nothing_but_faults_of_the_expression_or_its_values():
    report = fuzz(SEED, seconds=SECONDS)
    print(report)
    assert not report.findings, "\n".join(f"{text!r}: {finding}" for text, finding in report.findings)
    # it reached all three: the parser and checker, the evaluator's errors, and values
    assert {"compile", "eval", "value"} <= report.stages.keys()


def test_a_seed_gives_the_same_inputs_again():
    texts = [case["expr"] for case in load()]
    one, two = random.Random(7), random.Random(7)
    assert [mutated(one, texts[index], texts) for index in range(50)] == [
        mutated(two, texts[index], texts) for index in range(50)
    ]
    assert soup(one) == soup(two)


def test_the_judge_tells_the_stages_apart():
    case = {"claims": DEFAULT_CLAIMS}
    assert examine("1 +", case) == ("compile", None)
    assert examine("claims.absent", case) == ("eval", None)
    assert examine("claims.s", case) == ("value", None)


@pytest.mark.parametrize(
    ("python", "foreign"),
    [
        ("def run(V):\n    v1 = V['x']\n    return v1, 0", set()),
        ("def run(V):\n    return groups, 0", {"groups"}),
        ("def run(V):\n    return V.__class__, 0", {"__class__"}),
        ("import os\ndef run(V): return 1, 0", {"Import"}),
    ],
)
def test_names_that_do_not_belong_into_generated_source_are_seen(python: str, foreign: set[str]):
    assert foreign_names(python) == foreign


def test_generated_python_has_only_own_names():
    seen = 0
    for case in load():
        environment = user_environment() if case.get("env") == "user" else claims_environment()
        try:
            program = environment.compile(case["expr"])
        except CompileError:
            continue
        seen += 1
        assert not foreign_names(program.python_source), case["expr"]
    assert seen > 400


def test_findings_are_kept_as_cases():
    """What was found once is looked at ever after."""
    assert run("cel", RECORDED[1], {}, print) == 0
