"""The parts of the live oracle that need no Go: generators, reducer, and what counts as a difference that is meant."""

from __future__ import annotations

import json
import random
from itertools import islice
from typing import Any

import pytest

from kubeauthn._core.authentication.load import load_configuration
from kubeauthn.cel import CompileError
from kubeauthn.cel.kubernetes import claims_environment, user_environment
from kubeauthn.errors import AuthenticationConfigError
from tests.oracle.configurations import configuration_cases
from tests.oracle.expressions import expression_cases
from tests.oracle.meant import meant
from tests.oracle.reduce import reduced

Case = dict[str, Any]
NOW = 1_800_000_000
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
    assert 10 < good < 58


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
    assert meant(case, {}, ours, "decode", nobody, nobody) == "one document"
    assert meant({"config": "a: 1"}, {}, ours, "decode", nobody, nobody) == ""
    texts = ({"strictDecodeError": "yaml: line 1: a"}, {"strictDecodeError": "yaml: line 2: b"})
    assert meant(case, *texts, "decode", nobody, nobody) == "yaml text"
    assert meant(case, texts[0], {"strictDecodeError": "unknown field"}, "decode", nobody, nobody) == ""
