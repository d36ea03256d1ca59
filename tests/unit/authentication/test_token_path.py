"""The path of a token: who it is, or why not."""

from __future__ import annotations

import asyncio
import copy
import json
import pickle

import pytest

from kubeauthn import errors
from kubeauthn._core.authentication.authenticate import VerifiedClaims
from kubeauthn._core.authentication.go_time import LARGEST_SECONDS, go_time
from kubeauthn.server import Authenticator, UserInfo, load_configuration

from .conftest import part


def refusal(authenticator, token, now=None):
    with pytest.raises(errors.TokenError) as refused:
        authenticator.authenticate(token, now)
    return refused.value


def test_a_user(bench):
    authenticator = bench.authenticator(
        groups={"claim": "groups", "prefix": "oidc:"},
        uid={"claim": "sub"},
        extra=[{"key": "example.com/tenant", "valueExpression": "claims.tenant"}],
    )
    user = authenticator.authenticate(bench.token(groups=["a", "b"], sub="s", tenant="t", jti="j"))
    assert user == UserInfo(
        "jane", "s", ("oidc:a", "oidc:b"),
        {"authentication.kubernetes.io/credential-id": ("JTI=j",), "example.com/tenant": ("t",)},
    )  # fmt: skip
    with pytest.raises(TypeError):
        user.extra["example.com/tenant"] = ("admin",)
    assert asyncio.run(authenticator.authenticate_async(bench.token(sub="s", tenant="t"))).username == "jane"


def test_not_mine(bench):
    authenticator = bench.authenticator()
    for token in (bench.token(iss="https://other.example"), bench.token(iss=...), "opaque", "", "a.b.c"):
        with pytest.raises(errors.NotMine):
            authenticator.authenticate(token)


def test_googles_issuer_without_scheme(bench):
    import yaml

    from kubeauthn.server import load_configuration

    config = load_configuration(
        yaml.safe_dump(
            {
                "apiVersion": "apiserver.config.k8s.io/v1",
                "kind": "AuthenticationConfiguration",
                "jwt": [
                    {
                        "issuer": {"url": "https://accounts.google.com", "audiences": ["app"]},
                        "claimMappings": {"username": {"claim": "username", "prefix": ""}},
                    }
                ],
            }
        )
    )
    authenticator = Authenticator(config, keys={"https://accounts.google.com": bench.jwks})
    assert authenticator.authenticate(bench.token(iss="accounts.google.com"), bench.now).username == "jane"


def test_an_issuer_without_keys(bench):
    authenticator = Authenticator(bench.authenticator().configuration, keys={})
    error = refusal(authenticator, bench.token())
    assert type(error) is errors.KeysUnavailable
    assert str(error) == "oidc: authenticator not initialized"
    assert error.issuer == bench.url
    with pytest.raises(errors.KeysUnavailable):
        asyncio.run(authenticator.authenticate_async(bench.token()))


@pytest.mark.parametrize(
    ("aud", "audiences", "says"),
    [
        ("other", ["app"], 'expected audience "app" got ["other"]'),
        (["x", "y"], ["app"], 'expected audience "app" got ["x" "y"]'),
        (..., ["app"], 'expected audience "app" got []'),
        (None, ["app", "b"], 'expected audience in ["app" "b"] got [""]'),
        ([], ["b", "app"], 'expected audience in ["app" "b"] got []'),
    ],
)
def test_audiences(bench, aud, audiences, says):
    error = refusal(bench.authenticator(audiences=audiences), bench.token(aud=aud))
    assert str(error) == f"oidc: verify token: oidc: {says}"
    assert type(error) is errors.AudienceRefused
    assert error.rule == "jwt[0].issuer.audiences"


def test_any_audience_will_do(bench):
    assert bench.authenticator(audiences=["app", "b"]).authenticate(bench.token(aud=["x", "b"])).username == "jane"


def test_null_among_the_audiences_is_an_empty_one(bench):
    """As in Go."""
    assert bench.authenticator().authenticate(bench.token(aud=[None, "app"])).username == "jane"
    assert str(refusal(bench.authenticator(), bench.token(aud=[None]))).endswith('expected audience "app" got [""]')


@pytest.mark.parametrize(
    ("headers", "hint"),
    [
        ({"kid": "new"}, "the issuer's key set has no key with the kid that the token names"),
        ({"kid": "e1"}, "no key of the issuer is one for RS256"),
        ({"kid": "k1", "alg": "RS384"}, "the signature is not of the issuer's keys, or the token was changed"),
    ],
)
def test_what_is_probably_wrong_with_a_signature(bench, headers, hint):
    _, payload, signature = bench.token().split(".")
    forged = f"{part({'alg': 'RS256', **headers})}.{payload}.{signature}"
    assert refusal(bench.authenticator(), forged).hint == hint


def test_times(bench):
    authenticator = bench.authenticator()
    assert authenticator.authenticate(bench.token(exp=bench.now + 1))
    assert authenticator.authenticate(bench.token(exp=bench.now + 1.9))
    assert authenticator.authenticate(bench.token(exp=1e18))
    assert authenticator.authenticate(bench.token(nbf=bench.now + 60))
    assert type(refusal(authenticator, bench.token(nbf=bench.now + 61))) is errors.TokenNotYetValid
    for exp in (bench.now, bench.now - 1, bench.now + 0.9, 0, -1, -1e18, 2**63, 1e300):
        assert type(refusal(authenticator, bench.token(exp=exp))) is errors.TokenExpired
    assert "0001-01-01 00:00:00 +0000 UTC" in str(refusal(authenticator, bench.token(exp=...)))
    assert "2023-11-14 22:13:20 +0000 UTC" in str(refusal(authenticator, bench.token(exp=bench.now)))


@pytest.mark.parametrize(
    ("name", "seconds", "printed"),
    [
        ("exp", LARGEST_SECONDS, ""),
        ("exp", LARGEST_SECONDS + 1, "292277024627-12-06 15:30:08"),  # as a double it is the same as the one before
        ("exp", 2**63 - 1, "292277026596-12-04 15:30:07"),
        ("exp", -(2**53) - 1, "-285424812-02-20 16:23:27"),
        ("nbf", LARGEST_SECONDS, "292277024627-12-06 15:30:07"),
        ("nbf", LARGEST_SECONDS + 1, ""),  # Go's time has wrapped: it was long ago
        ("nbf", -LARGEST_SECONDS - 1, ""),
        ("nbf", 2**53 + 1, "285428751-11-12 07:36:33"),
    ],
)
def test_whole_seconds_are_read_in_64_bits_as_go_reads_them(bench, name, seconds, printed):
    authenticator, token = bench.authenticator(), bench.token(**{name: seconds})
    step = next(step for step in authenticator.explain(token, now=bench.now).steps if step.name == "times")
    assert step.inputs[name] == go_time(seconds)
    if not printed:
        assert authenticator.authenticate(token).username == "jane"
        assert step.outcome == "passed"
    else:
        error = refusal(authenticator, token)
        assert type(error) is (errors.TokenExpired if name == "exp" else errors.TokenNotYetValid)
        assert str(error).removesuffix(")").endswith(f": {printed} +0000 UTC")
        assert step.detail == str(error)


def test_the_last_of_times_given_twice_counts_in_64_bits_too(bench):
    twice = '{"iss": "https://issuer.example", "aud": "app", "exp": %d, "exp": %d, "username": "jane\\ud800"}'
    authenticator = bench.authenticator()
    late, too_late = LARGEST_SECONDS, LARGEST_SECONDS + 1
    assert authenticator.authenticate(bench.raw_token(twice % (too_late, late))).username == "jane\ufffd"
    assert type(refusal(authenticator, bench.raw_token(twice % (late, too_late)))) is errors.TokenExpired


def test_a_verdict_ends_with_its_token(bench):
    assert bench.authenticator().decide(bench.token(exp=bench.now + 5)).expires_at == bench.now + 5


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0, "1970-01-01 00:00:00 +0000 UTC"),
        (1.5, "1970-01-01 00:00:01.5 +0000 UTC"),
        (951782400, "2000-02-29 00:00:00 +0000 UTC"),
        (253402300800, "10000-01-01 00:00:00 +0000 UTC"),
        (-62135596800, "0001-01-01 00:00:00 +0000 UTC"),
        (2**63, "292277026596-12-04 15:30:08 +0000 UTC"),
        (-(2**64), "292277026596-12-04 15:30:08 +0000 UTC"),
        (1e300, "292277026596-12-04 15:30:08 +0000 UTC"),
        (-(2**63) + 1, "292277026596-12-04 15:30:09 +0000 UTC"),
        (-9223372028741760000, "-292277022400-03-01 00:00:00 +0000 UTC"),
        (-9223372028741760001, "292277026854-01-07 07:00:15 +0000 UTC"),
    ],
)
def test_times_are_printed_as_go_prints_them(seconds, text):
    assert go_time(seconds) == text


@pytest.mark.parametrize(
    ("name", "value", "says"),
    [
        ("exp", "4102444800", "cannot unmarshal string into Go struct field idToken.exp of type json.Number"),
        ("exp", True, "cannot unmarshal bool into Go struct field idToken.exp of type json.Number"),
        ("exp", None, 'strconv.ParseFloat: parsing "": invalid syntax'),
        ("iat", {}, "cannot unmarshal object into Go struct field idToken.iat of type json.Number"),
        ("nbf", [], "cannot unmarshal array into Go struct field idToken.nbf of type json.Number"),
        ("sub", 5, "cannot unmarshal number into Go struct field idToken.sub of type string"),
        ("nonce", 5, "cannot unmarshal number into Go struct field idToken.nonce of type string"),
        ("aud", 5, "cannot unmarshal number into Go struct field idToken.aud of type []string"),
        ("aud", ["app", 5], "cannot unmarshal number into Go struct field idToken.aud of type string"),
        ("_claim_names", "x", "cannot unmarshal string into Go struct field idToken._claim_names of type map"),
        (
            "_claim_sources",
            {"s": {"endpoint": 5}},
            "cannot unmarshal number into Go struct field claimSource._claim_sources.endpoint of type string",
        ),
        (
            "_claim_sources",
            {"s": {"endpoint": "https://s", "access_token": []}},
            "cannot unmarshal array into Go struct field claimSource._claim_sources.access_token of type string",
        ),
    ],
)
def test_registered_claims_of_the_wrong_type(bench, name, value, says):
    error = refusal(bench.authenticator(), bench.token(**{name: value}))
    assert says in str(error)
    assert type(error) is errors.MalformedToken


def test_a_source_whose_token_is_no_text_spoils_the_claim_of_the_groups_as_in_kubernetes(bench):
    by_claim = bench.authenticator(groups={"claim": "groups", "prefix": ""})
    sources = {"_claim_names": {"groups": "s"}, "_claim_sources": {"s": {"JWT": 5}}}
    error = refusal(by_claim, bench.token(**sources))
    assert type(error) is errors.ClaimUnavailable
    assert str(error) == (
        "oidc: could not expand distributed claims: oidc: could not parse claim sources: "
        "json: cannot unmarshal number into Go struct field endpoint.JWT of type string"
    )
    assert bench.authenticator().authenticate(bench.token(**sources), now=bench.now).groups == ()
    assert by_claim.authenticate(bench.token(**sources, groups=["g"]), now=bench.now).groups == ("g",)


def test_a_claim_of_a_token_in_the_token_that_cannot_be_read_is_of_the_wrong_type(bench):
    authenticator = bench.authenticator(groups={"claim": "groups", "prefix": ""})
    inner = bench.raw_token(json.dumps(bench.claims())[:-1] + ', "groups": [1e400]}')
    token = bench.token(_claim_names={"groups": "s"}, _claim_sources={"s": {"JWT": inner}})
    said = 'oidc: parse groups claim "groups": json: cannot unmarshal array into Go value of type string'
    assert str(refusal(authenticator, token)) == said
    assert authenticator.explain(token, now=bench.now).reason == said
    by_expression = bench.authenticator(groups={"expression": "dyn(claims.groups)"})
    assert 'claim "groups" failed to unmarshal' in str(refusal(by_expression, token))


def test_a_number_too_large_in_the_sources_harms_nothing_where_nobody_reads_it(bench):
    authenticator = bench.authenticator(groups={"claim": "groups", "prefix": ""})
    inner = bench.token(groups=["g"])
    sources = f'"_claim_names": {{"groups": "s"}}, "_claim_sources": {{"s": {{"JWT": "{inner}", "n": 1e400}}}}'
    token = bench.raw_token(f"{json.dumps(bench.claims())[:-1]}, {sources}}}")
    assert authenticator.authenticate(token, now=bench.now).groups == ("g",)


def test_a_time_of_the_wrong_type_is_named_before_other_claims(bench):
    said = str(refusal(bench.authenticator(), bench.token(sub=5, exp={})))
    assert said.endswith("json: cannot unmarshal object into Go struct field idToken.exp of type json.Number")
    said = str(refusal(bench.authenticator(), bench.token(sub=5, nonce=1)))
    assert said.endswith("json: cannot unmarshal number into Go struct field idToken.sub of type string")


def test_claim_rules(bench):
    authenticator = bench.authenticator(
        rules=[
            {"claim": "hd", "requiredValue": "example.com"},
            {"expression": "claims.level >= 2.0", "message": "level is too low"},
        ]
    )
    assert authenticator.authenticate(bench.token(hd="example.com", level=2))
    error = refusal(authenticator, bench.token(hd="secret.example", level=2))
    assert str(error) == "oidc: required claim hd value does not match. Got = secret.example, want = example.com"
    assert error.rule == "jwt[0].claimValidationRules[0]"
    assert "secret" not in error.public_message
    assert str(refusal(authenticator, bench.token(level=2))) == "oidc: required claim hd not present in ID token"
    error = refusal(authenticator, bench.token(hd="example.com", level=1))
    assert str(error) == (
        "oidc: error evaluating claim validation expression: "
        "validation expression 'claims.level >= 2.0' failed: level is too low"
    )
    assert error.rule == "jwt[0].claimValidationRules[1]"
    assert "level" not in error.public_message
    error = refusal(authenticator, bench.token(hd="example.com"))
    assert str(error) == (
        "oidc: error evaluating claim validation expression: "
        "expression 'claims.level >= 2.0' resulted in error: no such key: level"
    )


def test_of_several_unmet_rules_the_one_that_kubernetes_names_is_reported(bench):
    rules = [
        {"expression": "claims.level >= 2.0", "message": "level is too low"},
        {"expression": "claims.team == 'a'"},
        {"claim": "hd", "requiredValue": "example.com"},
    ]
    authenticator = bench.authenticator(rules=rules)
    assert refusal(authenticator, bench.token(level=1)).rule == "jwt[0].claimValidationRules[2]"
    assert refusal(authenticator, bench.token(level=1, hd="example.com")).rule == "jwt[0].claimValidationRules[1]"
    both_false = bench.token(level=1, hd="example.com", team="b")
    assert refusal(authenticator, both_false).rule == "jwt[0].claimValidationRules[0]"
    user_rules = [{"expression": "user.username == 'x'"}, {"expression": "user.extra['none'] == []"}]
    of_user = bench.authenticator(user_rules=user_rules)
    assert refusal(of_user, bench.token()).rule == "jwt[0].userValidationRules[1]"


def test_rules_come_before_mappings(bench):
    authenticator = bench.authenticator(rules=[{"claim": "hd", "requiredValue": "x"}])
    assert type(refusal(authenticator, bench.token(username=5))) is errors.ClaimRefused


def test_user_rules(bench):
    authenticator = bench.authenticator(
        user_rules=[{"expression": "!user.username.startsWith('system:')", "message": "reserved"}]
    )
    error = refusal(authenticator, bench.token(username="system:admin"))
    assert type(error) is errors.UserRefused
    assert error.rule == "jwt[0].userValidationRules[0]"
    assert str(error).endswith("validation expression '!user.username.startsWith('system:')' failed: reserved")


@pytest.mark.parametrize("username", ["", None])
@pytest.mark.parametrize("prefix", ["", "oidc:"])
def test_an_empty_name_is_no_name(bench, username, prefix):
    authenticator = bench.authenticator(username={"claim": "username", "prefix": prefix})
    assert type(refusal(authenticator, bench.token(username=username))) is errors.MappingFailed


@pytest.mark.parametrize(
    ("verified", "says"),
    [
        (False, "oidc: email not verified"),
        (None, "oidc: email not verified"),
        ("true", "oidc: parse 'email_verified' claim: json: cannot unmarshal string into Go value of type bool"),
    ],
)
def test_an_address_must_be_verified(bench, verified, says):
    authenticator = bench.authenticator(username={"claim": "email", "prefix": ""})
    assert str(refusal(authenticator, bench.token(email="j@x", email_verified=verified))) == says
    assert authenticator.authenticate(bench.token(email="j@x")).username == "j@x"
    assert authenticator.authenticate(bench.token(email="j@x", email_verified=True)).username == "j@x"


@pytest.mark.parametrize(
    ("expression", "groups"),
    [
        ("claims.roles.split(',')", ("a", "b")),
        ("claims.roles", ("a,b",)),
        ("claims.none", ()),
        ("['x', '', 'y']", ("x", "y")),
        ("dyn([])", ()),
        ("claims.named", ("k", "l")),
        ("claims.named.l", ()),
    ],
)
def test_groups_by_expression(bench, expression, groups):
    authenticator = bench.authenticator(groups={"expression": expression})
    token = bench.token(roles="a,b", none=None, named={"k": 1, "": 2, "l": {}})
    assert authenticator.authenticate(token).groups == groups


@pytest.mark.parametrize("expression", ["{1: 'a'}", "claims", "dyn(claims)", "[claims.named]"])
def test_groups_by_an_expression_that_has_no_names(bench, expression):
    authenticator = bench.authenticator(groups={"expression": expression})
    assert type(refusal(authenticator, bench.token(named={"k": 1}))) is errors.MappingFailed


def test_an_object_is_no_groups_claim(bench):
    authenticator = bench.authenticator(groups={"claim": "g", "prefix": ""})
    assert type(refusal(authenticator, bench.token(g={"k": "v"}))) is errors.MappingFailed


@pytest.mark.parametrize("value", [5, ["a", 1], [["a"]], True])
def test_groups_that_are_no_texts(bench, value):
    by_claim = bench.authenticator(groups={"claim": "g", "prefix": ""})
    by_expression = bench.authenticator(groups={"expression": "claims.g"})
    for authenticator in (by_claim, by_expression):
        assert type(refusal(authenticator, bench.token(g=value))) is errors.MappingFailed


def test_expressions_of_one_token_have_one_budget(bench):
    loops = "[0,1,2,3,4,5,6,7,8,9].all(a, [0,1,2,3,4,5,6,7,8,9].all(b, dyn(claims.l).all(c, c >= 0.0 || a < %d)))"
    rules = [{"expression": loops % number, "message": "m"} for number in range(20)]
    authenticator = bench.authenticator(rules=rules)
    error = refusal(authenticator, bench.token(l=[0] * 1000))
    assert "cost more than" in str(error)
    assert authenticator.authenticate(bench.token(l=[0])).username == "jane"


def test_verified_claims_are_made_in_one_place():
    with pytest.raises(TypeError):
        VerifiedClaims(object(), {}, 0.0)


def test_errors_can_go_to_another_process(bench):
    error = refusal(bench.authenticator(), bench.token(aud="x"))
    other = pickle.loads(pickle.dumps(error))  # noqa: S301  our own bytes
    assert (str(other), type(other), other.rule) == (str(error), type(error), error.rule)


@pytest.mark.parametrize("again", [copy.copy, copy.deepcopy, lambda value: pickle.loads(pickle.dumps(value))])  # noqa: S301  our own bytes
@pytest.mark.parametrize("claims", [{}, {"jti": "1", "groups": ["a", "b"], "uid": "u"}])
def test_a_user_a_verdict_and_a_trace_can_be_copied_and_go_to_another_process(bench, again, claims):
    extra = [{"key": "a.example/b", "valueExpression": "['x', 'y']"}]
    mappings = {"groups": {"claim": "groups", "prefix": ""}, "extra": extra if claims else []}
    authenticator, token = bench.authenticator(**mappings), bench.token(**claims)
    user = again(authenticator.authenticate(token))
    assert user == authenticator.authenticate(token)
    assert type(user) is UserInfo
    assert len({user, authenticator.authenticate(token)}) == 1
    with pytest.raises(TypeError):
        user.extra["k"] = ("v",)
    assert again(authenticator.decide(token)) == authenticator.decide(token)
    assert again(authenticator.explain(token, show_claims=True)) == authenticator.explain(token, show_claims=True)


def test_arguments_that_would_not_do_what_was_meant(bench):
    text = "apiVersion: apiserver.config.k8s.io/v1\nkind: AuthenticationConfiguration\njwt: []\n"
    with pytest.raises(errors.UsageError, match="in a list"):
        load_configuration(text, "https://kubernetes.default.svc")
    for release in ("9.99", "", "newest"):
        with pytest.raises(errors.UsageError, match="are known"):
            Authenticator(bench.authenticator().configuration, keys={}, kubernetes=release)


def test_keys_or_sources(bench):
    with pytest.raises(errors.UsageError):
        Authenticator(bench.authenticator().configuration, keys={}, key_sources={})
    with pytest.raises(errors.KeySetError):
        Authenticator(bench.authenticator().configuration, keys={bench.url: {"keys": 5}})
