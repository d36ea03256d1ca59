"""The environments of structured authentication, by version."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from kubeauthn import cel
from kubeauthn.cel.escaping import escape_name, unescape_name
from kubeauthn.cel.kubernetes import claims_environment, decode_claims, libraries_of, user_environment

TABLE = Path(__file__).parents[2] / "recorded" / "cel_env.json"
# Declared by the real environment for programs compiled long ago; no expression can reach them.
UNREACHABLE = {"__not_strictly_false__", "_in_", "in"}
USER = {"username": "jane", "uid": "1", "groups": ["dev", "ops"], "extra": {"example.com/team": ["a", "b"]}}


def claim(text: str, raw: str) -> object:
    return claims_environment().compile(text)(claims=decode_claims(raw))


def test_every_function_and_macro_of_the_real_environment() -> None:
    table = json.loads(TABLE.read_text())
    environment = claims_environment("1.37")
    expected = {
        (function, row["id"], tuple(row["args"] or ()), row["result"], row["member"])
        for function, rows in table["functions"].items()
        if function not in UNREACHABLE
        for row in rows
    }
    found = {
        (function, row.id, row.params, row.result, row.member)
        for function, rows in environment.functions.items()
        for row in rows
    }
    assert found == expected
    assert {(row["name"], row["args"], row["receiver"]) for row in table["macros"]} == set(environment.macros)


FIRST = {
    "url('https://a/').getHost() == 'a'": 28,
    "'a1'.find('[0-9]') == '1'": 28,
    "[1, 2].sum() == 3": 28,
    "[1, 2].isSorted()": 28,
    "optional.of(1).hasValue()": 28,
    "optional.of(1).optMap(x, x).optFlatMap(x, optional.of(x)).hasValue()": 28,
    "1 < 1.5": 28,
    "quantity('1').isInteger()": 28,
    "'ab'.charAt(0).upperAscii().trim().replace('A', 'b').substring(0).split('') == ['b']": 28,
    "sets.contains([1], [1])": 29,
    "'%s'.format(['x']) == 'x'": 29,
    "['a'].join(',') == 'a'": 28,
    "strings.quote('a') == 'a'": 29,
    "isIP('1.2.3.4')": 30,
    "isCIDR('1.2.3.4/8')": 30,
    "format.uuid().validate('x').hasValue()": 31,
    "[1].all(i, v, true)": 32,
    "[1].transformList(i, v, v) == [1]": 32,
    "[1].first().hasValue()": 33,
    "[optional.of(1)].unwrapOpt() == [1]": 33,
    "isSemver('1.0.0')": 33,
    "lists.range(1) == [0]": 34,
    "[2, 1].sort().distinct().slice(0, 1) == [1]": 34,
    "[[1]].flatten() == [1]": 34,
    "[2, 1].sortBy(x, -x) == [2, 1]": 34,
    "[1].includes(1)": 37,
}
"""What an expression may use, and the first minor that has it: as k8s.io/apiserver adds its libraries, in the versions
that the cel-go of that release has (0.22 in 1.32, 0.23 in 1.33)."""
NEVER = ("base64.encode(b'a')", "cel.bind(x, 1, x)", "math.greatest(1, 2)", "'ab'.reverse()", "cel.block([1], 1)")


@pytest.mark.parametrize("minor", range(28, 38))
def test_every_version_has_what_came_until_then_and_nothing_else(minor: int) -> None:
    for environment in (claims_environment(f"1.{minor}"), user_environment(f"1.{minor}")):
        compiled = set()
        for text in (*FIRST, *NEVER):
            try:
                environment.compile(text)
            except cel.CompileError as error:
                assert "undeclared reference" in str(error) or "no matching overload" in str(error), (text, str(error))
            else:
                compiled.add(text)
        assert compiled == {text for text, first in FIRST.items() if first <= minor}


def test_mixed_literals_are_refused_in_every_version() -> None:
    for version in ("1.28", "1.29", "1.37"):
        with pytest.raises(cel.CompileError, match="expected type 'int' but found 'string'"):
            claims_environment(version).compile("[1, 'a']")


@pytest.mark.parametrize("version", ["1.27", "1.38", "2.1", "latest", "", "1"])
def test_unknown_versions(version: str) -> None:
    with pytest.raises(cel.CelError, match=r"Kubernetes 1\.28 to 1\.37 are known"):
        claims_environment(version)


def test_versions_may_name_a_patch() -> None:
    assert libraries_of("v1.33.4") == libraries_of("1.33")


def test_claims_are_lazy() -> None:
    raw = '{"a": 1, "b": "x"}'
    assert claim("claims.exists(v, dyn(v) == 'x')", raw) is True
    for text, message in [("'a' in claims", "no such overload"), ("size(claims)", "no such overload: size")]:
        with pytest.raises(cel.EvalError) as caught:
            claim(text, raw)
        assert str(caught.value) == message


def test_numbers_are_doubles() -> None:
    assert claim("string(claims.exp)", '{"exp": 1700086400}') == "1.7000864e+09"
    assert claim("claims.exp == 1700086400", '{"exp": 1700086400}') is True
    with pytest.raises(cel.EvalError, match="no such overload"):
        claim("claims.exp + 1", '{"exp": 1}')


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("claims.foo__dot__bar", 1.0),
        ("claims['foo.bar']", 1.0),
        ("claims['foo__dot__bar']", 1.0),
        ("claims.n.a__slash__b__dash__c", 2.0),
        ("claims.n[claims.key]", 2.0),
        ("claims.__namespace__", "ns"),
        ("claims.u__underscores__x", 3.0),
        ("claims.?n.a__slash__b__dash__c.orValue(0.0)", 2.0),
        ("has(claims.n.a__slash__b__dash__c)", True),
        ("{'a.b': 1}[?'a__dot__b'].hasValue()", False),
        ("claims.`foo.bar`", 1.0),
    ],
)
def test_escaped_names(text: str, expected: object) -> None:
    raw = '{"foo.bar": 1, "n": {"a/b-c": 2}, "namespace": "ns", "u__x": 3, "key": "a__slash__b__dash__c"}'
    assert claim(text, raw) == expected


def test_a_wrongly_escaped_claim_is_not_there() -> None:
    with pytest.raises(cel.EvalError, match="no such key: a__x__b"):
        claim("claims['a__x__b']", '{"a__x__b": 1}')
    assert claim("claims.n['a__x__b']", '{"n": {"a__x__b": 1}}') == 1.0


@pytest.mark.parametrize("name", ["a.b", "a-b/c", "a__b", "in", "namespace", "plain", "_x", "x__", "____"])
def test_escaping_and_back(name: str) -> None:
    escaped = escape_name(name)
    assert escaped is not None
    assert unescape_name(escaped) == name


@pytest.mark.parametrize("name", ["", "1a", "a b", "é", "a:b"])
def test_names_that_cannot_be_escaped(name: str) -> None:
    assert escape_name(name) is None


@pytest.mark.parametrize(
    ("raw", "expected"),
    [
        ('{"a": 1, "a": 2}', {"a": 2.0}),
        (b'{"a": [true, null, "x", {"b": -0.0}]}', {"a": [True, None, "x", {"b": -0.0}]}),
        ("null", {}),
        (r'{"a": "\ud83d\ude00 \ud83d"}', {"a": "😀 �"}),
    ],
)
def test_decoding(raw: str | bytes, expected: dict[str, object]) -> None:
    assert decode_claims(raw) == expected


@pytest.mark.parametrize(
    "raw", ["[1]", "x", '{"a": NaN}', '{"a": 1} x', '{"a"', "[" * 100_000, b'{"a": "\xff"}', '"text"', ""]
)
def test_not_claims(raw: str | bytes) -> None:
    with pytest.raises(cel.CelError):
        decode_claims(raw)


def test_a_number_too_large_fails_only_where_it_is_used() -> None:
    raw = '{"a": 1e400, "b": 1, "c": {"d": [-1e999]}}'
    assert claim("claims.b", raw) == 1.0
    assert claim("has(claims.b) && !has(claims.z)", raw) is True
    for name, number in (("a", "1e400"), ("c", "-1e999")):
        with pytest.raises(cel.EvalError) as caught:
            claim(f"claims.{name}", raw)
        assert str(caught.value) == (
            f'claim "{name}" failed to unmarshal: json: cannot unmarshal number {number} into Go value of type float64'
        )


def test_a_hundred_thousand_claims() -> None:
    raw = json.dumps({f"k{number}": number for number in range(100_000)})
    assert claim("claims.k99999", raw) == 99999.0


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("!user.username.startsWith('system:')", True),
        ("user.groups.all(g, !g.startsWith('system:'))", True),
        ("user.extra.example__dot__com__slash__team", ["a", "b"]),
        ("user.extra['example.com/team'][1]", "b"),
        ("has(user.uid)", True),
        ("user.groups.size() + user.extra.size()", 3),
    ],
)
def test_users(text: str, expected: object) -> None:
    assert user_environment().compile(text)(user=USER) == expected


def test_a_user_without_groups_or_extra() -> None:
    program = user_environment().compile("user.groups == [] && user.extra == {} && user.uid == ''")
    assert program(user={"username": "jane"}) is True


def test_users_have_these_fields_only() -> None:
    with pytest.raises(cel.CompileError, match="undefined field 'name'"):
        user_environment().compile("user.name")


@pytest.mark.parametrize("name", ["timestamp", "duration", "google.protobuf.Any", "google.protobuf.Int64Value"])
def test_names_of_types_that_no_program_can_use(name: str) -> None:
    with pytest.raises(cel.CompileError) as caught:
        claims_environment().compile(f"{name} == type(1)")
    assert str(caught.value) == f"program instantiation failed: reference to undefined type: {name}"


def test_types_of_kubernetes_have_no_names_but_those_of_addresses() -> None:
    assert claims_environment().compile("type(ip('1.2.3.4')) == net.IP")(claims={}) is True
    with pytest.raises(cel.CompileError, match="undeclared reference to 'kubernetes'"):
        claims_environment().compile("kubernetes.URL")


def test_the_claims_as_a_key_are_the_same_key_again() -> None:
    with pytest.raises(cel.EvalError, match="already exists"):
        claim("[1, 2].transformMapEntry(i, v, {claims: i})", "{}")
