"""A configuration's expressions are compiled once, and its parts are where the token path looks for them."""

from __future__ import annotations

import pickle
import time

import pytest

from kubeauthn._core.authentication.compiled import compile_configuration
from kubeauthn._core.authentication.load import load_configuration
from kubeauthn.cel import CompileError
from kubeauthn.errors import AuthenticationConfigError, UsageError

CONFIG = """\
apiVersion: apiserver.config.k8s.io/v1
kind: AuthenticationConfiguration
jwt:
- issuer: {url: "https://a.example", audiences: [api]}
  claimValidationRules:
  - {claim: hd, requiredValue: example.com}
  - {expression: "claims.level > 2.0", message: level too low}
  claimMappings:
    username: {expression: "claims.name + ':a'"}
    groups: {claim: groups, prefix: ""}
    uid: {expression: claims.sub}
    extra: [{key: example.com/team, valueExpression: claims.team}]
  userValidationRules:
  - {expression: "!user.username.startsWith('system:')"}
- issuer: {url: "https://b.example", audiences: [api]}
  claimMappings: {username: {claim: sub, prefix: "b:"}}
"""


def test_programs_stand_where_they_are_used():
    compiled = compile_configuration(load_configuration(CONFIG))
    first, second = compiled.authenticators
    assert compiled.by_issuer == {"https://a.example": first, "https://b.example": second}
    assert [rule.program is None for rule in first.claim_rules] == [True, False]
    assert first.claim_rules[1].program(claims={"level": 3.0}) is True
    assert first.username(claims={"name": "jane"}) == "jane:a"
    assert first.groups is None
    assert first.uid(claims={"sub": "1"}) == "1"
    assert [extra.key for extra in first.extra] == ["example.com/team"]
    assert first.user_rules[0].program(user={"username": "system:x"}) is False
    assert (second.index, second.username, second.claim_rules) == (1, None, ())


def test_an_expression_is_compiled_once():
    config = load_configuration(CONFIG)
    assert compile_configuration(config).authenticators[0].username is (
        compile_configuration(load_configuration(CONFIG)).authenticators[0].username
    )


def test_an_older_kubernetes_has_fewer_functions():
    text = CONFIG.replace("claims.name + ':a'", "isIP('1.2.3.4') ? 'a' : 'b'")
    load_configuration(text)
    with pytest.raises(AuthenticationConfigError):
        load_configuration(text, kubernetes="1.28")


@pytest.mark.parametrize(
    ("kubernetes", "change", "fault"),
    [
        ("1.28", ("io/v1\n", "io/v1alpha1\n"), "no kind"),
        ("1.29", ("io/v1\n", "io/v1beta1\n"), "no kind"),
        ("1.33", ("io/v1\n", "io/v1\n"), "no kind"),
        ("1.29", ("io/v1\n", "io/v1alpha1\n"), "jwt: Too many: 2: must have at most 1 items"),
        ("1.30", ("io/v1\njwt", "io/v1beta1\nanonymous: {enabled: true}\njwt"), 'unknown field "anonymous"'),
    ],
)
def test_an_older_kubernetes_knows_less_of_the_file(kubernetes, change, fault):
    head, rest = CONFIG.split("kind: AuthenticationConfiguration\n")
    text = f"kind: AuthenticationConfiguration\n{head}{rest}".replace(*change)
    load_configuration(text)
    with pytest.raises(AuthenticationConfigError) as caught:
        load_configuration(text, kubernetes=kubernetes)
    assert fault in str(caught.value)


def test_a_rule_counts_from_the_release_that_has_it():
    text = CONFIG.replace("io/v1\n", "io/v1beta1\n").replace("example.com/team", "x.k8s.io/team")
    load_configuration(text, kubernetes="1.31")
    with pytest.raises(AuthenticationConfigError):
        load_configuration(text, kubernetes="1.32")


@pytest.mark.parametrize("name", ["1.27", "1.38", "2.30", "1.x", "", "1.³0"])
def test_a_release_that_is_not_known_is_a_usage_error(name):
    with pytest.raises(UsageError):
        load_configuration(CONFIG, kubernetes=name)


def test_what_validation_would_refuse_does_not_compile():
    config = load_configuration(CONFIG)
    broken = type(config)(config.api_version, tuple(_with_username(entry, "1 +") for entry in config.jwt))
    with pytest.raises(CompileError):
        compile_configuration(broken)


def _with_username(entry, expression):
    from kubeauthn._core.record import replace

    username = replace(entry.claim_mappings.username, expression=expression)
    return replace(entry, claim_mappings=replace(entry.claim_mappings, username=username))


def test_a_configuration_and_its_error_go_from_process_to_process():
    config = load_configuration(CONFIG)
    assert pickle.loads(pickle.dumps(config)) == config  # noqa: S301  our own bytes
    with pytest.raises(AuthenticationConfigError) as caught:
        load_configuration(CONFIG.replace("https://b", "http://b"))
    again = pickle.loads(pickle.dumps(caught.value))  # noqa: S301  our own bytes
    assert again.errors == caught.value.errors


def test_checking_takes_time_in_proportion_to_the_file():
    """Sixteen times the entries may not take a hundred times as long: nothing compares each entry with each other."""

    def seconds(entries: int) -> float:
        lines = [
            f'- issuer: {{url: "https://i{n}.example", audiences: [api]}}\n'
            f"  claimMappings: {{username: {{expression: 'claims.sub + \":{entries}-{n}\"'}}}}\n"
            for n in range(entries)
        ]
        text = CONFIG.partition("jwt:\n")[0] + "jwt:\n" + "".join(lines)
        best = float("inf")
        for _ in range(3):
            start = time.perf_counter()
            load_configuration(text)
            best = min(best, time.perf_counter() - start)
        return best

    few = seconds(4)
    assert seconds(64) < few * 100 + 0.05
