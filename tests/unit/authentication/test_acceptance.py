"""The short way says yes exactly as the steps with their reasons do, and never instead of them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from kubeauthn._core.authentication.claims import read_claims
from kubeauthn._core.authentication.compiled import compile_configuration
from kubeauthn._core.authentication.expressions import Expressions
from kubeauthn._core.authentication.load import load_configuration
from kubeauthn._core.authentication.mapping import map_user
from kubeauthn._core.authentication.rules import check_claim_rules, check_user_rules
from kubeauthn._core.authentication.verdict import Authenticated, UserInfo
from kubeauthn._core.authentication.verify import check_audience, check_times, check_types
from kubeauthn.errors import AuthenticationConfigError, TokenError

RECORDED = Path(__file__).parents[2] / "recorded" / "authn.jsonl"
NOW = 1_700_000_000.0
GOOD = {"aud": "app", "exp": NOW + 600}
HEAD = """\
apiVersion: apiserver.config.k8s.io/v1
kind: AuthenticationConfiguration
jwt:
- issuer: {url: https://issuer.example, audiences: [app]}
"""


def by_steps(authenticator, claims, now=NOW):
    run = Expressions({"claims": claims})
    try:
        check_types(claims)
        check_audience(claims, authenticator.config.issuer)
        ends = check_times(claims, now)
        check_claim_rules(authenticator, claims, run)
        user = run.variables["user"] = map_user(authenticator, claims, run)
        check_user_rules(authenticator, run)
    except TokenError:
        return None
    return Authenticated(UserInfo.of(user), authenticator.config.issuer.url, ends)


def mapping_to(mappings):
    return compile_configuration(load_configuration(HEAD + f"  claimMappings: {mappings}\n")).authenticators[0]


def test_every_recorded_token_gets_the_same_user_both_ways():
    taken = refused = 0
    for line in RECORDED.read_text().splitlines():
        case = json.loads(line)
        try:
            claims = read_claims(case["claims"].encode())
            config = load_configuration(case["config"], case.get("disallowedIssuers") or ())
        except (AuthenticationConfigError, AttributeError, ValueError):
            continue  # no claims, or a configuration that is faulty
        if "_claim_names" in claims or not config.jwt:
            continue
        authenticator = compile_configuration(config).authenticators[0]
        now = case.get("now", NOW)
        accepted = authenticator.accept(claims, now)
        expected = by_steps(authenticator, claims, now)
        if accepted is None:
            refused += expected is None
            continue
        taken += 1
        assert accepted == expected, case["name"]
    assert taken > 200, "the short way is hardly ever taken"
    assert refused > 100


@pytest.mark.parametrize(
    ("mappings", "claims"),
    [
        ("{username: {expression: claims.sub}, groups: {expression: claims.o}}", {"sub": "jane", "o": 1.0}),
        ("{username: {expression: claims.sub}, groups: {expression: claims.l}}", {"sub": "jane", "l": ["a", 1]}),
        ("{username: {expression: claims.sub}, groups: {expression: claims.l}}", {"sub": "jane", "l": [["a"]]}),
        ("{username: {claim: sub, prefix: ''}, groups: {claim: o, prefix: ''}}", {"sub": "jane", "o": {"admins": 1}}),
        ("{username: {claim: sub, prefix: ''}}", {"sub": ""}),
        ("{username: {claim: sub, prefix: 'x:'}}", {"sub": ""}),
        ("{username: {claim: sub, prefix: ''}}", {"sub": 5.0}),
        ("{username: {claim: email, prefix: ''}}", {"email": "jane@example.com", "email_verified": "true"}),
        ("{username: {claim: email, prefix: ''}}", {"email": "jane@example.com", "email_verified": None}),
        ("{username: {claim: sub, prefix: ''}, uid: {claim: id}}", {"sub": "jane", "id": 5.0}),
        ("{username: {claim: sub, prefix: ''}, uid: {expression: claims.id}}", {"sub": "jane", "id": ["x"]}),
        ("{username: {claim: sub, prefix: ''}, uid: {expression: claims.id}}", {"sub": "jane"}),
    ],
)
def test_what_is_not_in_order_is_left_to_the_steps(mappings, claims):
    authenticator = mapping_to(mappings)
    assert authenticator.accept(GOOD | claims, NOW) is None
    assert by_steps(authenticator, GOOD | claims) is None


@pytest.mark.parametrize(
    "claims",
    [
        {"aud": ["other"]},
        {"aud": []},
        {"aud": "other"},
        {"aud": None},
        {"aud": ["app", 1.0]},
        {"aud": {"app": "app"}},
        {"exp": None},
        {"exp": NOW},
        {"exp": NOW + 0.5},
        {"exp": 1e300},
        {"exp": -1.0},
        {"exp": str(NOW + 600)},
        {"nbf": NOW + 61},
        {"nbf": "1"},
        {"iat": "1"},
        {"iat": None},
        {"sub": 1.0},
        {"nonce": 1.0},
        {"at_hash": []},
        {"_claim_names": {"groups": "absent"}},
        {"_claim_sources": []},
    ],
)
def test_registered_claims_that_are_not_in_order_are_left_to_the_steps(claims):
    authenticator = mapping_to("{username: {expression: '\"jane\"'}}")
    assert authenticator.accept(GOOD | claims, NOW) is None
    assert by_steps(authenticator, GOOD | claims) is None


@pytest.mark.parametrize("missing", ["aud", "exp"])
def test_registered_claims_that_are_not_there_are_left_to_the_steps(missing):
    authenticator = mapping_to("{username: {expression: '\"jane\"'}}")
    claims = {name: value for name, value in GOOD.items() if name != missing}
    assert authenticator.accept(claims, NOW) is None
    assert by_steps(authenticator, claims) is None


@pytest.mark.parametrize(
    ("expression", "claims"),
    [
        ("optional.ofNonZeroValue('a' + claims.sub).orValue('b')", {"sub": "jane"}),
        ("optional.ofNonZeroValue(claims.sub).orValue('b')", {"sub": "jane"}),
        ("claims.o.a__dot__b", {"o": {"a.b": "jane"}}),
        ("[claims.o].map(o, o.a__dot__b)[0]", {"o": {"a.b": "jane"}}),
        ("dyn(claims.l).map(o, o.?a__dot__b.orValue('none'))[0]", {"l": [{"a.b": "jane"}]}),
    ],
)
def test_where_a_value_came_from_counts_both_ways(expression, claims):
    text = HEAD + f"  claimMappings: {{username: {{expression: {json.dumps(expression)}}}}}\n"
    authenticator = compile_configuration(load_configuration(text)).authenticators[0]
    accepted = authenticator.accept(GOOD | claims, NOW)
    assert accepted is not None
    assert accepted == by_steps(authenticator, GOOD | claims)


@pytest.mark.parametrize(
    "claims",
    [
        {"aud": ["other", "app"]},
        {"exp": NOW + 600.75},
        {"nbf": NOW + 60},
        {"nbf": -1e18, "iat": 1e18, "sub": "", "nonce": "n", "at_hash": "h"},
    ],
)
def test_registered_claims_that_are_in_order_are_taken_both_ways(claims):
    authenticator = mapping_to("{username: {expression: '\"jane\"'}}")
    accepted = authenticator.accept(GOOD | claims, NOW)
    assert accepted is not None
    assert accepted == by_steps(authenticator, GOOD | claims)


@pytest.mark.parametrize(
    ("rule", "met"),
    [
        ("user.username == 'jane' && user.uid == '' && user.groups == ['a']", True),
        ("user.extra['example.com/x'] == ['1']", True),
        ("user.extra['example.com/x'] == ['2']", False),
        ("has(user.extra) && has(user.groups)", True),
        ("[user].all(u, u.username == 'jane')", True),
        ("user.groups.exists(g, g == user.uid)", False),
        ("user.username.charAt(0) == 'j'", True),
    ],
)
def test_rules_on_the_user_see_all_of_it(rule, met):
    mappings = (
        "{username: {expression: claims.sub}, groups: {claim: g, prefix: ''}, "
        "extra: [{key: example.com/x, valueExpression: claims.x}]}"
    )
    text = HEAD + f'  claimMappings: {mappings}\n  userValidationRules: [{{expression: "{rule}"}}]\n'
    authenticator = compile_configuration(load_configuration(text)).authenticators[0]
    claims = GOOD | {"sub": "jane", "g": ["a"], "x": "1"}
    accepted = authenticator.accept(claims, NOW)
    assert accepted == by_steps(authenticator, claims)
    assert (accepted is not None) is met


def test_prefixes_and_extra_are_the_same_both_ways():
    text = HEAD + "  claimMappings: {username: {claim: sub, prefix: 'u:'}, groups: {claim: g, prefix: 'g:'}}\n"
    authenticator = compile_configuration(load_configuration(text)).authenticators[0]
    claims = GOOD | {"sub": "jane", "g": ["a", "b"], "jti": "7"}
    accepted = authenticator.accept(claims, NOW)
    assert accepted is not None
    assert accepted == by_steps(authenticator, claims)
    assert accepted.user.groups == ("g:a", "g:b")
    assert accepted.user.extra == {"authentication.kubernetes.io/credential-id": ("JTI=7",)}


def test_expressions_too_dear_together_are_left_to_the_steps():
    rules = "".join(
        f"  - {{expression: 'dyn(claims.l).all(x, dyn(claims.l).all(y, x != y || {n} == {n}))'}}\n" for n in range(12)
    )
    text = HEAD + "  claimMappings: {username: {expression: claims.sub}}\n  claimValidationRules:\n" + rules
    authenticator = compile_configuration(load_configuration(text)).authenticators[0]
    claims = GOOD | {"sub": "jane", "l": [float(n) for n in range(300)]}
    assert authenticator.accept(claims, NOW) is None
    assert by_steps(authenticator, claims) is None


@pytest.mark.parametrize(("length", "short"), [(30, True), (300, False)])
def test_expressions_dear_together_and_allowed_one_by_one_are_taken_all_the_same(length, short):
    """The short way has one count for all of them; the steps have one for each."""
    rules = "".join(
        f"  - {{expression: 'dyn(claims.l).all(x, dyn(claims.l).all(y, x != y || {n} == {n}))'}}\n" for n in range(3)
    )
    text = HEAD + "  claimMappings: {username: {expression: claims.sub}}\n  claimValidationRules:\n" + rules
    authenticator = compile_configuration(load_configuration(text)).authenticators[0]
    claims = GOOD | {"sub": "jane", "l": [float(n) for n in range(length)]}
    decided = by_steps(authenticator, claims)
    assert decided is not None
    assert authenticator.accept(claims, NOW) == (decided if short else None)
