"""Random well-typed expressions, answered by us and by cel-expr-python, which is Google's C++ implementation.

KUBEAUTHN_PROPERTY_COUNT and KUBEAUTHN_FUZZ_SEED make it more, or others.
"""

from __future__ import annotations

import os
import time

import pytest

from kubeauthn.cel import CompileError, Environment, EvalError, UInt
from tests.unit.cel.generate import VARIABLES, Generator, values
from tests.unit.cel.peer import ask, plain

COUNT = int(os.environ.get("KUBEAUTHN_PROPERTY_COUNT", "1500"))
SEED = int(os.environ.get("KUBEAUTHN_FUZZ_SEED", "20261115"))
ENVIRONMENT = Environment(VARIABLES, ["optional", "strings"])


def ours(text: str) -> tuple[list[object], str]:
    try:
        program = ENVIRONMENT.compile(text)
    except CompileError as error:
        # cel-go computes conversions of constants while it plans; the peer when it runs, if it comes to that
        planning = str(error).startswith("program instantiation failed")
        return ["planning" if planning else "compile"], str(error)
    variables = {**values(), "u": UInt(7)}
    try:
        return ["value", plain(program.evaluate(variables).value)], str(program.output_type)
    except EvalError as error:
        return ["error"], str(error)


def test_generated_expressions_compile_and_have_the_type_they_were_made_for():
    generator = Generator(SEED)
    for _ in range(300):
        text, kind = generator.expression()
        if ours(text)[0] != ["planning"]:
            assert str(ENVIRONMENT.compile(text).output_type) == kind, text


def test_a_seed_gives_the_same_expressions_again():
    one, two = Generator(3), Generator(3)
    assert [one.expression() for _ in range(20)] == [two.expression() for _ in range(20)]


@pytest.mark.timeout(60 + COUNT / 20)
def test_the_two_implementations_agree():
    pytest.importorskip("cel_expr_python", reason="there is no cel-expr-python for this Python")
    started = time.monotonic()
    generator = Generator(SEED)
    texts = [generator.expression()[0] for _ in range(COUNT)]
    answers = ask(texts, seconds=30 + COUNT / 50)
    judged = 0
    differences = []
    for text, theirs in zip(texts, answers, strict=True):
        if theirs is None:
            continue
        found, more = ours(text)
        if found == ["planning"]:
            assert theirs[0] in ("error", "value"), text
            continue
        judged += 1
        if found != theirs:
            differences.append(f"{text}\n  ours {found} {more}\n  peer {theirs}")
    print(f"cel properties: seed {SEED}, {judged} of {COUNT} judged in {time.monotonic() - started:.1f} s")
    assert not differences, "\n".join(sorted(differences, key=len)[:10])
    assert judged > COUNT * 0.7
