"""Which lists kube-apiserver 1.37 refuses as groups and extra values (it was asked), and that `check` says so."""

from __future__ import annotations

import pytest

from kubeauthn._core.authentication.compiled import compile_claims_expression
from kubeauthn._core.authentication.hints import hints
from kubeauthn._core.authentication.list_origins import OBJECT, origin_of_value
from kubeauthn._core.authentication.load import load_configuration

SPLIT = "claims.sub.split(',')"
QUERY = "url('https://a.example/?a=b').getQuery()"
FILE = """\
apiVersion: apiserver.config.k8s.io/v1
kind: AuthenticationConfiguration
jwt:
- issuer: {url: https://issuer.example, audiences: [app]}
  claimMappings:
    username: {claim: sub, prefix: "oidc:"}
"""


def origin(expression: str) -> str:
    return origin_of_value(compile_claims_expression(expression).ast)


@pytest.mark.parametrize(
    ("maker", "expression"),
    [
        ("split", SPLIT),
        ("split", f"dyn({SPLIT})"),
        ("split", f"has(claims.a) ? ['a'] : {SPLIT}"),
        ("split", f"claims.sub == 'a' ? dyn({SPLIT}) : dyn([])"),
        ("split", f"[{SPLIT}][0]"),
        ("split", f"[{SPLIT}, ['a']][0]"),
        ("split", f"[[{SPLIT}]][0][0]"),
        ("split", f"[{SPLIT}][?0].value()"),
        ("split", f"{{'a': {SPLIT}}}['a']"),
        ("split", f"{{'a': {SPLIT}}}.a"),
        ("split", f"{{'a': {SPLIT}}}[?'a'].orValue([])"),
        ("split", f"optional.of({SPLIT}).value()"),
        ("split", f"optional.of({SPLIT}).orValue([])"),
        ("split", f"optional.ofNonZeroValue({SPLIT}).orValue([])"),
        ("split", f"optional.none().or(optional.of({SPLIT})).value()"),
        ("split", f"optional.of({SPLIT}).optMap(x, x).value()"),
        ("split", f"optional.of({SPLIT}).optFlatMap(x, optional.of(x)).value()"),
        ("split", f"[{SPLIT}].filter(x, true)[0]"),
        ("split", f"[{SPLIT}].map(x, x)[0]"),
        ("split", "['a'].map(x, x.split(','))[0]"),
        ("findAll", "claims.sub.findAll('u')"),
        ("getQuery", QUERY),
        ("getQuery", f"{QUERY}['a']"),
        ("validate", "format.dns1123Label().validate('A_').value()"),
        (OBJECT, "{'a': 'b'}"),
        (OBJECT, "{'a': claims.sub}"),
        (OBJECT, "dyn({'a': 1})"),
    ],
)
def test_refused_there_and_taken_here(maker: str, expression: str):
    assert origin(expression) == maker
    quoted = expression.replace('"', "'")
    for mapping in (
        f'groups: {{expression: "{quoted}"}}',
        f'extra: [{{key: a.example/b, valueExpression: "{quoted}"}}]',
    ):
        found = {hint.rule: hint for hint in hints(load_configuration(f"{FILE}    {mapping}\n"))}
        assert ("an object" if maker == OBJECT else f"list that {maker} makes") in found["unrecognised-list"].text
        assert "useless-type" not in found  # it is of use here


@pytest.mark.parametrize(
    "expression",
    [
        f"{SPLIT} + ['x']",
        f"['x'] + {SPLIT}",
        f"{SPLIT} + {SPLIT}",
        f"{SPLIT}.filter(x, x != '')",
        f"{SPLIT}.map(r, r)",
        f"{SPLIT}.sort()",
        f"{SPLIT}.distinct()",
        f"{SPLIT}.reverse()",
        f"{SPLIT}.slice(0, 1)",
        f"{SPLIT}[0]",
        f"{SPLIT}[?0].orValue('')",
        f"[{SPLIT}[0]]",
        "{'a': 1}.map(k, k)",
        f"{{'a': {SPLIT}}}.map(k, k)",
        "claims.groups",
        "dyn(claims.groups).map(g, 'oidc:' + g)",
    ],
)
def test_taken_by_both(expression: str):
    assert origin(expression) == ""


@pytest.mark.parametrize(
    ("maker", "expression"),
    [
        ("", "[" * 150 + SPLIT + "]" * 150 + "[0]" * 150),
        ("split", f"[{', '.join([SPLIT] * 3000)}][0]"),
        ("split", "[1].map(a, " * 20 + SPLIT + ")" * 20 + "[0]" * 20),
        ("split", f"optional.of({SPLIT})" + ".optMap(x, x)" * 10 + ".value()"),  # each is twice what is before it
    ],
    ids=["deep", "long", "loops", "doubled"],
)
def test_large_expressions_are_judged_and_deep_ones_are_not(maker: str, expression: str):
    assert origin(expression) == maker
