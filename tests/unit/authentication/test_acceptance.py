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
from kubeauthn._core.authentication.verdict import UserInfo
from kubeauthn.errors import AuthenticationConfigError, TokenError

RECORDED = Path(__file__).parents[2] / "recorded" / "authn.jsonl"
HEAD = """\
apiVersion: apiserver.config.k8s.io/v1
kind: AuthenticationConfiguration
jwt:
- issuer: {url: https://issuer.example, audiences: [app]}
"""


def by_steps(authenticator, claims):
    run = Expressions({"claims": claims})
    try:
        check_claim_rules(authenticator, claims, run)
        user = run.variables["user"] = map_user(authenticator, claims, run)
        check_user_rules(authenticator, run)
    except TokenError:
        return None
    return UserInfo.of(user)


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
        accepted = authenticator.accept(claims)
        expected = by_steps(authenticator, claims)
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
    authenticator = compile_configuration(load_configuration(HEAD + f"  claimMappings: {mappings}\n")).authenticators[0]
    assert authenticator.accept(claims) is None
    assert by_steps(authenticator, claims) is None


def test_prefixes_and_extra_are_the_same_both_ways():
    text = HEAD + "  claimMappings: {username: {claim: sub, prefix: 'u:'}, groups: {claim: g, prefix: 'g:'}}\n"
    authenticator = compile_configuration(load_configuration(text)).authenticators[0]
    claims = {"sub": "jane", "g": ["a", "b"], "jti": "7"}
    accepted = authenticator.accept(claims)
    assert accepted is not None
    assert accepted == by_steps(authenticator, claims)
    assert accepted.groups == ("g:a", "g:b")
    assert accepted.extra == {"authentication.kubernetes.io/credential-id": ("JTI=7",)}


def test_expressions_too_dear_together_are_left_to_the_steps():
    rules = "".join(
        f"  - {{expression: 'dyn(claims.l).all(x, dyn(claims.l).all(y, x != y || {n} == {n}))'}}\n" for n in range(12)
    )
    text = HEAD + "  claimMappings: {username: {expression: claims.sub}}\n  claimValidationRules:\n" + rules
    authenticator = compile_configuration(load_configuration(text)).authenticators[0]
    claims = {"sub": "jane", "l": [float(n) for n in range(300)]}
    assert authenticator.accept(claims) is None
    assert by_steps(authenticator, claims) is None
