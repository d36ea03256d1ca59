"""The parts of the live oracle that need no Go: generators, reducer, and what counts as a difference that is meant."""

from __future__ import annotations

import base64
import json
import random
from itertools import islice
from typing import Any

import pytest

from kubeauthn._core.authentication.load import load_configuration
from kubeauthn.cel import CompileError
from kubeauthn.cel.kubernetes import claims_environment, user_environment
from kubeauthn.errors import AuthenticationConfigError
from kubeauthn.testing import recorded_cel
from tests.oracle.compare import Sides
from tests.oracle.configurations import configuration_cases
from tests.oracle.expressions import expression_cases
from tests.oracle.meant import DELIBERATE, has_growing_list, meant
from tests.oracle.reduce import reduced

Case = dict[str, Any]
NOW = 1_800_000_000
BY_SUB = {"username": {"claim": "sub", "prefix": ""}}
CLAIMS = {"iss": "https://a.example", "aud": "one", "exp": NOW + 60, "sub": "u", "nul": None}


def nobody(case: Case) -> Case:
    raise AssertionError("not to be asked")


def config(**entry: Any) -> str:
    entry = {"issuer": {"url": "https://a.example", "audiences": ["one"]}, **entry}
    return json.dumps({"apiVersion": "apiserver.config.k8s.io/v1", "jwt": [entry]})


def refused(error: str) -> Case:
    return {"authenticated": False, "error": error}


def accepted(name: str) -> Case:
    return {"authenticated": True, "user": {"username": name, "uid": "", "groups": [], "extra": {}}}


def test_expressions_are_the_same_for_a_seed_and_mostly_good() -> None:
    cases = list(islice(expression_cases(random.Random(7)), 200))
    assert [case["expr"] for case in cases] == [
        case["expr"] for case in islice(expression_cases(random.Random(7)), 200)
    ]
    good = 0
    for case in cases:
        environment = user_environment() if case.get("env") == "user" else claims_environment()
        try:
            environment.compile(case["expr"])
            good += 1
        except CompileError:
            continue
    assert good > 60


def test_configurations_are_good_and_bad() -> None:
    cases = list(islice(configuration_cases(random.Random(7)), 60))
    assert len({case["config"] for case in cases}) > 50
    good = 0
    for case in cases:
        try:
            load_configuration(case["config"])
            good += 1
        except AuthenticationConfigError:
            continue
    assert 20 < good < 58  # a token is looked at only where the configuration is good


def test_an_expression_is_reduced_to_what_matters() -> None:
    case = {"expr": "[1, 2].map(x, size(claims.bad + 'x') > x) == [true]", "claims": '{"a": 1, "b": 2}'}
    small = reduced(case, lambda one: "bad" in one["expr"])
    assert small == {"expr": "bad", "claims": "{}"}


def test_a_configuration_is_reduced_by_lines() -> None:
    case = {"config": "a: 1\nb: 2\nbad: 3\nc: 4\n"}
    assert reduced(case, lambda one: "bad" in one["config"]) == {"config": "bad: 3\n"}


def test_a_case_that_cannot_shrink_stays() -> None:
    case = {"expr": "1 + 1", "claims": "{}"}
    assert reduced(case, lambda one: False) == case


def test_two_syntax_errors_are_excused_only_if_the_first_is_the_same() -> None:
    first, second = "ERROR: <input>:1:2: Syntax error: a", "ERROR: <input>:1:5: Syntax error: b"
    theirs = {"compileError": f"compilation failed: {first}\n | x\n | ^\n{second}"}
    case = {"expr": "x"}
    ours = {"compileError": f"compilation failed: {first}\n | x\n | ^"}
    assert meant(case, theirs, ours, "compile text", nobody, nobody) == "syntax text"
    ours = {"compileError": f"compilation failed: {second}"}
    assert meant(case, theirs, ours, "compile text", nobody, nobody) == ""
    assert meant(case, theirs, {"compileError": "compilation failed: no"}, "compile text", nobody, nobody) == ""


def test_no_difference_of_an_expression_is_excused_by_its_text() -> None:
    case = {"expr": "x"}
    for theirs, ours, what in (
        ({"evalError": "internal error: x"}, {"evalError": "y"}, "error text"),
        ({"evalError": "x"}, {"value": {"int": "1"}, "cost": 1}, "verdict"),
        ({"cost": 1}, {"cost": 2}, "cost"),
        ({"panic": "nil map"}, {"evalError": "y"}, "panic"),
    ):
        assert meant(case, theirs, ours, what, nobody, nobody) == ""


def test_a_list_that_an_error_prints_in_its_wrapper_is_excused_and_no_other_text_is() -> None:
    case = {"expr": "dyn(user).map(x, x).join()", "env": "user"}
    ours = {"evalError": "join: invalid input: []"}
    assert meant(case, {"evalError": "join: invalid input: &{[]}"}, ours, "error text", nobody, nobody) == "sum text"
    other = {"evalError": "join: invalid input: 1"}
    assert meant(case, other, ours, "error text", lambda one: other, lambda one: ours) == ""


def test_a_panic_is_excused_by_our_refusal_of_the_same_thing_alone() -> None:
    case = {"expr": "[?dyn(1)]"}
    theirs = {"panic": "runtime error: index out of range [0] with length 0"}
    ours = {"compileError": "ERROR: <input>:1:6: expected type 'optional_type(dyn)' but found 'dyn'"}
    assert meant(case, theirs, ours, "panic", nobody, nobody) == "panic"
    assert meant(case, {"panic": "nil map"}, ours, "panic", nobody, nobody) == ""
    assert meant(case, theirs, {"compileError": "ERROR: no"}, "panic", nobody, nobody) == ""
    assert meant(case, theirs, {"evalError": ours["compileError"]}, "panic", nobody, nobody) == ""


_NESTED = "[1]" + ".map(x, dyn([x, x]))" * 20
_TEXT = json.dumps({"t": "a" * 400_000})


@pytest.mark.parametrize(
    ("expression", "claims"),
    [
        ("quantity('1e2001').isInteger()", "{}"),
        (f"quantity('{'1' * 2001}').isInteger()", "{}"),
        ("'%.100001f'.format([1.5])", "{}"),
        ("claims.t.matches('(x+x+){999}y')", _TEXT),
        (f"'%s'.format([{_NESTED}])", "{}"),
        (f"[{_NESTED}].flatten(25)", "{}"),
        ("claims.t.substring(0, 9000).replace('', claims.t.substring(0, 9000)).size()", _TEXT),
        ("optional.of(lists.range(100000)).optMap(l, lists.range(200).all(x, (l + l).size() > 0))", "{}"),
        ("optional.of(1)" + ".optMap(x, x + 1)" * 14, "{}"),
    ],
    ids=["power", "digits", "precision", "pattern", "format", "flatten", "text", "sums", "macros"],
)
def test_every_own_limit_is_known_as_one(expression: str, claims: str) -> None:
    """What the engine says is what the list of deliberate differences is recognised by."""
    case = {"expr": expression, "claims": claims}
    ours = recorded_cel.answer(case)
    assert meant(case, {"value": {"bool": True}, "cost": 1}, ours, "verdict", nobody, nobody) == "limits"
    assert "limits" in DELIBERATE


def test_a_list_that_grows_is_known_by_the_expression() -> None:
    assert has_growing_list({"expr": "optional.of([]).optMap(x, x + [1])"})
    assert not has_growing_list({"expr": "optional.of([]).optMap(x, x)"})
    assert not has_growing_list({"expr": "[1] + [2]"})
    assert not has_growing_list({"expr": "1 +"})
    assert not has_growing_list({"config": ""})


def test_another_order_has_to_be_proven() -> None:
    case = {
        "config": config(
            claimMappings={"username": {"claim": "missing"}},
            claimValidationRules=[{"claim": "sub", "requiredValue": "v"}],
        ),
        "claims": json.dumps(CLAIMS),
        "now": NOW,
    }

    def only_rules(one: Case) -> Case:
        return refused("rule") if "requiredValue" in one["config"] else refused("name")

    def neither(one: Case) -> Case:
        return refused("something else")

    assert meant(case, refused("name"), refused("rule"), "text", only_rules, only_rules) == "order"
    assert meant(case, refused("name"), refused("rule"), "text", only_rules, neither) == ""
    assert meant(case, refused("name"), refused("rule"), "text", neither, only_rules) == ""


@pytest.mark.parametrize(
    ("claim", "name", "reason"), [("nul", "p:", "empty name"), ("nul", "x", ""), ("sub", "p:", "")]
)
def test_an_empty_name_is_that_of_an_empty_claim(claim: str, name: str, reason: str) -> None:
    case = {
        "config": config(claimMappings={"username": {"claim": claim, "prefix": "p:"}}),
        "claims": json.dumps(CLAIMS),
        "now": NOW,
    }
    ours = refused(f'oidc: empty username via claim "{claim}" is not allowed')

    def elsewhere(one: Case) -> Case:
        return refused("other")

    assert meant(case, accepted(name), ours, "verdict", elsewhere, elsewhere) == reason


def test_a_token_at_its_end_is_excused_if_we_agree_a_second_before() -> None:
    claims = json.dumps({**CLAIMS, "exp": NOW})
    case = {"config": config(claimMappings={"username": {"claim": "sub"}}), "claims": claims, "now": NOW}
    expired = refused("oidc: verify token: oidc: token is expired")

    def earlier(name: str) -> Any:
        return lambda one: accepted(name) if one["now"] == NOW - 1 else expired

    assert meant(case, accepted("u"), expired, "verdict", nobody, earlier("u")) == "exact claims"
    assert meant(case, accepted("u"), expired, "verdict", lambda one: accepted("u"), earlier("v")) == ""


def test_lists_are_excused_if_a_map_behind_them_cures_it() -> None:
    case = {
        "config": config(
            claimMappings={"username": {"claim": "sub"}, "groups": {"expression": "claims.sub.split(',')"}}
        ),
        "claims": json.dumps(CLAIMS),
        "now": NOW,
    }
    theirs = refused(
        "oidc: error evaluating group claim expression: expression must return a string or a list of strings"
    )

    def cured(one: Case) -> Case:
        return accepted("u") if ".map(r, r)" in one["config"] else theirs

    def never(one: Case) -> Case:
        return theirs

    assert meant(case, theirs, accepted("u"), "verdict", cured, nobody) == "lists"
    assert meant(case, theirs, accepted("u"), "verdict", never, never) == ""


def test_yaml_texts_and_second_documents() -> None:
    case = {"config": "a: 1\n---\nb: 2\n"}
    ours = {"strictDecodeError": "the file holds more than one document"}
    theirs = {"configErrors": ["x"]}

    def first_alone(one: Case) -> Case:
        return theirs if one["config"] == "a: 1\n" else ours

    assert meant(case, theirs, ours, "decode", nobody, first_alone) == "one document"
    assert meant(case, theirs, ours, "decode", nobody, lambda one: ours) == ""
    assert meant({"config": "a: 1"}, theirs, ours, "decode", nobody, nobody) == ""
    texts = ({"strictDecodeError": "yaml: line 1: a"}, {"strictDecodeError": "yaml: line 2: b"})
    assert meant(case, *texts, "decode", nobody, nobody) == "yaml text"
    unknown = {"strictDecodeError": "unknown field"}
    assert meant(case, texts[0], unknown, "decode", nobody, lambda one: unknown) == ""


def token(header: dict[str, Any]) -> str:
    parts = (base64.urlsafe_b64encode(json.dumps(part).encode()).decode().rstrip("=") for part in (header, CLAIMS))
    return ".".join([*parts, "AAAA"])


def test_a_key_that_says_what_it_is_for_or_cannot_be_read_is_excused_if_the_others_cure_it() -> None:
    good, odd = {"kty": "RSA", "kid": "1"}, {"kty": "RSA", "kid": "2", "use": "enc"}
    case = {
        "config": config(claimMappings={"username": {"claim": "sub", "prefix": ""}}),
        "claims": json.dumps(CLAIMS),
        "now": NOW,
        "token": token({"alg": "RS256"}),
        "jwks": {"keys": [good, odd]},
    }
    unreadable = refused("oidc: verify token: failed to verify signature: fetching keys oidc: failed to decode keys: x")

    def drops_the_set(one: Case) -> Case:
        return unreadable if any("use" in key for key in one["jwks"]["keys"]) else accepted("u")

    assert meant(case, unreadable, accepted("u"), "verdict", drops_the_set, lambda one: accepted("u")) == "keys"
    assert meant(case, unreadable, accepted("u"), "verdict", drops_the_set, lambda one: accepted("v")) == ""

    def takes_no_notice(one: Case) -> Case:
        return accepted("u")

    def minds(one: Case) -> Case:
        return refused("unsigned") if any("use" in key for key in one["jwks"]["keys"]) else accepted("u")

    assert meant(case, accepted("u"), refused("unsigned"), "verdict", takes_no_notice, minds) == "keys"
    plain = {**case, "jwks": {"keys": [good]}}
    assert meant(plain, accepted("u"), refused("unsigned"), "verdict", takes_no_notice, minds) == ""


def test_a_token_with_white_space_is_excused_if_without_it_we_agree() -> None:
    written = token({"alg": "RS256"})
    case = {"config": config(), "claims": json.dumps(CLAIMS), "now": NOW, "token": written[:9] + "\n" + written[9:]}

    def reads(one: Case) -> Case:
        return accepted("u") if one["token"] == written else refused("x")

    assert meant(case, accepted("u"), refused("x"), "verdict", nobody, reads) == "canonical"
    assert meant(case, accepted("v"), refused("x"), "verdict", lambda one: accepted("v"), reads) == ""


class _Disordered:
    """An oracle that gives its answers in turn."""

    def __init__(self, *answers: Case) -> None:
        self._answers = answers
        self._asked = 0

    def ask(self, case: Case) -> Case:
        self._asked += 1
        return self._answers[self._asked % len(self._answers)]


@pytest.mark.parametrize(
    ("first", "second", "reason"),
    [
        ([{"int": "1"}, {"int": "3"}, {"int": "2"}], [{"int": "3"}, {"int": "1"}, {"int": "2"}], "map order"),
        ([{"int": "1"}, {"int": "3"}, {"int": "2"}], [{"int": "1"}, {"int": "3"}, {"int": "2"}], ""),
        ([{"int": "1"}, {"int": "3"}, {"int": "4"}], [{"int": "3"}, {"int": "1"}, {"int": "4"}], ""),
    ],
    ids=["another order each time", "always the same", "other elements"],
)
def test_a_list_in_another_order_is_excused_only_where_there_is_none(first: Any, second: Any, reason: str) -> None:
    ours = recorded_cel.answer({"expr": "[1, 2, 3]", "claims": "{}"})
    answers = [{**ours, "value": {"list": elements}} for elements in (first, second)]
    difference = Sides(_Disordered(*answers), "1.37").compare({"expr": "[1, 2, 3]", "claims": "{}"})  # type: ignore[arg-type]
    assert difference is not None
    assert (difference.kind, difference.reason) == ("verdict", reason)


def test_which_of_two_faults_is_named_is_chance_on_the_other_side_too() -> None:
    """A token that is not canonical, and whose header has two members that cannot be read: Go names any of them."""
    written = token({"alg": 1, "kid": []})
    whole = {**json.loads(config(claimMappings=BY_SUB)), "kind": "AuthenticationConfiguration"}
    case = {"config": json.dumps(whole), "now": NOW, "token": written[:9] + "\n" + written[9:]}
    texts = [
        f"oidc: verify token: oidc: malformed jwt: failed to unmarshal {member}: json: cannot unmarshal {kind} into Go "
        f'value of type string: "{value}"'
        for member, kind, value in (("key ID", "array", "[]"), ("algorithm", "number", "1"))
    ]

    def compared(*answers: str) -> str | None:
        told = [{**refused(text), "configErrors": []} for text in answers]
        difference = Sides(_Disordered(*told), "1.37").compare(case)  # type: ignore[arg-type]
        return None if difference is None else difference.reason

    # at first the same one four times, which is how often the other side is asked
    assert compared(*[texts[0]] * 5, texts[1], *[texts[0]] * 5) == "canonical"
    assert compared(*["oidc: verify token: something else"] * 5) == ""
