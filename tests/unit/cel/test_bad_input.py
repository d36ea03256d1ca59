"""Odd names, odd characters, texts that try to become code, and claims of absurd shape."""

from __future__ import annotations

import builtins
import json
import keyword

import pytest

from kubeauthn.cel import CelError, CompileError, Environment, EvalError
from kubeauthn.cel.kubernetes import claims_environment, decode_claims
from tests.fuzz.cel_source import foreign_names

RESERVED = {"as", "break", "const", "continue", "else", "false", "for", "function", "if", "import", "in", "let", "loop",
            "package", "namespace", "null", "return", "true", "var", "void", "while"}  # fmt: skip
OWN_NAMES = ["V", "c", "lim", "dl", "run", "tick", "deadline", "room", "rounds", "t1", "t2", "v1", "k1", "f1", "e",
             "MISSING", "Optional", "EvalError", "LimitError", "ABSORBED", "first_limit", "equals", "qualify",
             "t1x"]  # fmt: skip
NAMES = sorted(
    {*keyword.kwlist, *keyword.softkwlist, *OWN_NAMES, "self", "cls", "__import__", "__builtins__", "__class__", "__"}
    | {name for name in dir(builtins) if name.isascii()}
    - {"bool", "bytes", "int", "type"}  # CEL's own types, which a variable may not hide everywhere
)


@pytest.mark.parametrize("name", NAMES)
def test_any_name_can_be_a_claim_a_variable_and_a_loop_variable(name: str):
    if name in RESERVED:
        with pytest.raises(CompileError):
            Environment({"x": "int"}).compile(name + " + 1")
        return
    program = Environment({name: "int"}).compile(f"{name} + [1, 2].map(y, y + {name})[0] + {name}")
    assert program.evaluate({name: 10}).value == 31
    assert not foreign_names(program.python_source)
    program = Environment({"l": "list(int)"}).compile(f"l.map({name}, {name} * 2).filter({name}, {name} > 2)")
    assert program(l=[1, 2, 3]) == [4, 6]
    assert not foreign_names(program.python_source)
    program = claims_environment().compile(f"claims.m.{name}")
    # Kubernetes writes names that CEL reserves as __name__
    key = name.strip("_") if name.strip("_") in RESERVED else name
    assert program(claims={"m": {key: "found"}}) == "found"
    assert not foreign_names(program.python_source)


def test_loops_may_use_the_same_name_inside_one_another():
    assert Environment().compile("[1, 2].map(c, [10, 20].map(c, c).size() + c)")() == [3, 4]
    assert Environment({"x": "int"}).compile("[1].map(x, x) + [x]")(x=7) == [1, 7]


ATTACKS = [
    "'); import os; os.system('false') #",
    '"); __import__("os").abort() #',
    "\\'); raise SystemExit #",
    "\n    raise SystemExit\n",
    "\r\nraise SystemExit",
    "{V}{0}{c!r}%s%(c)s",
    "\\N{DIGIT ONE}\\x27\\u0027",
    "'''\"\"\"",
    "\u2028raise SystemExit",
    "\x00\x1a\x7f\x85",
    "# -*- coding: utf-7 -*-",
    "\ufeff",
    "\\",
    "a" * 500 + "'",
]


def cel_literal(text: str) -> str:
    """Every character as an escape, so that nothing but the value counts."""
    return '"' + "".join(f"\\U{ord(char):08x}" for char in text) + '"'


@pytest.mark.parametrize("attack", ATTACKS, ids=lambda attack: repr(attack)[:30])
def test_texts_do_not_become_code(attack: str):
    literal = cel_literal(attack)
    claims = {attack: {attack: attack}, "s": attack}
    environment = Environment({"claims": "map(string, dyn)"}, ["optional", "strings"])
    for text, value in (
        (literal, attack),
        (f"claims[{literal}][{literal}]", attack),
        (f"claims.s == {literal}", True),
        (f"{{{literal}: {literal}}}[{literal}]", attack),
        (f"claims.s in [{literal}, 'x']", True),
        (f"claims[?{literal}].hasValue()", True),
        (f"[{literal}].map(x, x + claims.s)", [attack * 2]),
        (f"string(claims.s).startsWith({literal})", True),
    ):
        program = environment.compile(text)
        assert program(claims=claims) == value, text
        assert not foreign_names(program.python_source)


@pytest.mark.parametrize("attack", ATTACKS, ids=lambda attack: repr(attack)[:30])
def test_a_missing_key_is_named_as_it_is(attack: str):
    program = claims_environment().compile(f"claims[{cel_literal(attack)}]")
    with pytest.raises(EvalError) as caught:
        program(claims={})
    assert str(caught.value) == f"no such key: {attack}"


def test_nul_is_a_character():
    assert claims_environment().compile("'a\\u0000b'.size()")() == 3
    assert claims_environment().compile("'a\0b'")() == "a\0b"
    assert claims_environment().compile("claims.x == 'a\\x00b'")(claims=decode_claims('{"x": "a\\u0000b"}')) is True
    with pytest.raises(CompileError, match="token recognition error"):
        claims_environment().compile("1 \0 + 1")


def test_halves_of_surrogate_pairs():
    for text in ("'\\ud800'", "'\\U0000dfff'", "'\\U00110000'"):
        with pytest.raises(CompileError):
            claims_environment().compile(text)
    # JSON allows them, and Go reads each as U+FFFD
    assert claims_environment().compile("claims.x")(claims=decode_claims('{"x": "a\\ud800"}')) == "a\ufffd"
    assert claims_environment().compile("claims.x")(claims=decode_claims('{"x": "\\ud83d\\ude00"}')) == "\U0001f600"


def test_a_half_of_a_surrogate_pair_in_the_text_itself_is_an_error_or_a_value_but_no_crash():
    for text in ("'\ud800'", "\ud800", "claims.x == '\udfff'", "b'\ud800'", "'\ud800' + 1"):
        try:
            program = claims_environment().compile(text)
            program.evaluate({"claims": {"x": "a"}})
        except CelError as error:
            assert str(error)


DEPTH = 20_000


@pytest.mark.parametrize("text", ['{"a":' * DEPTH + "1" + "}" * DEPTH, '{"a":' + "[" * DEPTH + "]" * DEPTH + "}"])
def test_claims_twenty_thousand_levels_deep(text: str):
    try:
        claims = decode_claims(text)
    except CelError as error:
        assert "claims are not JSON" in str(error)
        return
    for expression in ("claims.a == claims.a", "claims.a", "claims.?a.?a.hasValue()", "string(type(claims.a))"):
        try:
            claims_environment().compile(expression).evaluate({"claims": claims})
        except EvalError as error:
            assert str(error)


def test_values_that_are_deeper_than_python_can_compare():
    deep: object = 1.0
    for _ in range(DEPTH):
        deep = [deep]
    claims = {"a": deep, "b": [deep]}
    for expression in ("claims.a == claims.b", "claims.a in [claims.b, claims.a]"):
        with pytest.raises(EvalError):
            claims_environment().compile(expression).evaluate({"claims": claims})
    assert claims_environment().compile("claims.a[0][0] == 1.0 || true").evaluate({"claims": claims}).value is True


def test_claims_with_a_hundred_thousand_keys():
    claims = decode_claims(json.dumps({f"key{number}": number for number in range(100_000)}))
    environment = claims_environment()
    assert environment.compile("claims.key99999")(claims=claims) == 99_999.0
    assert environment.compile("claims.?nothing.orValue('none')")(claims=claims) == "none"
    with pytest.raises(EvalError):
        environment.compile("size(claims)")(claims=claims)
    inner = {"m": claims}
    assert environment.compile("size(dyn(claims.m))")(claims=inner) == 100_000
    assert environment.compile("'key5' in dyn(claims.m)")(claims=inner) is True
    assert environment.compile("dyn(claims.m).exists(k, k == 'key9')")(claims=inner) is True


@pytest.mark.parametrize(
    "raw",
    ["", "null garbage", "[]", "1", '"text"', "{", '{"a":NaN}', '{"a":Infinity}', '{"a":01}', "{'a':1}",
     '{"a":1}{"b":2}', b"\xff\xfe", b'{"a":"\xff"}', '{"a":1,}', "\ufeff{}"],
)  # fmt: skip
def test_claims_that_are_no_json_object(raw: str | bytes):
    with pytest.raises(CelError):
        decode_claims(raw)


def test_a_number_that_no_double_holds_fails_where_it_is_read():
    claims = decode_claims('{"a": 1e999, "b": 1, "c": {"d": ' + "9" * 5000 + "}}")
    assert claims_environment().compile("claims.b")(claims=claims) == 1.0
    for name in ("a", "c"):
        with pytest.raises(EvalError, match=f'claim "{name}" failed to unmarshal'):
            claims_environment().compile(f"claims.{name}")(claims=claims)


@pytest.mark.parametrize(
    "value", [object(), 1 << 70, {1: 2}, {None: 1}, float("nan"), b"x", [object()], "\ud800", range(3)]
)
def test_variables_that_are_not_what_they_should_be(value: object):
    """A caller's mistake is an error of the package, or a value; never another exception."""
    for text in (
        "x + x",
        "x.size()",
        "[x].map(y, y)",
        "x == x",
        "x[0]",
        "x.a",
        "string(x)",
        "x.all(y, y == x)",
        "-x",
        "x < x",
    ):
        try:
            Environment({"x": "dyn"}).compile(text).evaluate({"x": value})
        except CelError as error:
            assert str(error)
    for declared in ("int", "string", "list(int)", "map(string, int)", "bytes", "timestamp", "uint"):
        try:
            Environment({"x": declared}).compile("[x] == [x, x]").evaluate({"x": value})
        except CelError as error:
            assert str(error)
