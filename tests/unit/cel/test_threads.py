"""One program, many callers: each gets the answer to its own data."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from kubeauthn.cel import Environment, EvalError
from kubeauthn.cel.kubernetes import claims_environment

EXPRESSION = (
    "dyn(claims.groups).filter(g, g != claims.skip).map(g, claims.sub + ':' + string(g)) "
    "+ [string(claims.sub)].filter(s, dyn(claims.groups).exists(g, g == claims.skip))"
)


def claims_of(number: int) -> dict[str, object]:
    return {"sub": f"user{number}", "groups": [f"g{number}-{index}" for index in range(40)], "skip": f"g{number}-3"}


def expected(number: int) -> list[str]:
    return [f"user{number}:g{number}-{index}" for index in range(40) if index != 3] + [f"user{number}"]


def test_sixteen_threads_share_a_program():
    program = claims_environment().compile(EXPRESSION)
    start = threading.Barrier(16)

    def work(number: int) -> int:
        start.wait(timeout=30)
        claims, answer = claims_of(number), expected(number)
        for _ in range(100):
            assert program(claims=claims) == answer
        return number

    with ThreadPoolExecutor(16) as pool:
        assert list(pool.map(work, range(16))) == list(range(16))


def test_sixteen_threads_compile_deep_expressions_in_one_environment():
    environment = claims_environment()
    start = threading.Barrier(16)

    def work(number: int) -> object:
        start.wait(timeout=30)
        return [environment.compile("(" * 200 + str(number) + ")" * 200)() for _ in range(10)]

    with ThreadPoolExecutor(16) as pool:
        assert list(pool.map(work, range(16))) == [[number] * 10 for number in range(16)]


def test_calls_leave_nothing_behind():
    program = claims_environment().compile("dyn(claims.l).map(x, x + claims.n)")
    first = program.evaluate({"claims": {"l": [1.0, 2.0], "n": 1.0}})
    for claims in ({"l": [5.0], "n": 2.0}, {"l": ["a"], "n": "b"}, {"l": [], "n": 0.0}):
        program.evaluate({"claims": claims})
    with pytest.raises(EvalError):
        program.evaluate({"claims": {"l": [1.0], "n": "text"}})
    with pytest.raises(EvalError):
        program.evaluate({})
    assert program.evaluate({"claims": {"l": [1.0, 2.0], "n": 1.0}}) == first
    assert first.value == [2.0, 3.0]


def test_the_cost_starts_anew_with_each_call():
    program = Environment({"l": "list(int)"}, cost_limit=1000).compile("l.all(x, x > 0)")
    costs = {program.evaluate({"l": [1] * 100}).cost for _ in range(20)}
    assert len(costs) == 1
    assert 500 < costs.pop() < 1000


def test_a_constant_of_the_program_cannot_be_changed_by_a_caller():
    """What a caller does to a value it was given must not reach the next caller."""
    program = Environment().compile("[1, 2, 3]")
    value = program()
    assert isinstance(value, list)
    value.append(4)
    assert program() == [1, 2, 3]


def test_a_variable_is_not_changed():
    claims = {"l": [3.0, 1.0, 2.0], "m": {"b": 1.0}}
    for text in ("dyn(claims.l).map(x, x) + [4.0]", "dyn(claims.l).all(x, x > 0.0)", "claims.l == claims.m"):
        claims_environment().compile(text).evaluate({"claims": claims})
    assert claims == {"l": [3.0, 1.0, 2.0], "m": {"b": 1.0}}
