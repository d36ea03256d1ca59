"""Texts that are no expressions: every fault with its place, worded as Kubernetes words it."""

from __future__ import annotations

import pytest

from kubeauthn import cel

ENV = cel.Environment(variables={"claims": "map(string, dyn)"}, libraries=["optional"])
START = (
    "{'[', '{', '(', '.', '-', '!', 'true', 'false', 'null', NUM_FLOAT, NUM_INT, NUM_UINT, STRING, BYTES, IDENTIFIER}"
)


def faults(text: str) -> list[tuple[int, int, str]]:
    with pytest.raises(cel.CompileError) as caught:
        ENV.compile(text)
    return [(issue.line, issue.column, issue.message) for issue in caught.value.issues]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("(1", [(1, 3, "Syntax error: missing ')' at '<EOF>'")]),
        ("((1)", [(1, 5, "Syntax error: missing ')' at '<EOF>'")]),
        ("(1))", [(1, 4, "Syntax error: extraneous input ')' expecting <EOF>")]),
        ("1 2 3", [(1, 3, "Syntax error: mismatched input '2' expecting <EOF>")]),
        ("[1,,2]", [(1, 4, "Syntax error: mismatched input ',' expecting ']'")]),
        ("[1 2]", [(1, 4, "Syntax error: extraneous input '2' expecting {']', ','}")]),
        ("{1:2,,}", [(1, 6, "Syntax error: extraneous input ',' expecting '}'")]),
        ("{1 2}", [(1, 4, "Syntax error: missing ':' at '2'")]),
        ("foo{a}", [(1, 6, "Syntax error: mismatched input '}' expecting ':'")]),
        ("true ? 1", [(1, 9, "Syntax error: mismatched input '<EOF>' expecting ':'")]),
        ("1 + ) 2", [(1, 5, f"Syntax error: extraneous input ')' expecting {START}")]),
        ("1 +", [(1, 4, f"Syntax error: mismatched input '<EOF>' expecting {START}")]),
        ("a == == b", [(1, 6, f"Syntax error: extraneous input '==' expecting {START}")]),
        ("claims.true", [(1, 8, "Syntax error: mismatched input 'true' expecting IDENTIFIER")]),
        ("claims.", [(1, 8, "Syntax error: no viable alternative at input '.'")]),
        ("claims..x", [(1, 8, "Syntax error: no viable alternative at input '..'")]),
        (
            "claims. = (",
            [
                (1, 9, "Syntax error: token recognition error at: '= '"),
                (1, 11, "Syntax error: no viable alternative at input '. ('"),
            ],
        ),
        (
            "claims.= true",
            [
                (1, 8, "Syntax error: token recognition error at: '= '"),
                (1, 10, "Syntax error: mismatched input 'true' expecting IDENTIFIER"),
            ],
        ),
        ("claims.1", [(1, 7, "Syntax error: extraneous input '.1' expecting <EOF>")]),
        ("!-claims", [(1, 3, "Syntax error: no viable alternative at input '-claims'")]),
        ("size(claims..x)", [(1, 13, "Syntax error: no viable alternative at input '..'")]),
        (
            "size(string(claims..x))",
            [
                (1, 20, "Syntax error: no viable alternative at input '..'"),
                (1, 22, "Syntax error: mismatched input ')' expecting <EOF>"),
            ],
        ),
        (
            "has(claims..x)",
            [(1, 5, "invalid argument to has() macro"), (1, 12, "Syntax error: no viable alternative at input '..'")],
        ),
        ("for", [(1, 1, "reserved identifier: for")]),
        ("'\\uD800'", [(1, 1, "invalid unicode code point")]),
        ("18446744073709551616u", [(1, 1, "invalid uint literal")]),
        ("1e999", [(1, 1, "invalid double literal")]),
        ("", [(1, 0, f"Syntax error: mismatched input '<EOF>' expecting {START}")]),
    ],
)
def test_one_fault(text: str, expected: list[tuple[int, int, str]]) -> None:
    assert faults(text) == expected


def test_all_faults_at_once_in_the_order_of_the_text() -> None:
    assert [(line, column) for line, column, _ in faults("'\\q'")] == [(1, 1), (1, 4), (1, 5)]


def test_second_line_and_caret() -> None:
    with pytest.raises(cel.CompileError) as caught:
        ENV.compile("1 +\n\t nope")
    assert str(caught.value) == (
        "ERROR: <input>:2:3: undeclared reference to 'nope' (in container '')\n |   nope\n | ..^"
    )


def test_wide_characters_get_wide_carets() -> None:
    with pytest.raises(cel.CompileError) as caught:
        ENV.compile("'é' + x")
    assert caught.value.issues[0].caret == "\n | 'é' + x\n | .．....^"


def test_more_than_a_hundred_faults_are_counted() -> None:
    with pytest.raises(cel.CompileError) as caught:
        ENV.compile(" + ".join(f"x{i}" for i in range(130)))
    assert len(caught.value.issues) == 100
    assert str(caught.value).endswith("\n30 more errors were truncated")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a" * 100_001, "expression code point size exceeds limit: size: 100001, limit 100000"),
        ("(" * 251 + "1" + ")" * 251, "expression recursion limit exceeded: 250"),
        ("[" * 300 + "]" * 300, "expression recursion limit exceeded: 250"),
        ("1" + "+1" * 251, "max recursion depth exceeded"),
        ("claims" + ".a" * 251, "max recursion depth exceeded"),
        ("1+(" * 200 + "1" + ")" * 200, "expression recursion limit exceeded: 250"),
    ],
)
def test_limits_of_size_and_depth(text: str, message: str) -> None:
    assert faults(text) == [(-1, 0, message)]


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("(" * 249 + "1" + ")" * 249, 1),
        ("1" + "+1" * 249, 250),
        ("-" * 260 + "1", 1),
        ("!" * 33 + "true", False),
        ("true ? 2 : " * 240 + "1", 2),
        ("size([" * 120 + "1" + "])" * 120, 1),
    ],
)
def test_deep_expressions_within_the_limits(text: str, value: object) -> None:
    assert ENV.compile(text)() == value


def test_quantifiers_a_hundred_deep() -> None:
    assert ENV.compile("[1].all(x, " * 100 + "x > 0" + ")" * 100)() is True


@pytest.mark.parametrize(
    ("text", "value"),
    [
        (r"'\a\b\f\n\r\t\v\\\?\'\"\`'", "\a\b\f\n\r\t\v\\?'\"`"),
        (r"'\x41\u00e9\U0001F451\101'", "Aé👑A"),
        (r"b'\x41\377é'", b"A\xff\xc3\xa9"),
        (r"r'\n'", "\\n"),
        ("'''a\r\nb\rc'''", "a\nb\nc"),
        ('"""a"b"""', 'a"b'),
        ("br'''x\\y'''", b"x\\y"),
        ("0x1F", 31),
        ("-0x8000000000000000", -(2**63)),
        (".5e1", 5.0),
        ("1 // comment\n + 1", 2),
    ],
)
def test_literals(text: str, value: object) -> None:
    assert ENV.compile(text)() == value


GOOD = (
    "claims.a[?'b'].orValue({'k': [1, 2u, -1.5]}) != dyn(\n"
    "  claims.all(x, x > b'\\x00' ? !true : r'\\d' in ['a'])) && f(a.b{c: 1}, null)"
)


def _broken() -> list[str]:
    """The text cut short everywhere, with a character less, and with one more."""
    cut = [GOOD[:end] for end in range(len(GOOD))]
    less = [GOOD[:at] + GOOD[at + 1 :] for at in range(len(GOOD))]
    more = [GOOD[:at] + extra + GOOD[at:] for extra in "(]}'.,?:\\é\n" for at in range(0, len(GOOD), 3)]
    return cut + less + more


def test_every_syntax_error_has_line_column_and_caret() -> None:
    seen = 0
    for text in _broken():
        try:
            ENV.compile(text)
        except cel.CompileError as error:
            syntax = [issue for issue in error.issues if issue.message.startswith("Syntax error: ")]
            printed = str(error)
        else:
            continue
        lines = text.split("\n")
        for issue in syntax:
            seen += 1
            if not text:
                assert (issue.line, issue.column, issue.caret) == (1, 0, "")
                continue
            line = lines[issue.line - 1]
            assert 1 <= issue.column <= len(line) + 1, (text, issue)
            before = "".join("．" if ord(char) > 127 else "." for char in line[: issue.column - 1])
            mark = "＾" if ord((line + " ")[issue.column - 1]) > 127 else "^"
            assert issue.caret == f"\n | {line}\n | {before}{mark}", (text, issue)
            assert f"ERROR: <input>:{issue.line}:{issue.column}: {issue.message}{issue.caret}" in printed
    assert seen > 400


@pytest.mark.parametrize("word", ["for", "as", "while"])
def test_a_reserved_word_is_no_function(word: str) -> None:
    with pytest.raises(cel.CompileError, match=f"reserved identifier: {word}"):
        cel.Environment().compile(f"{word}()")


def test_of_a_long_chain_the_hundred_faults_that_come_first_in_its_tree_are_told() -> None:
    """As `k8s.io/apiserver` answered: a branch is looked at, its operands are not bool, and then comes the next."""
    with pytest.raises(cel.CompileError) as caught:
        ENV.compile("||".join(["y+1"] * 60))
    told = [(issue.column, issue.message.split()[0]) for issue in caught.value.issues]
    assert [told.count((column, "expected")) for column in (242, 247, 252)] == [1, 0, 0]
    assert told[-3:] == [(242, "expected"), (246, "undeclared"), (251, "undeclared")]
    assert len(told) == 100


@pytest.mark.parametrize(("junk", "first", "after"), [(98, (2, 1), ""), (150, (2, 2), "1 more errors were truncated")])
def test_the_hundred_and_first_syntax_fault_is_the_last(junk: int, first: tuple[int, int], after: str) -> None:
    """As `k8s.io/apiserver` answered: its lexer is asked for the token after `r` before the parser complains of `r`."""
    with pytest.raises(cel.CompileError) as caught:
        ENV.compile("u\nr" + "\x01" * junk)
    assert min((issue.line, issue.column) for issue in caught.value.issues) == first
    assert str(caught.value).endswith(after or "^")
    assert len(caught.value.issues) == min(junk + 1, 100)
