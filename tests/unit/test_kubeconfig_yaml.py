"""YAML as kubectl reads it, with bounds."""

from __future__ import annotations

import json
import math

import pytest

from kubeauthn._core.yaml_document import ALIASED_NODES, DEPTH, YamlSyntaxError, parse, parse_all
from kubeauthn._core.yaml_lines import lines_of

# What kubectl makes of these: tests/integration/test_kubeconfig_load.py asks it.
SCALARS = {
    "yes": True, "no": False, "on": True, "off": False, "y": True, "n": False, "Y": True, "N": False,
    "True": True, "TRUE": True, "tRUE": "tRUE",
    "~": None, "null": None, "": None, "nULL": "nULL",
    "1:30": "1:30", "2020-01-01": "2020-01-01", "0o17": 15, "017": 15, "089": 89, "0x1f": 31, "0b11": 3,
    "1_000": 1000, "1e3": 1000.0, ".5": 0.5, "5.": 5.0, "-3": -3, "+3": 3, "1e999": "1e999",
    "--": "--", "-x": "-x", "1.2.3": "1.2.3", "0xzz": "0xzz", "+-3": "+-3", ".": ".", "1e": "1e",
    "٣": "٣", "nope": "nope", "token": "token", "http://x": "http://x",
    "'yes'": "yes", '"5"': "5", "!!str 5": "5", "! 5": "5", "!!int 5": 5, "!!float 5": 5, "!!null ''": None,
    "12345678901234567890123": 1.2345678901234568e22,
}  # fmt: skip


@pytest.mark.parametrize(("text", "value"), SCALARS.items(), ids=list(SCALARS))
def test_scalar(text, value):
    document = parse(f"k: {text}\n")
    assert document.faults == ()
    assert document.value == {"k": value}
    assert type(document.value["k"]) is type(value)


def test_infinities_and_not_a_number():
    value = parse("[.inf, -.inf, .nan]").value
    assert value[:2] == [math.inf, -math.inf]
    assert math.isnan(value[2])


def test_keys_are_always_text():
    assert parse("{yes: 1, 5: 2, ~: 3, !!int 7: 4}").value == {"yes": 1, "5": 2, "~": 3, "7": 4}


def test_a_text_seen_as_key_or_quoted_is_still_typed_elsewhere():
    text = """{yes: "yes", a: yes, "5": '5', b: 5, name: name, c: !!str yes, d: yes, e: "<<", f: {<<: {g: h}}}"""
    assert parse(text).value == {
        **{"yes": "yes", "a": True, "5": "5", "b": 5, "name": "name", "c": "yes", "d": True},
        **{"e": "<<", "f": {"g": "h"}},
    }


def test_json_is_yaml():
    document = {"a": [1, 2.5, True, None, 'x\n"y" é'], "b": {"c": []}}
    assert parse(json.dumps(document, indent=2)).value == document


@pytest.mark.parametrize("text", ["", "# nothing\n", "---\n", "---\n...\n"])
def test_no_content(text):
    assert parse(text).value is None


def test_first_document_counts_and_all_can_be_had():
    assert parse("a: 1\n---\na: 2\n").value == {"a": 1}
    assert [document.value for document in parse_all("a: 1\n---\na: 2\n---\n")] == [{"a": 1}, {"a": 2}, None]


def test_anchors_aliases_and_merge():
    text = """
base: &base {a: 1, b: 2}
more: &more {b: 3, c: 3}
one: {<<: *base, b: 9}
two: {<<: [*base, *more], d: 4}
quoted: {"<<": 5}
same: *base
name: &n text
again: *n
"""
    value = parse(text).value
    assert value["one"] == {"a": 1, "b": 9}
    assert value["two"] == {"a": 1, "b": 2, "c": 3, "d": 4}
    assert value["quoted"] == {"<<": 5}
    assert value["same"] == value["base"]
    assert value["again"] == "text"


FAULTS = {
    "key twice": ("a: {b: 1, b: 2, c: 1, c: 2}", [(("a", "b"), "is given twice"), (("a", "c"), "is given twice")]),
    "key twice in a list": ("a: [{b: 1}, {b: 1, b: 2}]", [(("a", 1, "b"), "is given twice")]),
    "merge twice": ("{<<: {a: 1}, <<: {b: 1}}", [(("<<",), "is given twice")]),
    "merge of text": ("a: {<<: 5}", [(("a", "<<"), "merges something that is not an object")]),
    "list as key": ("a: {[1]: 2}", [(("a",), "has a key that is not text")]),
    "alias to a number as key": ("a: &x 5\nb: {*x : 2}", [(("b",), "has a key that is not text")]),
    "alias without anchor": ("a: *x", [(("a",), "is an alias without an anchor before it")]),
    "alias to itself": ("a: &x [*x]", [(("a", 0), "is an alias without an anchor before it")]),
    "foreign tag": ("a: !python/object:os.system x", [(("a",), "has a tag that is not known here")]),
    "foreign tag on an object": ("a: !!python/object:os.system {}", [(("a",), "has a tag that is not known here")]),
    "tag that does not fit": ("a: !!int x", [(("a",), "has a tag that its value does not fit")]),
}  # fmt: skip


@pytest.mark.parametrize(("text", "faults"), FAULTS.values(), ids=list(FAULTS))
def test_faults_of_a_wellformed_text(text, faults):
    assert list(parse(text).faults) == faults


SYNTAX = {
    "unclosed list": ("a: [1,\nb\n", 3),
    "tab": ("a:\n\t- b", 2),
    "two colons": ("a: b: c", 1),
    "control character": ("a: \x01", None),
    "NUL": ("a: \x00", None),
    "lone surrogate": ("a: \ud800", None),
}  # fmt: skip


@pytest.mark.parametrize(("text", "line"), SYNTAX.values(), ids=list(SYNTAX))
def test_syntax_errors_have_a_line_and_no_content(text, line):
    with pytest.raises(YamlSyntaxError) as caught:
        parse(text)
    assert caught.value.line == line


@pytest.mark.parametrize("opening", ["[", "{a: ", "- ", "? "], ids=["lists", "objects", "block lists", "keys"])
def test_deep_nesting_is_refused_early(opening):
    with pytest.raises(YamlSyntaxError, match=f"nested deeper than {DEPTH} levels"):
        parse(opening * 100_000)


def test_nesting_up_to_the_bound_is_read():
    assert parse("[" * DEPTH + "]" * DEPTH).value


@pytest.mark.parametrize("step", ["[{0}]", "{{k: [{0}]}}"], ids=["lists", "objects"])
def test_alias_bomb(step):
    lines = ["a0: &a0 [x, x, x, x, x, x, x, x, x, x]"]
    for level in range(1, 30):
        aliases = ", ".join([f"*a{level - 1}"] * 10)
        lines.append(f"a{level}: &a{level} {step.format(aliases)}")
    with pytest.raises(YamlSyntaxError, match=f"aliases stand for more than {ALIASED_NODES} values"):
        parse("\n".join(lines))


def test_alias_bomb_of_one_long_text():
    with pytest.raises(YamlSyntaxError, match="aliases stand for more"):
        parse(f"text: &t {'x' * 1_000_000}\nall: [{', '.join(['*t'] * 1000)}]")


def test_alias_bomb_of_merges():
    keys = ", ".join(f"k{index}: 1" for index in range(1000))
    with pytest.raises(YamlSyntaxError, match="aliases stand for more"):
        parse(f"base: &b {{{keys}}}\nall:\n" + "- {<<: *b}\n" * 1000)


def test_lines():
    text = """# comment
users:
- name: a
  user: {token: x}
- user:
    exec:
      args: [
        one,
        two]
  name: b
"""
    wanted = {
        (): 2,
        ("users",): 2,
        ("users", 0): 3,
        ("users", 0, "user", "token"): 4,
        ("users", 1): 5,
        ("users", 1, "user", "exec", "args"): 7,
        ("users", 1, "user", "exec", "args", 1): 9,
        ("users", 1, "name"): 10,
        ("users", 1, "user", "exec", "command"): 6,
        ("nowhere", "at", "all"): 2,
    }
    assert lines_of(text, wanted) == wanted


def test_lines_of_a_key_given_twice_and_behind_complex_keys():
    assert lines_of("a: 1\na: 2\n? [x, {y: z}]\n: v\nb: 3\n", [("a",), ("b",)]) == {("a",): 2, ("b",): 5}
