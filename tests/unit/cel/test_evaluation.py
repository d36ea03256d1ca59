"""What expressions come to: values, errors, and errors that are absorbed."""

from __future__ import annotations

import math
import threading
from typing import Any

import pytest

from kubeauthn import cel
from kubeauthn.cel.values import CelMap

ENV = cel.Environment(
    variables={"x": "dyn", "n": "int", "names": "list(string)", "m": "map(string, dyn)"},
    libraries=["optional", "strings", "lists", "two-var-comprehensions", "bindings"],
)


def value(text: str, **variables: object) -> object:
    return ENV.compile(text)(**variables)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("1 + 2 * 3 - 4 / 2 % 3", 5),
        ("-7 / 2", -3),
        ("-7 % 2", -1),
        ("1.0 / 0.0", math.inf),
        ("'a' + 'b'", "ab"),
        ("[1] + [2]", [1, 2]),
        ("1 < 2 && 2.5 > 2 && 'a' < 'b' && b'a' <= b'b' && 1u >= 1", True),
        ("dyn(1) == 1.0 && dyn(1u) == 1 && dyn(true) != 1 && dyn('1') != 1", True),
        ("{1: 'a'}[dyn(1.0)] + {1u: 'b'}[dyn(1)]", "ab"),
        ("dyn(true) in [1] || dyn(1) in [true]", False),
        ("[true, false].map(b, b ? 1 : 0)", [1, 0]),
        ("{true: 1}[true]", 1),
        ("type(1u) == uint && type(type) == type", True),
        ("[1, 2, 3].filter(i, i > 1).map(i, i * 2)", [4, 6]),
        ("[1, 2, 3].map(i, i > 1, i * 2)", [4, 6]),
        ("[1, 2, 3].exists_one(i, i > 2)", True),
        ("{'a': 1, 'b': 2}.map(k, k)", ["a", "b"]),
        ("[5, 6].transformMap(i, v, v * i)", {0: 0, 1: 6}),
        ("['a'].transformMapEntry(i, v, {v: i})", {"a": 0}),
        ("{'a': 1}.exists(k, v, k == 'a' && v == 1)", True),
        ("[3, 1, 2].sortBy(i, -i)", [3, 2, 1]),
        ("[?optional.none(), ?optional.of(2)]", [2]),
        ("{?'a': optional.none(), 'b': 1}", {"b": 1}),
        ("{'a': {'b': 1}}.?a.b.orValue(0) + {'a': {}}.?a.b.orValue(5)", 6),
        ("[1][?3].hasValue()", False),
        ("optional.of(2).optMap(v, v + 1).value()", 3),
        ("optional.none().or(optional.of(4)).value()", 4),
        ("cel.bind(y, 3, y + y)", 6),
        ("has({'a': 1}.a) && !has({'a': 1}.b)", True),
        ("(true ? {'a': 1} : {'a': 2}).a", 1),
        ("[[1, 2], [3]].map(l, l.map(i, i + 1))", [[2, 3], [4]]),
    ],
)
def test_values(text: str, expected: object) -> None:
    found = value(text)
    if isinstance(found, CelMap):
        found = dict(found.items())
    assert found == expected
    assert type(found) is type(expected)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("9223372036854775807 + n", "integer overflow"),
        ("-9223372036854775808 - n", "integer overflow"),
        ("9223372036854775807 * (n + 1)", "integer overflow"),
        ("1 / (n - 1)", "division by zero"),
        ("m.nope", "no such key: nope"),
        ("m['nope']", "no such key: nope"),
        ("[1][n]", "index out of bounds: 1"),
        ("x + 1", "no such overload"),
        ("x.y", "no such key: y"),
        ("x.map(i, i)", "got 'types.String', expected iterable type"),
        ("x ? 1 : 2", "no such overload"),
        ("x || false", "no such overload"),
        ("!x", "no such overload"),
        ("timestamp(m.d)", "no such overload: timestamp(double)"),
        ("size(dyn(1))", "no such overload: size"),
        ("names[0]", "no such attribute(s): names"),
        ("optional.none().value()", "optional.none() dereference"),
        ("[1, 1].transformMapEntry(i, v, {v: i})", "insert failed: key 1 already exists"),
    ],
)
def test_errors(text: str, message: str) -> None:
    with pytest.raises(cel.EvalError) as caught:
        value(text, n=1, x="text", m={"a": 1, "d": 1.5})
    assert str(caught.value) == message


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("m.nope == 1 || true", True),
        ("true || m.nope == 1", True),
        ("m.nope == 1 && false", False),
        ("false && m.nope == 1", False),
        ("(m.nope || true) && (false && m.nope)", False),
        ("[1, 0].exists(i, 1 / i > 0)", True),
        ("[0, 1].exists(i, 1 / i > 0)", True),
        ("[0, 1].all(i, 1 / i > 1)", False),
        ("m.nope + 1 == m.nada || m.a == 1", True),
        ("x || true", True),
    ],
)
def test_errors_absorbed(text: str, expected: bool) -> None:
    assert value(text, m={"a": 1}, x="no bool") is expected


@pytest.mark.parametrize("text", ["m.nope == 1 || false", "[0].exists(i, 1 / i > 2)", "[0, 1].all(i, 1 / i > 0)"])
def test_errors_not_absorbed(text: str) -> None:
    with pytest.raises(cel.EvalError):
        value(text, m={})


def test_the_first_error_is_the_one_that_is_told() -> None:
    with pytest.raises(cel.EvalError, match="no such key: first"):
        value("m.first || m.second", m={})


def test_a_string_may_hold_nul() -> None:
    assert value("x == 'admin'", x="admin\0evil") is False
    assert value("'a\\x00' + x", x="\0") == "a\0\0"


@pytest.mark.parametrize("name", ["class", "None", "def", "lambda", "c", "lim", "t1", "V", "MISSING", "print"])
def test_python_names_are_just_names(name: str) -> None:
    env = cel.Environment(variables={name: "int"})
    assert env.compile(f"[10].map(i, i + {name})[0]")(**{name: 1}) == 11
    assert ENV.compile(f"[1, 2].map({name}, {name} * 2)")() == [2, 4]


def test_names_that_are_no_python_names() -> None:
    env = cel.Environment(variables={"a.b": "int"})
    assert env.compile("a.b + 1").evaluate({"a.b": 1}) == cel.Evaluation(2, 2)


def test_a_variable_of_the_wrong_type_is_refused() -> None:
    with pytest.raises(cel.EvalError, match="variable 'n' is declared int and was given bool"):
        value("n + 1", n=True)
    with pytest.raises(cel.EvalError, match="not of its declared type"):
        value("names.all(s, s.startsWith('a'))", names=[1])


def test_nothing_of_the_expression_becomes_code() -> None:
    text = '\'"); import os; ("\' + "\\n    raise SystemExit" + x'
    assert value(text, x="'") == '"); import os; ("\n    raise SystemExit\''


def test_own_functions_and_objects() -> None:
    def shout(text: object) -> object:
        return str(text).upper() + "!"

    env = cel.Environment(
        variables={"p": "Person"},
        types={"Person": {"name": "string", "tags": "list(string)"}},
        functions=[
            cel.Overload("shout_string", "shout", ("string",), "string", shout),
            cel.Overload("string_shout", "shout", ("string",), "string", shout, member=True),
        ],
    )
    program = env.compile("shout(p.name) + p.name.shout() + string(p.tags.size())")
    assert program(p={"name": "ada", "tags": ["x"]}) == "ADA!ADA!1"
    assert program(p={"name": "ada"}) == "ADA!ADA!0"

    class Person:
        name, tags = "bob", ["a", "b"]

    assert program(p=Person()) == "BOB!BOB!2"
    assert env.compile("Person{name: 'eve'}.name")() == "eve"
    with pytest.raises(cel.EvalError, match=r"no such overload: shout\(int\)"):
        env.compile("shout(dyn(1))")()


def test_without_a_check_everything_is_looked_at_when_it_runs() -> None:
    env = cel.Environment(variables={"x": "dyn"}, checked=False)
    assert env.compile("x.y + 1")(x={"y": 2}) == 3
    assert env.compile("nope() || true")() is True
    with pytest.raises(cel.EvalError, match="no such overload: nope"):
        env.compile("nope()")()


def test_threads_share_a_program() -> None:
    program = ENV.compile("[x].map(i, names.exists(s, s == i) ? string(i) : 'none')[0]")
    wrong: list[object] = []

    def work(number: int) -> None:
        for round_number in range(300):
            mine = f"{number}-{round_number}"
            found = program(x=mine, names=["a", mine])
            if found != mine:
                wrong.append((mine, found))

    threads = [threading.Thread(target=work, args=(number,)) for number in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []


@pytest.mark.parametrize("text", ["[1, [2]]", "{'a': [2]}", "[[1, [2]]].map(x, x)[0]", "true ? [1, [2]] : []"])
def test_changing_a_result_does_not_change_the_program(text: str) -> None:
    program = ENV.compile(text)
    first: Any = program()
    expected = repr(first)
    if isinstance(first, dict):
        first["a"].append("mine")
        first["b"] = "mine"
    else:
        first[1].append("mine")
        first.clear()
    assert repr(program()) == expected
