"""Every rule of a configuration, with the text that Kubernetes prints when it is broken."""

from __future__ import annotations

import json
from copy import deepcopy
from typing import Any

import pytest

from kubeauthn._core.authentication.load import load_configuration
from kubeauthn.errors import AuthenticationConfigError
from kubeauthn.testing import CertificateAuthority

ENTRY: dict[str, Any] = {
    "issuer": {"url": "https://issuer.example", "audiences": ["api"]},
    "claimMappings": {"username": {"claim": "sub", "prefix": ""}},
}
EMAIL = (
    "claims.email_verified must be used in claimMappings.username.expression or claimMappings.extra[*].valueExpression "
    "or claimValidationRules[*].expression when claims.email is used in claimMappings.username.expression"
)
RESERVED = "k8s.io, kubernetes.io and their subdomains are reserved for Kubernetes use"
DOMAIN = 'must be a domain-prefixed path (such as "acme.io/foo")'


def text_of(*entries: dict[str, Any], **rest: Any) -> str:
    head = {"apiVersion": "apiserver.config.k8s.io/v1", "kind": "AuthenticationConfiguration"}
    return json.dumps({**head, "jwt": list(entries), **rest})


def entry(issuer: dict[str, Any] | None = None, mappings: dict[str, Any] | None = None, **rest: Any) -> dict[str, Any]:
    changed = deepcopy(ENTRY)
    changed["issuer"].update(issuer or {})
    changed["claimMappings"].update(mappings or {})
    return {**changed, **rest}


def faults(text: str, disallowed: tuple[str, ...] = ()) -> list[str]:
    try:
        load_configuration(text, disallowed)
    except AuthenticationConfigError as error:
        return [fault.text for fault in error.errors]
    return []


ISSUER_FAULTS: list[tuple[dict[str, Any], list[str]]] = [
    ({"url": ""}, ["url: Required value"]),
    ({"url": "http://x"}, ['url: Invalid value: "http://x": URL scheme must be https']),
    ({"url": "https://u@x"}, ['url: Invalid value: "https://u@x": URL must not contain a username or password']),
    ({"url": "https://x?q"}, ['url: Invalid value: "https://x?q": URL must not contain a query']),
    ({"url": "https://x#f"}, ['url: Invalid value: "https://x#f": URL must not contain a fragment']),
    ({"url": "https://x:y"}, ['url: Invalid value: "https://x:y": parse "https://x:y": invalid port ":y" after host']),
    (
        {"discoveryURL": "https://issuer.example//"},
        ['discoveryURL: Invalid value: "https://issuer.example//": discoveryURL must be different from URL'],
    ),
    ({"discoveryURL": "http://d"}, ['discoveryURL: Invalid value: "http://d": URL scheme must be https']),
    ({"audiences": []}, ["audiences: Required value: at least one jwt[0].issuer.audiences is required"]),
    ({"audiences": [""]}, ["audiences[0]: Required value"]),
    (
        {"audiences": ["a", "a"], "audienceMatchPolicy": "MatchAny"},
        ['audiences[1]: Duplicate value: "a"'],
    ),
    (
        {"audiences": ["a", "b"]},
        ['audienceMatchPolicy: Invalid value: "": audienceMatchPolicy must be MatchAny for multiple audiences'],
    ),
    (
        {"audienceMatchPolicy": "<All>"},
        [
            'audienceMatchPolicy: Invalid value: "\\u003cAll\\u003e": audienceMatchPolicy must be empty or MatchAny '
            "for single audience"
        ],
    ),
    (
        {"certificateAuthority": "/etc/ssl/ca.pem"},
        ['certificateAuthority: Invalid value: "<omitted>": data does not contain any valid RSA or ECDSA certificates'],
    ),
    (
        {"certificateAuthority": "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n"},
        ['certificateAuthority: Invalid value: "<omitted>": x509: malformed certificate'],
    ),
    (
        {"egressSelectorType": "etcd"},
        ['egressSelectorType: Invalid value: "etcd": egress selector must be either controlplane or cluster'],
    ),
]


@pytest.mark.parametrize(("issuer", "expected"), ISSUER_FAULTS)
def test_issuer(issuer, expected):
    assert faults(text_of(entry(issuer))) == [f"jwt[0].issuer.{text}" for text in expected]


def test_good_issuers():
    ca = CertificateAuthority("ca").certificate_pem.decode()
    good = [
        {"audiences": ["a", "b"], "audienceMatchPolicy": "MatchAny"},
        {"audienceMatchPolicy": "MatchAny"},
        {"discoveryURL": "https://internal.example/.well-known/openid-configuration"},
        {"certificateAuthority": f"a comment\n{ca}\n-----BEGIN OTHER-----\nAAAA\n-----END OTHER-----\n"},
        {"egressSelectorType": "cluster"},
        {"url": "https://x/?"},
    ]
    assert [faults(text_of(entry(issuer))) for issuer in good] == [[]] * len(good)


def test_issuers_and_discovery_urls_are_unique():
    first = entry({"discoveryURL": "https://d"})
    assert faults(text_of(first, first)) == [
        'jwt[1].issuer.url: Duplicate value: "https://issuer.example"',
        'jwt[1].issuer.discoveryURL: Duplicate value: "https://d"',
    ]
    assert faults(text_of(first, entry({"url": "https://issuer.example/"}))) == []


def test_disallowed_issuers_are_listed_in_order():
    assert faults(text_of(ENTRY), ("https://z", "https://issuer.example")) == [
        'jwt[0].issuer.url: Invalid value: "https://issuer.example": URL must not overlap with disallowed issuers: '
        "[https://issuer.example https://z]"
    ]


def test_at_most_64_authenticators():
    entries = [entry({"url": f"https://issuer{n}.example"}) for n in range(65)]
    assert faults(text_of(*entries[:64])) == []
    assert faults(text_of(*entries)) == ["jwt: Too many: 65: must have at most 64 items"]
    assert faults(text_of()) == []


@pytest.mark.parametrize(
    ("rules", "expected"),
    [
        ([{"claim": "a"}], []),
        ([{"claim": "a", "requiredValue": "v"}, {"expression": "claims.b == 'c'", "message": "m"}], []),
        (
            [{"claim": "a", "expression": "true"}],
            ['[0]: Invalid value: "a": claim and expression can\'t both be set'],
        ),
        ([{}], ["[0]: Required value: claim or expression is required"]),
        (
            [{"claim": "a", "message": "m"}],
            ['[0].message: Invalid value: "m": may not be specified when claim is set'],
        ),
        (
            [{"expression": "true", "requiredValue": "v"}],
            ['[0].requiredValue: Invalid value: "v": may not be specified when expression is set'],
        ),
        ([{"claim": "a"}, {"claim": "a"}], ['[1].claim: Duplicate value: "a"']),
        ([{"expression": "true"}, {"expression": "true"}], ['[1].expression: Duplicate value: "true"']),
        ([{"expression": "claims.x"}], ['[0].expression: Invalid value: "claims.x": must evaluate to bool']),
        (
            [{"expression": "x"}],
            [
                '[0].expression: Invalid value: "x": compilation failed: ERROR: <input>:1:1: undeclared reference to '
                "'x' (in container '')\n | x\n | ^"
            ],
        ),
    ],
)
def test_claim_rules(rules, expected):
    found = faults(text_of(entry(claimValidationRules=rules)))
    assert found == [f"jwt[0].claimValidationRules{text}" for text in expected]


@pytest.mark.parametrize(
    ("mappings", "expected"),
    [
        ({"username": {}}, ["username: Required value: claim or expression is required"]),
        (
            {"username": {"claim": "a", "expression": "'b'"}},
            ['username: Invalid value: "": claim and expression can\'t both be set'],
        ),
        (
            {"groups": {"claim": "g"}},
            [
                "groups.prefix: Required value: prefix is required when claim is set. It can be set to an empty string "
                "to disable prefixing"
            ],
        ),
        (
            {"groups": {"expression": "claims.g", "prefix": ""}},
            ['groups.prefix: Invalid value: "": may not be specified when expression is set'],
        ),
        ({"groups": {"prefix": "alone"}}, []),
        (
            {"uid": {"claim": "a", "expression": "'b'"}},
            ['uid: Invalid value: "": claim and expression can\'t both be set'],
        ),
        ({"uid": {"claim": "a"}}, []),
        ({"extra": [{"key": "", "valueExpression": "'x'"}]}, ["extra[0].key: Required value"]),
        (
            {"extra": [{"key": "foo", "valueExpression": "'x'"}]},
            [f'extra[0].key: Invalid value: "foo": {DOMAIN}'],
        ),
        (
            {"extra": [{"key": "a.io/Foo", "valueExpression": "'x'"}]},
            ['extra[0].key: Invalid value: "a.io/Foo": must be lowercase'],
        ),
        (
            {"extra": [{"key": "x.k8s.io/foo", "valueExpression": "'x'"}]},
            [f'extra[0].key: Invalid value: "x.k8s.io/foo": {RESERVED}'],
        ),
        ({"extra": [{"key": "notk8s.io/foo", "valueExpression": "'x'"}]}, []),
        ({"extra": [{"key": "a.io/foo"}]}, ["extra[0].valueExpression: Required value"]),
        (
            {"extra": [{"key": "a.io/foo", "valueExpression": "'x'"}, {"key": "a.io/foo"}]},
            ['extra[1].key: Duplicate value: "a.io/foo"'],
        ),
        (
            {"extra": [{"key": "a.io/a b", "valueExpression": "'x'"}]},
            [
                'extra[0].key: Invalid value: "a b": Invalid path (regex used for validation is '
                "'[A-Za-z0-9/\\-._~%!$&'()*+,;=:]+')"
            ],
        ),
    ],
)
def test_mappings(mappings, expected):
    assert faults(text_of(entry(mappings=mappings))) == [f"jwt[0].claimMappings.{text}" for text in expected]


@pytest.mark.parametrize(
    ("username", "rest", "is_fault"),
    [
        ("claims.email", {}, True),
        ("claims.?email.orValue('x')", {}, True),
        ("[claims.email].map(x, x)[0]", {}, True),
        ("claims['email']", {}, False),
        ("claims.email_verified ? claims.email : 'x'", {}, False),
        ("claims.?email_verified.orValue(true) == true ? claims.email : 'x'", {}, False),
        ("claims.email", {"claimValidationRules": [{"expression": "claims.email_verified == true"}]}, False),
        ("claims.email", {"claimValidationRules": [{"claim": "email_verified", "requiredValue": "true"}]}, True),
        ("claims.email", {"userValidationRules": [{"expression": "user.username != ''"}]}, True),
    ],
)
def test_an_email_as_user_name_asks_whether_it_is_verified(username, rest, is_fault):
    text = text_of(entry(mappings={"username": {"expression": username}}, **rest))
    fault = f"jwt[0].claimMappings.username.expression: Invalid value: {json.dumps(username)}: {EMAIL}"
    assert faults(text) == ([fault] if is_fault else [])


def test_an_extra_that_looks_at_email_verified_counts_and_a_uid_does_not():
    extra = {"extra": [{"key": "a.io/v", "valueExpression": "string(claims.email_verified)"}]}
    assert faults(text_of(entry(mappings={"username": {"expression": "claims.email"}, **extra}))) == []
    uid = {"uid": {"expression": "string(claims.email_verified)"}}
    assert len(faults(text_of(entry(mappings={"username": {"expression": "claims.email"}, **uid})))) == 1


@pytest.mark.parametrize(
    ("rules", "expected"),
    [
        ([{"expression": "user.username != ''", "message": "m"}], []),
        ([{}], ["[0].expression: Required value"]),
        ([{"expression": "true"}, {"expression": "true"}], ['[1].expression: Duplicate value: "true"']),
        (
            [{"expression": "user.username"}],
            ['[0].expression: Invalid value: "user.username": must evaluate to bool'],
        ),
    ],
)
def test_user_rules(rules, expected):
    found = faults(text_of(entry(userValidationRules=rules)))
    assert found == [f"jwt[0].userValidationRules{text}" for text in expected]


def test_anonymous_conditions_need_enabled():
    assert faults(text_of(anonymous={"enabled": False, "conditions": [{"path": "/a&b"}, {}]})) == [
        'anonymous.conditions: Invalid value: [{"Path":"/a\\u0026b"},{"Path":""}]: enabled should be set to true when '
        "conditions are defined"
    ]
    assert faults(text_of(anonymous={"conditions": []})) == []


def test_all_faults_come_at_once_in_order_each_with_its_place():
    text = """\
apiVersion: apiserver.config.k8s.io/v1
kind: AuthenticationConfiguration
jwt:
- issuer:
    url: http://issuer.example
    audiences: [a, a]
    audienceMatchPolicy: MatchAny
  claimMappings:
    username:
      claim: sub
    extra:
    - key: foo
      valueExpression: 1 +
"""
    with pytest.raises(AuthenticationConfigError) as caught:
        load_configuration(text)
    found = [(fault.field, fault.line, fault.column, fault.kind) for fault in caught.value.errors]
    assert found == [
        ("jwt[0].issuer.url", 5, 5, "validation"),
        ("jwt[0].issuer.audiences[1]", 6, 20, "validation"),
        ("jwt[0].claimMappings.username.prefix", 9, 5, "validation"),  # absent: the place of what should hold it
        ("jwt[0].claimMappings.extra[0].key", 12, 7, "validation"),
        ("jwt[0].claimMappings.extra[0].valueExpression", 13, 7, "expression"),
    ]
    assert str(caught.value).splitlines()[0] == str(caught.value.errors[0]).partition(" ")[2]
