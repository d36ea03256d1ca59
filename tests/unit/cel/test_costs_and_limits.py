"""Cost in cel-go's units, and what stops an evaluation."""

from __future__ import annotations

import time

import pytest

from kubeauthn import cel
from kubeauthn.cel.kubernetes import claims_environment

CLAIMS = {"a": "text", "b": {"c": 1.0}, "l": ["x", "y", "z"], "long": "x" * 95}


@pytest.mark.parametrize(
    ("text", "cost"),
    [
        ("1", 0),
        ("claims.a", 2),
        ("claims.b.c", 3),
        ("claims['a']", 2),
        ("claims.?nope", 1),
        ("claims.?b.c", 3),
        ("has(claims.a)", 1),
        ("claims.a == 'text'", 3),
        ("claims.long == claims.long", 14),
        ("claims.a == ''", 2),
        ("claims.a + claims.long", 5),
        ("[1, 2, 3]", 0),
        ("[claims.a]", 12),
        ("{'k': claims.a}", 32),
        ("1 in [1, 2]", 0),
        ("claims.a in ['text', 'b']", 2),
        ("true ? claims.a : claims.b", 1),
        ("claims.?nope.orValue(1)", 1),
        ("dyn(claims.l).all(x, x == 'x' || true)", 19),
        ("dyn(claims.l).exists(x, x == 'x')", 13),
        ("dyn(claims.l).exists(x, x == 'z')", 22),
        ("dyn(claims.l).map(x, x)", 43),
        ("dyn(claims.l).map(x, 1)", 10),
        ("dyn(claims.l).filter(x, true)", 43),
        ("dyn(claims.l).exists_one(x, x == 'x')", 13),
        ("claims.nope == 'x' || true", 3),
        ("claims.nope == claims.a || true", 5),
        ("lists.range(5)", 16),
    ],
)
def test_cost(text: str, cost: int) -> None:
    assert claims_environment().compile(text).evaluate({"claims": CLAIMS}).cost == cost


def test_an_environment_of_ones_own_pays_for_has() -> None:
    env = cel.Environment(variables={"m": "map(string, int)"})
    assert env.compile("has(m.a)").evaluate({"m": {}}).cost == 2


@pytest.mark.parametrize(
    "text",
    [
        "lists.range(1000).all(x, lists.range(1000).all(y, true))",
        "lists.range(999999).size()",
        "lists.range(1500).map(x, lists.range(1500)).size() > 0",
        "sets.contains(lists.range(1500), lists.range(1500))",
        "true || lists.range(999999).size() > 0 ? lists.range(999999).exists(x, x < 0) || true : false",
    ],
)
def test_the_cost_limit_stops_it_and_is_not_absorbed(text: str) -> None:
    program = claims_environment().compile(text)
    started = time.process_time()
    with pytest.raises(cel.LimitError, match="operation cancelled: actual cost limit exceeded"):
        program(claims={})
    assert time.process_time() - started < 2


def test_rounds_that_cost_nothing_are_stopped_by_the_clock() -> None:
    env = cel.Environment(libraries=["lists"], time_limit=0.2)
    program = env.compile("[lists.range(300000)].map(r, r.filter(x, r.filter(y, false) == [1]).size())")
    started = time.process_time()
    with pytest.raises(cel.LimitError, match="operation interrupted"):
        program()
    assert time.process_time() - started < 3


def test_lists_that_grow_for_nothing_are_stopped() -> None:
    program = claims_environment().compile(
        "[0].map(a, lists.range(300000)).map(r, lists.range(40000).map(i, r + r).size())"
    )
    with pytest.raises(cel.LimitError):
        program(claims={})


def test_own_limits() -> None:
    env = cel.Environment(variables={"x": "list(int)"}, cost_limit=50)
    program = env.compile("x.map(i, i)")
    assert program.evaluate({"x": [1, 2, 3]}) == ([1, 2, 3], 41)
    with pytest.raises(cel.LimitError):
        program(x=[1, 2, 3, 4])


@pytest.mark.parametrize(
    ("macro", "each"),
    [("all(x, x != 'x')", 5), ("exists(x, x == 'x')", 6), ("filter(x, x == 'x')", 2), ("map(x, x)", 13)],
)
def test_cost_grows_with_the_work(macro: str, each: int) -> None:
    program = claims_environment().compile(f"dyn(claims.g).{macro}")
    costs = [program.evaluate({"claims": {"g": ["name"] * size}}).cost for size in (10, 100, 1000, 10000)]
    assert [(cost - costs[0]) / (size - 10) for cost, size in zip(costs[1:], (100, 1000, 10000), strict=True)] == [
        each
    ] * 3


def test_a_pattern_that_would_hang_a_backtracking_engine() -> None:
    program = claims_environment().compile("claims.a.matches('(a+)+$')")
    started = time.process_time()
    assert program(claims={"a": "a" * 50 + "!"}) is False
    assert time.process_time() - started < 2
