"""What the playground answers: faults, verdicts, notes; and that its examples are good ones."""

from __future__ import annotations

import json
from base64 import urlsafe_b64encode

import pytest

from kubeauthn.cli.playground_judge import judge
from kubeauthn.cli.playground_pages import EXAMPLES, FOLDER, documents, example, setting
from kubeauthn.errors import UsageError
from kubeauthn.testing._signing import SigningKey

NOW = 1_800_000_000.0
CONFIGURATION = """\
apiVersion: apiserver.config.k8s.io/v1
kind: AuthenticationConfiguration
jwt:
- issuer:
    url: https://issuer.example
    audiences: [kubernetes]
  claimValidationRules:
  - claim: hd
    requiredValue: example.com
  claimMappings:
    username:
      expression: '"oidc:" + claims.sub'
"""
CLAIMS = {"iss": "https://issuer.example", "aud": "kubernetes", "sub": "jane", "hd": "example.com"}


def part(value: object) -> str:
    return urlsafe_b64encode(json.dumps(value).encode()).rstrip(b"=").decode()


def token(claims: object, **header: object) -> str:
    return f"{part({'alg': 'RS256', **header})}.{part(claims)}.{'A' * 342}"


def asked(claims: object = None, **more: str) -> dict[str, str]:
    return {"configuration": CONFIGURATION, "claims": "" if claims is None else json.dumps(claims), **more}


# -- examples -------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", EXAMPLES)
def test_every_example_is_without_faults_and_authenticates(name: str):
    configuration, claims = example(name, NOW)
    answer = judge({"configuration": configuration, "claims": claims}, NOW)
    assert [found["text"] for found in answer["findings"] if found["level"] == "error"] == []
    assert answer["verdict"]["verdict"] == "authenticated"


@pytest.mark.parametrize("name", [name for name in EXAMPLES if name != "kep"])
def test_examples_to_begin_with_give_no_warning_and_have_a_rule_or_a_prefix(name: str):
    configuration, claims = example(name, NOW)
    answer = judge({"configuration": configuration, "claims": claims}, NOW)
    assert [found["text"] for found in answer["findings"] if found["level"] == "warning"] == []
    assert not answer["verdict"]["user"]["username"].startswith("system:")


def test_every_file_of_the_examples_is_listed():
    there = {entry.name.rpartition(".")[0] for entry in (FOLDER / "examples").iterdir()}
    assert there == set(EXAMPLES)


@pytest.mark.parametrize("now", [1_000_000_000.0, NOW, 4_000_000_000.5])
def test_the_times_of_an_example_are_moved_to_now(now: float):
    configuration, claims = example("kep", now)
    times = json.loads(claims)
    assert times["nbf"] < now < times["exp"]
    assert judge({"configuration": configuration, "claims": claims}, now)["verdict"]["user"]["username"] == (
        "jane:external-user"
    )


def test_the_setting_has_all_that_the_page_needs():
    told = json.loads(setting({"configuration": "a"}, NOW))
    assert [one["name"] for one in told["examples"]] == list(EXAMPLES)
    assert told["start"] == {"configuration": "a"}
    assert told["newest"] == told["releases"][0]


def test_the_page_is_small_and_asks_nobody_else():
    served = documents()
    assert sum(len(content) for _, content in served.values()) + len(setting({}, NOW)) < 500_000
    for path, (_, content) in served.items():
        if path.endswith((".js", ".css")) or path == "/":
            assert b"://" not in content, path


# -- verdicts -------------------------------------------------------------------------------------


def test_claims_that_pass_become_a_user():
    answer = judge(asked(CLAIMS), NOW)
    assert answer["verdict"]["user"]["username"] == "oidc:jane"
    assert answer["problem"] is None
    assert answer["notes"] == [
        "the claims are taken as verified: there is no signature to look at",
        "not given, and taken to be as they must be: exp",
    ]


def test_each_step_carries_what_the_page_shows():
    steps = judge(asked(CLAIMS), NOW)["verdict"]["steps"]
    rule = next(step for step in steps if step["rule"] == "jwt[0].claimValidationRules[0]")
    assert (rule["outcome"], rule["inputs"]) == ("ok", {"claim": "hd", "required": "example.com"})
    mapping = next(step for step in steps if step["name"] == "username")
    assert mapping["cel"]["value"] == {"string": "oidc:jane"}
    assert mapping["cel"]["type"] == "string"
    assert mapping["cel"]["cost"] > 0
    assert mapping["saw"] == {"claims.sub": "jane"}


def test_a_rule_that_refuses_is_named():
    verdict = judge(asked({**CLAIMS, "hd": "evil.example"}), NOW)["verdict"]
    assert (verdict["verdict"], verdict["user"]) == ("refused", None)
    assert [step["rule"] for step in verdict["steps"] if step["outcome"] == "refused"] == [
        "jwt[0].claimValidationRules[0]"
    ]


def test_a_step_knows_the_line_of_its_rule():
    steps = {step["name"]: step for step in judge(asked({**CLAIMS, "hd": "evil.example"}), NOW)["verdict"]["steps"]}
    assert (steps["claim rule"]["line"], steps["claim rule"]["column"]) == (8, 5)
    assert (steps["issuer"]["line"], steps["username"]["line"]) == (5, 11)
    assert "line" not in steps["registered claims"], "no field says it"


def test_another_issuer_is_not_mine():
    assert judge(asked({**CLAIMS, "iss": "https://other.example"}), NOW)["verdict"]["verdict"] == "not mine"


def test_faults_come_with_place_and_hint_and_without_a_verdict():
    answer = judge(asked(CLAIMS, configuration=CONFIGURATION.replace("audiences", "audience")), NOW)
    found = answer["findings"][0]
    assert (found["level"], found["line"]) == ("error", 6)
    assert found["hint"] == "did you mean audiences?"
    assert answer["verdict"] is None
    assert answer["given"]["claims"] == CLAIMS


def test_nothing_given_is_no_problem():
    answer = judge(asked(), NOW)
    assert (answer["given"], answer["problem"], answer["verdict"]) == (None, None, None)


def test_the_rules_of_a_release_are_followed():
    assert judge(asked(CLAIMS, kubernetes="1.33"), NOW)["kubernetes"] == "1.33"
    assert any(found["level"] == "error" for found in judge(asked(CLAIMS, kubernetes="1.33"), NOW)["findings"])
    with pytest.raises(UsageError):
        judge(asked(CLAIMS, kubernetes="9.99"), NOW)


@pytest.mark.parametrize(
    ("name", "moment", "words"),
    [
        ("iat", NOW - 60, "issued 1 minute ago"),
        ("nbf", NOW - 3600, "began 1 hour ago"),
        ("nbf", NOW + 3600, "begins in 1 hour"),
        ("exp", NOW + 86400, "ends in 1 day"),
        ("exp", NOW - 1, "ended 1 second ago"),
    ],
)
def test_times_are_told_in_words(name: str, moment: float, words: str):
    assert judge(asked({**CLAIMS, name: moment}), NOW)["given"]["times"] == [{"name": name, "words": words}]


# -- tokens ---------------------------------------------------------------------------------------


def test_a_token_without_keys_is_judged_by_its_claims_and_that_is_said():
    answer = judge(asked(None, token=token({**CLAIMS, "exp": NOW + 60})), NOW)
    assert answer["verdict"]["user"]["username"] == "oidc:jane"
    assert answer["given"]["header"] == {"alg": "RS256"}
    assert answer["notes"] == ["the signature was not looked at: give the issuer's keys to have it verified"]


def test_nothing_is_filled_in_for_a_token():
    verdict = judge(asked(None, token=token(CLAIMS)), NOW)["verdict"]
    assert verdict["verdict"] == "refused"
    assert verdict["assumed"] == []


@pytest.mark.parametrize("algorithm", ["none", "HS256", "<b>"])
def test_an_algorithm_that_no_server_takes_is_told(algorithm: str):
    answer = judge(asked(None, token=token({**CLAIMS, "exp": NOW + 60}, alg=algorithm)), NOW)
    assert any(f"signed with {algorithm}" in note for note in answer["notes"]) or answer["problem"]


def test_a_token_with_the_keys_of_its_issuer_is_verified():
    key = SigningKey.new("k1", "ES256")
    signed = key.sign({**CLAIMS, "exp": int(NOW) + 60}, {})
    answer = judge(asked(None, token=signed, keys=json.dumps({"keys": [key.jwk()]})), NOW)
    assert answer["verdict"]["verdict"] == "authenticated"
    assert answer["verdict"]["steps"][0]["number"] == 1
    assert answer["notes"] == []


def test_a_token_of_another_key_is_refused_at_its_signature():
    signed = SigningKey.new("k1", "ES256").sign({**CLAIMS, "exp": int(NOW) + 60}, {})
    other = SigningKey.new("k1", "ES256")
    answer = judge(asked(None, token=signed, keys=json.dumps({"keys": [other.jwk()]})), NOW)
    assert answer["verdict"]["verdict"] == "refused"
    assert [step["name"] for step in answer["verdict"]["steps"] if step["outcome"] == "refused"] == ["signature"]
    assert answer["notes"] == ["the claims are not verified: anybody may have written them"]


@pytest.mark.parametrize("keys", ["{", "[]", '{"keys": 1}', '{"https://other.example": {"keys": []}}'])
def test_keys_that_are_none_are_a_problem_and_not_a_verdict(keys: str):
    answer = judge(asked(None, token=token({**CLAIMS, "exp": NOW + 60}), keys=keys), NOW)
    assert answer["verdict"] is None
    assert answer["problem"].startswith("the keys: ")


@pytest.mark.parametrize("changed", [{"aud": "other"}, {"exp": NOW - 60}, {"hd": "evil.example"}])
def test_claims_of_a_signed_token_are_the_issuers_even_if_it_is_refused(changed: dict[str, object]):
    key = SigningKey.new("k1", "ES256")
    signed = key.sign({**CLAIMS, "exp": int(NOW) + 60, **changed}, {})
    answer = judge(asked(None, token=signed, keys=json.dumps({"keys": [key.jwk()]})), NOW)
    assert answer["verdict"]["verdict"] == "refused"
    assert answer["notes"] == []


@pytest.mark.parametrize(
    ("keys", "hint"),
    [
        ("-----BEGIN CERTIFICATE-----\n", "it is PEM"),
        ('{"kty": "RSA"}', 'it is one key: put it into a list, {"keys": […]}'),
        ('{"jwks_uri": "https://issuer.example/keys"}', "it is the issuer's discovery document"),
        ('{"https://other.example": {"keys": []}}', "key sets of other issuers: here they are https://issuer.example"),
        ("[]", 'a list of keys is put into an object: {"keys": […]}'),
    ],
)  # fmt: skip
def test_keys_that_are_something_else_are_told_to_be(keys: str, hint: str):
    answer = judge(asked(None, token=token({**CLAIMS, "exp": NOW + 60}), keys=keys), NOW)
    assert hint in answer["problem"]


@pytest.mark.parametrize(("before", "after"), [('"', '"'), ("'", "'"), ("\ufeff", ""), ("token:", "")])
def test_a_token_with_something_around_it_is_told_what(before: str, after: str):
    answer = judge(asked(None, token=before + token({**CLAIMS, "exp": NOW + 60}) + after), NOW)
    assert answer["problem"].startswith("the header of this token cannot be read: illegal base64 data")
    assert ("quotation marks" in answer["problem"]) is (after != "")
    assert (answer["verdict"], answer["given"]) == (None, None)


def test_a_claim_that_is_not_there_is_told_from_a_text():
    configuration = CONFIGURATION.replace("claims.sub'", "claims.?a.orValue(claims.?b.orValue(claims.sub))'")
    steps = judge(asked({**CLAIMS, "b": "<absent>"}, configuration=configuration), NOW)["verdict"]["steps"]
    (username,) = [step for step in steps if step["name"] == "username"]
    assert username["absent"] == ["claims.a"]


# -- what should not be there ---------------------------------------------------------------------


@pytest.mark.parametrize(
    ("claims", "problem"),
    [
        ("{", "the claims are no JSON: expecting property name enclosed in double quotes, line 1 column 2"),
        ('{"a": 1,\n "b" 2}', "the claims are no JSON: expecting ':' delimiter, line 2 column 6"),
        ("[]", 'the claims have to be a JSON object; such as {"sub": "jane"}'),
        ("7", 'the claims have to be a JSON object; such as {"sub": "jane"}'),
        ('{"a":' * 20000 + "1" + "}" * 20000, "the claims are nested too deeply, or have a number that is too long"),
    ],
)
def test_bad_json_is_told_with_its_place(claims: str, problem: str):
    answer = judge(asked(claims=None) | {"claims": claims}, NOW)
    assert (answer["problem"], answer["verdict"]) == (problem, None)


@pytest.mark.parametrize("text", ["hello", "a.b", "a.b.c", "....", "eyJhbGciOiJub25lIn0.W10.", "é.é.é", "\ud800.x.y"])
def test_what_is_no_token_is_told(text: str):
    answer = judge(asked(None, token=text), NOW)
    assert answer["problem"].startswith("this is neither a JSON object nor a token")
    assert answer["verdict"] is None


@pytest.mark.parametrize(
    "claims",
    [
        {"<img src=x onerror=alert(1)>": "</script><script>alert(1)</script>"},
        {"__proto__": {"x": 1}, "constructor": [], "toString": None},
        {"sub": "\x1b[31m\u202e\u2028\x00"},
        {"exp": 1e308, "iat": -1e308, "nbf": 0},
        {"exp": "soon", "iat": None, "nbf": [1]},
        {"sub": "x" * 100_000},
        {"_claim_names": {"groups": "src1"}, "_claim_sources": {"src1": {"endpoint": "https://evil.example"}}},
    ],
)
def test_hostile_claims_get_an_answer_that_is_json(claims: dict[str, object]):
    answer = judge(asked({**CLAIMS, **claims}), NOW)
    assert json.loads(json.dumps(answer, allow_nan=False, default=str))["given"] is not None
    assert answer["verdict"]["verdict"] in ("authenticated", "refused", "not mine")


@pytest.mark.parametrize("number", ["1e999", "-1e999", "NaN", "Infinity"])
def test_numbers_that_json_has_not_do_not_come_out_again(number: str):
    odd = urlsafe_b64encode(f'{{"alg":"RS256","x":{number}}}'.encode()).rstrip(b"=").decode()
    for given in ({"claims": f'{{"sub": "a", "x": {number}}}'}, {"token": f"{odd}.{part(CLAIMS)}.AAAA"}):
        json.dumps(judge({"configuration": CONFIGURATION, **given}, NOW), allow_nan=False, default=str)


@pytest.mark.parametrize("configuration", ["", "\x00", "{", "- " * 5000, "a: &a [*a]", "\ud800", "jwt: 1", "&a *a"])
def test_hostile_configurations_get_findings(configuration: str):
    answer = judge(asked(CLAIMS, configuration=configuration), NOW)
    assert any(found["level"] == "error" for found in answer["findings"])
    assert answer["verdict"] is None
