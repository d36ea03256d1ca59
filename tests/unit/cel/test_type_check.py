"""What the type checker accepts, deduces and refuses."""

from __future__ import annotations

import pytest

from kubeauthn import cel
from kubeauthn.cel.ast import Call, Comprehension, Ident, Literal, Select, walk

ENV = cel.Environment(
    variables={
        "n": "int",
        "s": "string",
        "names": "list(string)",
        "anything": "dyn",
        "claims": "map(string, any)",
        "person": "my.Person",
        "pkg.flag": "bool",
    },
    types={"my.Person": {"name": "string", "age": "int", "boss": "my.Person"}},
    libraries=["optional", "lists", "two-var-comprehensions"],
)


@pytest.mark.parametrize(
    ("text", "deduced"),
    [
        ("1", "int"),
        ("[1, 2]", "list(int)"),
        ("[1, 'a']", "list(dyn)"),
        ("[]", "list(dyn)"),
        ("{'a': 1u}", "map(string, uint)"),
        ("names.map(x, x.size())", "list(int)"),
        ("names.filter(x, true)[0]", "string"),
        ("names.transformMap(i, v, v)", "map(int, string)"),
        ("n == 1 ? [n] : []", "list(int)"),
        ("anything.x.y", "dyn"),
        ("claims.x", "google.protobuf.Any"),
        ("claims.?x", "optional_type(google.protobuf.Any)"),
        ("claims.?x.orValue(true)", "google.protobuf.Any"),
        ("claims.?x.orValue(true) == true", "bool"),
        ("optional.of(1).optMap(x, string(x))", "optional_type(string)"),
        ("person.boss.name", "string"),
        ("person.?boss.age", "optional_type(int)"),
        ("type(1)", "type(int)"),
        ("timestamp('2023-01-01T00:00:00Z') - timestamp('2023-01-01T00:00:00Z')", "google.protobuf.Duration"),
        ("pkg.flag", "bool"),
        ("n + anything", "int"),
    ],
)
def test_deduced_types(text: str, deduced: str) -> None:
    assert str(ENV.compile(text).output_type) == deduced


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("n + s", "found no matching overload for '_+_' applied to '(int, string)'"),
        ("s.size(1)", "found no matching overload for 'size' applied to 'string.(int)'"),
        ("nope", "undeclared reference to 'nope' (in container '')"),
        ("nope()", "undeclared reference to 'nope' (in container '')"),
        (
            "claims.x.map(v, v)",
            "expression of type 'any' cannot be range of a comprehension (must be list, map, or dynamic)",
        ),
        ("n.x", "type 'int' does not support field selection"),
        ("person.shoe", "undefined field 'shoe'"),
        ("n && true", "expected type 'bool' but found 'int'"),
        ("[?n]", "expected type 'optional_type(int)' but found 'int'"),
        ("n ? 1 : 2", "found no matching overload for '_?_:_' applied to '(int, int, int)'"),
        ("my.Person{age: 'x'}", "expected type of field 'age' is 'int' but provided type is 'string'"),
        ("has(n)", "invalid argument to has() macro"),
        ("names.map(1, 2)", "argument is not an identifier"),
        ("names.all(x.y, true)", "argument must be a simple name"),
        ("names.all(i, i, true)", "duplicate variable name: i"),
        ("names.map(__result__, 1)", "iteration variable overwrites accumulator variable"),
    ],
)
def test_refused(text: str, message: str) -> None:
    with pytest.raises(cel.CompileError) as caught:
        ENV.compile(text)
    assert [issue.message for issue in caught.value.issues] == [message]


def test_every_type_fault_is_reported() -> None:
    with pytest.raises(cel.CompileError) as caught:
        ENV.compile("(n + s) == (s - 1) || nope")
    assert [issue.column for issue in caught.value.issues] == [4, 15, 23]


def test_strict_literals() -> None:
    strict = cel.Environment(strict_literals=True)
    with pytest.raises(cel.CompileError, match="expected type 'int' but found 'string'"):
        strict.compile("[1, 'a']")


def test_literals_that_can_never_be_good() -> None:
    validating = cel.Environment(validate_literals=True, libraries=["strings"])
    for text, message in [
        ("duration('1 day')", "invalid duration argument"),
        ("timestamp('yesterday')", "invalid timestamp argument"),
        ("'x'.matches('(')", "invalid matches argument"),
        ("'%d'.format(['x'])", "decimal clause can only be used on integers, was given string"),
    ]:
        with pytest.raises(cel.CompileError, match=message):
            validating.compile(text)


def test_conversions_of_constants_fail_when_compiled() -> None:
    with pytest.raises(cel.CompileError, match="program instantiation failed: type conversion error"):
        ENV.compile("int('x') == 1 || true")


def test_names_are_sought_from_the_inside_of_the_container_out() -> None:
    env = cel.Environment(variables={"a.b.x": "int", "a.x": "string", "x": "bool", "y": "double"}, container="a.b")
    assert [str(env.compile(name).output_type) for name in ("x", ".x", "y", ".a.x")] == [
        "int",
        "bool",
        "double",
        "string",
    ]


def test_an_iteration_variable_hides_a_variable() -> None:
    env = cel.Environment(variables={"x": "string", "x.y": "int"})
    program = env.compile("[{'y': true}].map(x, x.y)[0]")
    assert (str(program.output_type), program()) == ("bool", True)
    assert env.compile("[1].map(x, .x)")(x="outer") == ["outer"]


def test_the_tree_can_be_walked() -> None:
    tree = ENV.compile("claims.email.startsWith('x') && names.exists(g, g == claims.?team.orValue('y'))").ast
    kinds = [type(node) for node in walk(tree)]
    assert kinds.count(Comprehension) == 1
    assert [node.field for node in walk(tree) if isinstance(node, Select)] == ["email"]
    optional = [node for node in walk(tree) if isinstance(node, Call) and node.function == "_?._"]
    assert len(optional) == 1
    assert {node.name for node in walk(tree) if isinstance(node, Ident) and node.is_global} == {"claims", "names"}
    assert all(node.type is not None for node in walk(tree))


def test_the_tree_shows_what_a_reader_of_claims_wants_to_know() -> None:
    """Which claims an expression reads, and where: by selects, optional selects and indexes with a constant."""
    text = "has(claims.a) && claims.?b.orValue('') == claims['c'] && names.all(n, claims[?n].hasValue())"
    tree = ENV.compile(text).ast
    found: dict[object, str] = {}
    for node in walk(tree):
        if isinstance(node, Select):
            found[node.field] = "has" if node.test_only else "select"
        elif isinstance(node, Call) and node.function in ("_?._", "_[_]", "_[?_]"):
            key = node.args[1]
            found[key.value if isinstance(key, Literal) else "?"] = node.function
    assert found == {"a": "has", "b": "_?._", "c": "_[_]", "?": "_[?_]"}
    (loop,) = (node for node in walk(tree) if isinstance(node, Comprehension))
    assert (loop.iter_var, loop.iter_range.offset) == ("n", text.index("names"))
    assert [call.function for call in walk(tree) if isinstance(call, Call)].count("_&&_") >= 2


def test_walking_goes_from_the_whole_to_its_parts_in_the_order_of_the_text() -> None:
    tree = ENV.compile("[1, 2 + 3].size() == 4").ast
    nodes = list(walk(tree))
    assert nodes[0] is tree
    assert [node.value for node in nodes if isinstance(node, Literal)] == [1, 2, 3, 4]
    assert all(child in nodes for node in nodes for child in node.children())
