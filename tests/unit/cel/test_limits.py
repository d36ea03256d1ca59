"""What is too deep, too long, too costly or too slow is refused, in bounded time."""

from __future__ import annotations

import json
import time
from pathlib import Path

import pytest

from kubeauthn.cel import CompileError, Environment, EvalError, LimitError, limits
from kubeauthn.cel.kubernetes import claims_environment
from kubeauthn.cel.pattern_size import pattern_size
from kubeauthn.cel.values import Optional

# before, middle, after: repeated on both sides of the middle
NESTING = {
    "parentheses": ("(", "1", ")"),
    "lists": ("[", "1", "]"),
    "maps": ("{1: ", "1", "}"),
    "selects": ("", "claims", ".a"),
    "indexes": ("", "claims", "['a']"),
    "optional selects": ("", "claims", ".?a"),
    "nots": ("!(", "true", ")"),
    "minuses": ("-(", "1", ")"),
    "ternaries on the right": ("claims.a ? 1 : ", "1", ""),
    "ternaries in the middle": ("claims.a ? (", "1", ") : 2"),
    "sums": ("", "1", " + 1"),
    "sums on the right": ("1 + (", "1", ")"),
    "or on the right": ("claims.a == 1.0 || (", "true", ")"),
    "calls": ("string(", "'a'", ")"),
    "methods": ("", "'a'", ".trim()"),
    "optionals": ("optional.of(", "1", ")"),
    "map macros": ("[1].map(x, ", "1", ")"),
    "all macros": ("[1].all(x, ", "true", ")"),
    "exists macros with errors": ("[1].exists(x, claims.a == 1.0 || ", "true", ")"),
    "filter chains": ("", "[1]", ".filter(x, x > 0)"),
    "optMap in optMap": ("optional.of(1).optMap(x, ", "1", ")"),
    "optMap after optMap": ("", "optional.of(1)", ".optMap(x, x)"),
}


def nested(kind: str, times: int) -> str:
    before, middle, after = NESTING[kind]
    return before * times + middle + after * times


def verdict(text: str, claims: dict[str, object] | None = None) -> str:
    """value, eval or compile; anything else that is raised is the test's failure."""
    try:
        program = claims_environment().compile(text)
    except CompileError:
        return "compile"
    try:
        program.evaluate({"claims": {"a": False} if claims is None else claims})
    except EvalError:
        return "eval"
    return "value"


@pytest.mark.parametrize("times", [1, 20, 21, 99, 101, 124, 200, 248, 249, 250, 251, 252, 300, 1000, 5000])
@pytest.mark.parametrize("kind", NESTING)
def test_nesting_is_a_value_or_an_error(kind: str, times: int):
    started = time.process_time()
    outcome = verdict(nested(kind, times))
    assert time.process_time() - started < 5
    if times > 250:
        assert outcome == "compile"
    elif times <= 10:
        assert outcome != "compile"


def test_a_level_within_the_limit_is_fine_and_one_beyond_is_not():
    program = claims_environment().compile("(" * 249 + "1" + ")" * 249)
    assert program() == 1
    with pytest.raises(CompileError, match="expression recursion limit exceeded: 250"):
        claims_environment().compile("(" * 250 + "1" + ")" * 250)
    with pytest.raises(CompileError, match="max recursion depth exceeded"):
        claims_environment().compile("claims" + ".a" * 251)


def test_signs_nest_nothing():
    assert claims_environment().compile("!" * 50_001 + "true")() is False
    assert claims_environment().compile("-" * 50_000 + "x" * 0 + "(1)")() == 1


def test_macros_that_repeat_their_receiver_do_not_explode():
    """Each optMap stands for its receiver twice: thirty in a row would be a thousand million nodes."""
    started = time.process_time()
    assert claims_environment().compile("optional.of(1)" + ".optMap(x, x + 1)" * 6 + ".value()")() == 7
    with pytest.raises(CompileError, match="macros repeat too much of the expression"):
        claims_environment().compile("optional.of(1)" + ".optMap(x, x + 1)" * 30)
    assert time.process_time() - started < 5


def test_a_hundred_thousand_code_points_and_one_more():
    assert claims_environment().compile("'" + "é" * 99_998 + "'")() == "é" * 99_998
    with pytest.raises(CompileError, match="code point size exceeds limit: size: 100001, limit 100000"):
        claims_environment().compile("'" + "é" * 99_999 + "'")


@pytest.mark.parametrize(
    "text",
    [
        "[" + "1," * 49_990 + "1]",
        "{" + ",".join(f"{key}:1" for key in range(12_000)) + "}",
        "true" + "&&true" * 14_000,
        "claims.a==1.0" + "||claims.a==1.0" * 5_000,
        "[" + ",".join("[1].all(x,x>0)" for _ in range(3_000)) + "]",
        "[" + "undefined," * 9_000 + "1]",
        *(piece * (99_990 // len(piece)) for piece in (
            "a", "`", "'", "\\", "$", "\n", "1\n", "?", "(,", "x.", "a?", "[a,", "a:", "a b ", "é", "//", "/", "r'",
            "0x", "1e", "...", "{", "}", "&", "|", "'''", '"', "b'", "!", "-", "%", ",", "\0", "\ud800", "a(",
            "1.", ".1",
        )),
    ],
    ids=lambda text: repr(text[:12]),
)  # fmt: skip
def test_long_expressions_are_judged_in_time(text: str):
    started = time.process_time()
    verdict(text)
    assert time.process_time() - started < 10


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("9" * 99_990, None),
        ("0x" + "f" * 99_990, None),
        ("9" * 90_000 + "u", None),
        ("9" * 90_000 + ".5", None),
        ("1e" + "9" * 9_000, None),
        ("0." + "0" * 90_000 + "1", 0.0),
        ("9223372036854775808", None),
        ("-9223372036854775808", -(1 << 63)),
        ("18446744073709551616u", None),
        ("int('" + "9" * 90_000 + "')", None),
        ("double('1e" + "9" * 9_000 + "')", None),
        ("duration('" + "9" * 90_000 + "s')", None),
        ("timestamp('" + "9" * 90_000 + "-01-01T00:00:00Z')", None),
        ("quantity('1e1000000000')", None),
        ("quantity('" + "9" * 50_000 + "')", None),
        ("semver('" + "9" * 50_000 + ".1.1')", None),
        ("'%.1000000000f'.format([1.0])", None),
    ],
    ids=lambda value: repr(value)[:30],
)
def test_enormous_numbers(text: str, value: object):
    """None: an error, at whichever stage."""
    started = time.process_time()
    if value is None:
        assert verdict(text) in ("compile", "eval")
    else:
        assert claims_environment().compile(text)() == value
    assert time.process_time() - started < 3


LARGE = {
    "l": [float(number) for number in range(1000)],
    "s": "a" * 100_000,
    "texts": ["a" * 1000] * 1000,
    "m": {str(number): 1.0 for number in range(10_000)},
}
COST_BOMBS = [
    "dyn(claims.l).all(a, dyn(claims.l).all(b, dyn(claims.l).all(c, true)))",
    "dyn(claims.l).map(a, dyn(claims.l).map(b, dyn(claims.l).map(c, a)))",
    "dyn(claims.l).exists(a, dyn(claims.l).exists(b, dyn(claims.l).exists(c, a < b - 2000.0)))",
    "lists.range(1000).all(a, lists.range(1000).all(b, lists.range(1000).all(c, true)))",
    "[1,2,3,4,5,6,7,8,9,10]" + ".map(x,[x,x,x,x,x,x,x,x,x,x]).flatten()" * 8,
    "dyn(claims.texts).map(x, dyn(claims.texts).map(y, string(x) + string(y)))",
    "[string(claims.s)]" + ".map(x, x + x)" * 30,
    "string(claims.s).replace('a', string(claims.s))",
    "string(claims.s).split('').map(x, string(claims.s) + x)",
    "lists.range(100000).distinct()",
    "sets.contains(lists.range(100000), lists.range(100000))",
]


@pytest.mark.parametrize("text", COST_BOMBS, ids=lambda text: text[:40])
def test_cost_bombs_are_stopped(text: str):
    program = claims_environment().compile(text)
    started = time.process_time()
    with pytest.raises(LimitError):
        program.evaluate({"claims": LARGE})
    assert time.process_time() - started < 5


def test_the_limit_of_the_cost_is_a_million():
    """3 for each round of `all` and 1 for what it tests: a bit less passes, a bit more does not."""
    environment = Environment({"l": "list(bool)"})
    program = environment.compile("l.all(x, x)")
    cost = program.evaluate({"l": [True] * 1000}).cost
    per_round = (cost - program.evaluate({"l": []}).cost) // 1000
    assert program.evaluate({"l": [True] * (999_000 // per_round)}).cost <= 1_000_000
    with pytest.raises(LimitError, match="actual cost limit exceeded"):
        program.evaluate({"l": [True] * (1_001_000 // per_round)})


def test_an_error_about_a_limit_is_not_absorbed():
    bomb = "lists.range(1000).all(a, lists.range(1000).all(b, lists.range(1000).all(c, true)))"
    for text in (f"({bomb}) || true", f"({bomb}) && false", f"[1].exists(x, ({bomb}) || true)"):
        with pytest.raises(LimitError):
            claims_environment().compile(text).evaluate({"claims": {}})


@pytest.mark.parametrize(
    "text",
    [
        "l.all(a, l.all(b, l.all(c, true)))",
        "l.map(a, l.map(b, a + b)).size() == 1 || l.all(a, l.all(b, l.all(c, a + b < c + 10000)))",
        "l.filter(a, m == m).size() >= 0 && l.all(a, m == m)",
        "l.exists_one(a, l.exists_one(b, l.exists_one(c, false)))",
    ],
)
def test_time_is_bounded_too(text: str):
    """With no limit to the cost the clock stops it, soon after the time that was given."""
    environment = Environment({"l": "list(int)", "m": "map(string, int)"}, cost_limit=1 << 60, time_limit=0.2)
    variables = {"l": list(range(3000)), "m": {str(number): number for number in range(10_000)}}
    started = time.process_time()
    with pytest.raises(LimitError, match="operation interrupted"):
        environment.compile(text).evaluate(variables)
    assert time.process_time() - started < 5


@pytest.mark.parametrize("work", ["m == m", "[m] == [m]", "s.findAll('') == []", "-1 in l", "l.sort() == l"])
def test_work_that_costs_next_to_nothing_is_stopped_by_the_clock(work: str):
    """cel-go's tariff takes comparing two maps, or searching for the empty pattern, for almost free."""
    environment = Environment(
        {"l": "list(int)", "m": "map(string, int)", "s": "string"}, ["lists", "kubernetes.regex"], time_limit=0.2
    )
    variables = {"l": list(range(3000)), "m": {str(number): number for number in range(10_000)}, "s": "a" * 20_000}
    program = environment.compile(f"l.map(i, {work}).size() > 0")
    started = time.process_time()
    with pytest.raises(LimitError):
        program.evaluate(variables)
    assert time.process_time() - started < 5


@pytest.mark.parametrize(
    "text",
    [
        "dyn(claims.maps).distinct().size()",
        "sets.contains(dyn(claims.maps), dyn(claims.maps))",
        "sets.equivalent(dyn(claims.maps), dyn(claims.maps))",
        "sets.intersects(dyn(claims.maps), dyn(claims.others))",
        "string(claims.s).findAll('').size()",
        "string(claims.s).findAll('[ab]*c|a').size()",
        "string(claims.s).findAll(string(claims.pattern), 500000).size()",
        "[0].exists(x, dyn(claims.maps).distinct().size() == x) || true",
    ],
)
def test_one_call_that_does_much_is_stopped_by_the_clock(text: str):
    """The cost of these is that of small elements and short matches, and no loop looks at the clock meanwhile."""

    def near(number: float) -> dict[str, float]:
        return {**{str(key): 1.0 for key in range(1000)}, "last": number}

    claims = {
        "maps": [near(number) for number in range(400)], "others": [near(-number) for number in range(1, 400)],
        "s": "a" * 1_000_000, "pattern": "a?",
    }  # fmt: skip
    environment = Environment(
        {"claims": "map(string, dyn)"}, ["lists", "sets", "kubernetes.regex"], cost_limit=1 << 60, time_limit=0.2
    )
    started = time.process_time()
    with pytest.raises(LimitError, match="operation interrupted"):
        environment.compile(text).evaluate({"claims": claims})
    assert time.process_time() - started < 3


@pytest.mark.parametrize(
    "text",
    [
        "string(claims.s).replace('', string(claims.s))",
        "lists.range(5000).map(x, 'a').join(string(claims.s))",
        "string(claims.directives).format(lists.range(40000).map(x, claims.s))",
        "'%s%s%s%s'.format([dyn(claims.l), dyn(claims.l), dyn(claims.l), dyn(claims.l)])",
        "dyn(claims.l).map(x, '%s'.format([dyn(claims.l)]))",
        "dyn(claims.l).sort().size() == 0 || dyn(claims.l).isSorted()",
        "dyn(claims.l).sum() + dyn(claims.l).max()",
        "string(claims.s).split('').size()",
        "string(claims.s).upperAscii().lowerAscii().trim().size()",
        "string(claims.s).lastIndexOf('aaab')",
        "url('https://h/?' + string(claims.s)).getQuery().size()",
        "isIP(string(claims.s)) || isCIDR(string(claims.s)) || isURL(string(claims.s))",
        "isQuantity(string(claims.digits)) || isSemver(string(claims.digits) + '.1.1')",
        "int(string(claims.digits))",
        "timestamp('2023-01-01T00:00:00Z').getHours(string(claims.s))",
        "format.dns1123Subdomain().validate(string(claims.s)).hasValue()",
        "format.byte().validate(string(claims.s)).hasValue()",
        "bytes(string(claims.s)).size() + string(bytes(string(claims.s))).size()",
    ],
)
def test_functions_of_very_long_values_end_in_time(text: str):
    claims = {"s": "a" * 3_000_000, "digits": "1" * 3_000_000, "directives": "%s" * 40_000, "l": [1.0] * 200_000}
    started = time.process_time()
    try:
        claims_environment().compile(text).evaluate({"claims": claims})
    except EvalError as error:
        assert str(error)
    assert time.process_time() - started < 8  # the time limit is 5 seconds


@pytest.mark.parametrize(
    "pattern", ["(a+)+$", "(a|a)*b", "(a*)*b", "(.*a){20}b", "a{0,999}a{0,999}c", "([a-z]+)*[0-9]"]
)
def test_patterns_take_linear_time(pattern: str):
    program = claims_environment().compile(f"string(claims.s).matches('{pattern}')")
    started = time.process_time()
    program.evaluate({"claims": {"s": "a" * 5000 + "!"}})
    assert time.process_time() - started < 3


@pytest.mark.parametrize(
    "pattern", ["(((a{0,100}){0,100}){0,100})", "a{1001}", "(x{500}){500}", "(?<=a)b", "(a)\\1", "("]
)
def test_patterns_that_re2_refuses(pattern: str):
    with pytest.raises(CompileError):
        claims_environment().compile("'a'.matches(r'" + pattern + "')")
    with pytest.raises(EvalError):
        claims_environment().compile("'a'.matches(string(claims.p))").evaluate({"claims": {"p": pattern}})


@pytest.mark.parametrize("pattern", ["a{0,999}a{0,999}c", "(a{0,30}){0,30}a{0,999}c", "(a?){999}(a?){999}c"])
def test_a_text_that_is_too_long_for_its_pattern_is_not_tried(pattern: str):
    """Where RE2's automaton does not fit into memory, it takes as many steps for a character as the pattern has, and
    nothing can stop it in the middle."""
    program = claims_environment().compile(f"string(claims.s).matches('{pattern}')")
    assert program(claims={"s": "a" * 3000 + "c"}) is True
    started = time.process_time()
    with pytest.raises(LimitError, match="too large for each other"):
        program.evaluate({"claims": {"s": "a" * 1_000_000}})
    assert time.process_time() - started < 1


@pytest.mark.parametrize(
    ("pattern", "size"),
    [("", 0), ("abc", 3), ("a{0,999}b{5}", 1004), ("((a{10}){10}){10}", 1000), ("(?:ab|c){2}", 10), ("[^]{9}]{4}", 4),
     ("[[:alpha:]{9}]{3}", 3), ("\\{9}", 3),
     ("\\p{Greek}{3}", 3), ("\\x{1F451}{2}", 2), ("\\Qa{9}\\E", 4), ("a{,3}", 5),
     ("a{3,}", 4), ("x*y+z?", 3), ("{", 1), ("(", 0), (")", 0), ("[", 1), ("\\", 1), ("a{99999}", 8)],
)  # fmt: skip
def test_the_size_of_a_pattern(pattern: str, size: int):
    assert pattern_size(pattern) == size


@pytest.mark.parametrize("text", ["E", "E == E", "E != E", "E in [[], E]", "sets.contains([E], [E])"])
def test_lists_that_hold_the_same_list_twice_do_not_explode(text: str):
    """Thirty levels, each with the one below twice: few objects, and a thousand million ways to the bottom."""
    program = claims_environment().compile(text.replace("E", "[1]" + ".map(x, dyn([x, x]))" * 30))
    started = time.process_time()
    program.evaluate({"claims": {}})
    assert time.process_time() - started < 3


def test_flattening_them_does():
    program = claims_environment().compile("[1]" + ".map(x, dyn([x, x]))" * 30 + ".flatten(100)")
    started = time.process_time()
    with pytest.raises(LimitError):
        program.evaluate({"claims": {}})
    assert time.process_time() - started < 3


SHARED = "[1]" + ".map(x, dyn([x, x]))" * 30
"""A few objects that print as a billion."""


@pytest.mark.parametrize("text", [f"'%s'.format([{SHARED}])", f"'%s'.format([{{'a': {SHARED}}}])"])
def test_format_does_not_write_out_what_is_shared_a_billion_times(text: str):
    begun = time.process_time()
    with pytest.raises(EvalError):
        claims_environment().compile(text)(claims={})
    assert time.process_time() - begun < 5


def test_nor_does_typed_json():
    from kubeauthn.cel.typed_json import to_typed_json

    value = claims_environment().compile(SHARED)(claims={})
    with pytest.raises(LimitError, match="members"):
        to_typed_json(value)
    assert to_typed_json([[1], [1]]) == {"list": [{"list": [{"int": "1"}]}] * 2}


@pytest.mark.parametrize("wrap", [lambda value: [value], lambda value: {"a": value}, Optional])
def test_typed_json_is_never_too_deep_to_be_written(wrap):
    from kubeauthn.cel.typed_json import to_typed_json

    value = wrap(1)
    for _ in range(99):
        value = wrap(value)
    assert json.dumps(to_typed_json(value), indent=2)
    for levels in (1, 10_000):
        for _ in range(levels):
            value = wrap(value)
        with pytest.raises(LimitError, match="nested too deeply"):
            to_typed_json(value)


def test_the_page_has_the_limits() -> None:
    page = (Path(__file__).parents[3] / "docs" / "cel.md").read_text(encoding="utf-8")
    table = page.partition("\n## Limits\n")[2].partition("\n## ")[0]
    for limit in (
        limits.MAX_CODE_POINTS, limits.MAX_DEPTH, limits.COST_LIMIT, limits.MAX_PATTERN_WORK, limits.MAX_TEXT,
        limits.MAX_WRITTEN_MEMBERS, limits.MAX_JOINED_ELEMENTS, limits.MAX_FLAT_ELEMENTS, limits.MAX_QUANTITY_DIGITS,
        limits.MAX_QUANTITY_POWER, limits.MAX_REPEATED_NODES, limits.MAX_PRECISION,
    ):  # fmt: skip
        assert f" {limit:,}" in table


@pytest.mark.parametrize(
    "text",
    [
        "[lists.range(100000)].map(l, lists.range(2000).map(x, l + l)).size()",
        "optional.of(lists.range(100000)).optMap(l, lists.range(2000).map(x, l + l).size())",
        "dyn(claims.l).map(x, claims.l + claims.l).size()",
        "dyn(claims.l).map(x, dyn(claims.l) + dyn(claims.l)).size()",
        "dyn(claims.l).exists(x, claims.l + claims.l == 'a')",
    ],
)
def test_sums_of_lists_are_bounded_whatever_is_known_of_them(text: str) -> None:
    program = claims_environment().compile(text)
    with pytest.raises(LimitError, match="too many list elements"):
        program(claims={"l": [1.0] * 5_000})


@pytest.mark.parametrize(
    "text",
    [
        "optional.of([]).optMap(x, [x + [1], x + x])",
        "optional.of([]).optMap(x, x + [dyn(x)])",
        "optional.of(dyn([])).optMap(x, x + [{1: [x]}])",
        "optional.of(dyn([])).optMap(x, x + [{'a': optional.of(x)}])",
    ],
)
def test_a_list_that_grows_is_never_put_into_itself(text: str) -> None:
    with pytest.raises(EvalError, match="^a list that grows is added to itself$"):
        claims_environment().compile(text).evaluate({"claims": {}})
