"""`explain`: every step, whatever fails, and no more than may be shown."""

from __future__ import annotations

import json

import pytest

from kubeauthn.errors import TokenError

from .conftest import part


def outcomes(trace):
    return [(step.number, step.name, step.outcome) for step in trace.steps]


@pytest.fixture
def authenticator(bench):
    return bench.authenticator(
        rules=[
            {"claim": "hd", "requiredValue": "example.com"},
            {"expression": "claims.level >= 2.0", "message": "too low"},
        ],
        groups={"expression": "claims.roles.split(',')"},
        uid={"claim": "sub"},
        extra=[{"key": "example.com/t", "valueExpression": "claims.?t.orValue('')"}],
        user_rules=[{"expression": "user.username != 'root'", "message": "no root"}],
    )


GOOD = {"hd": "example.com", "level": 3, "roles": "a,b", "sub": "s"}


def test_a_good_token(authenticator, bench):
    trace = authenticator.explain(bench.token(**GOOD))
    assert (trace.verdict, trace.reason, trace.verified, trace.issuer) == ("authenticated", "", True, bench.url)
    assert trace.user == authenticator.authenticate(bench.token(**GOOD))
    assert {step.outcome for step in trace.steps} == {"passed"}
    assert [step.number for step in trace.steps] == [1, 2, 3, 4, 5, 6, 8, 8, 9, 9, 9, 9, 9, 10]
    assert trace.claims is None
    assert trace.steps[5].detail == "ends in 10 minutes"


def test_every_step_is_tried_after_the_first_failure(authenticator, bench):
    token = bench.token(**{**GOOD, "aud": "x", "exp": bench.now - 5, "hd": "other", "level": 1, "username": "root"})
    trace = authenticator.explain(f"{token.rpartition('.')[0]}.{part(b'x' * 256)}")
    assert trace.verdict == "refused"
    assert not trace.verified
    assert trace.user is None
    failed = [step for step in trace.steps if step.outcome == "failed"]
    assert [(step.number, step.name) for step in failed] == [
        (3, "signature"), (5, "audience"), (6, "times"), (8, "claim rule"), (8, "claim rule"), (10, "user rule"),
    ]  # fmt: skip
    assert failed[3].rule == "jwt[0].claimValidationRules[0]"
    assert failed[4].expression == "claims.level >= 2.0"
    assert "no root" in failed[5].detail


def test_the_reason_is_that_of_authenticate(authenticator, bench):
    trace = authenticator.explain(bench.token(**{**GOOD, "level": 1}))
    with pytest.raises(TokenError) as refused:
        authenticator.authenticate(bench.token(**{**GOOD, "level": 1}))
    assert trace.reason == str(refused.value)


@pytest.mark.parametrize("text", ["", "opaque", "a.b.c", "{}", "\ufeff", "x" * 1_000_000, "..", "\ud800"])
def test_what_is_no_token(authenticator, text):
    trace = authenticator.explain(text)
    assert trace.verdict == "not mine"
    assert outcomes(trace) == [(1, "token", "failed")]


@pytest.mark.parametrize(
    ("text", "hint"),
    [
        ("", "empty"),
        (" \n", "empty"),
        ("ya29.a0AfH6SMBx", "opaque"),
        ("eyJhbGciOiJSUzI1NiJ9.e30", "two dots"),
        ("gho_16C7e42F292c6912E7710c838347Ae178B4a", "opaque"),
        ('{"access_token": "a.b.c"}', "id_token or status.token"),
        (' {"status": {"token": "a.b.c"}}', "id_token or status.token"),
        ("a.b.c.d.e", "JWE"),
        ("a.b.c\na.b.c", "on one line"),
        ("Authorization: Bearer opaque", "on one line"),
        ("\ufffd\ufffde\0y\0", "UTF-16"),
        ("x" * 1_000_000, ""),
    ],
)
def test_what_is_no_token_is_told_from_one(authenticator, text, hint):
    (step,) = authenticator.explain(text).steps
    assert step.outcome == "failed"
    assert hint in step.hint
    assert bool(hint) is bool(step.hint)


@pytest.mark.parametrize(
    ("before", "after", "hint"),
    [
        ('"', '"', "jq -r"),
        ("'", "'", "quotation marks"),
        ("\ufeff", "", "byte order mark"),
        ("Bearer ", "", "one line"),
        ("TOKEN=", "", "begins with eyJ"),
        ("bearer:", "", "begins with eyJ"),
    ],
)
def test_what_was_copied_with_a_token_is_said_at_once(authenticator, bench, before, after, hint):
    trace = authenticator.explain(f"{before}{bench.token(**GOOD)}{after}")
    assert trace.verdict == "refused"
    assert hint in trace.steps[0].hint
    assert authenticator.explain(bench.token(**GOOD)).steps[0].hint == ""


@pytest.mark.parametrize(
    ("iss", "hint"),
    [
        ("https://issuer.example/", "slash"),
        ("https://ISSUER.example", "capital"),
        ("http://issuer.example", "https"),
        (5, "no iss"),
        ("https://else.example", ""),
    ],
)
def test_an_issuer_that_nearly_matches(authenticator, bench, iss, hint):
    trace = authenticator.explain(bench.token(iss=iss))
    assert trace.verdict == "not mine"
    assert hint in trace.steps[-1].hint


def test_claims_are_shown_only_on_request_and_marked(authenticator, bench):
    token = bench.token(**GOOD, secret_note="hidden-value")
    plain, shown = authenticator.explain(token), authenticator.explain(token, show_claims=True)
    assert "hidden-value" not in str(plain) + json.dumps(plain.as_dict())
    assert shown.as_dict()["claims"]["secret_note"] == "hidden-value"
    forged = f"{token.rpartition('.')[0]}.{part(b'x' * 256)}"
    marked = authenticator.explain(forged, show_claims=True)
    assert "claims" not in marked.as_dict()
    assert marked.as_dict()["unverifiedClaims"]["secret_note"] == "hidden-value"
    assert "not verified" in str(marked)


def test_no_signature_and_no_access_token_is_ever_shown(authenticator, bench):
    sources = {"s": {"endpoint": "https://claims.example", "access_token": "top-secret"}}
    token = bench.token(**GOOD, _claim_names={"t": "s"}, _claim_sources=sources)
    trace = authenticator.explain(token, show_claims=True)
    text = str(trace) + json.dumps(trace.as_dict())
    assert "top-secret" not in text
    assert token.rpartition(".")[2][:20] not in text
    assert "has to be fetched" in trace.reason
    assert (7, "claim sources", "passed") in outcomes(trace)


def test_sources_that_cannot_be_read_are_the_fault_of_their_step(bench):
    authenticator = bench.authenticator(groups={"claim": "groups", "prefix": ""})
    trace = authenticator.explain(bench.token(_claim_names={}), bench.now)
    assert trace.reason == "oidc: could not expand distributed claims: oidc: no claim sources"
    assert (7, "claim sources", "failed") in outcomes(trace)


@pytest.mark.parametrize("path", ["", ".s", ".s.access_token", "['s'].access_token", ".?s"])
def test_an_expression_that_reads_an_access_token_shows_none(bench, path):
    rule = {"expression": f"[dyn(claims._claim_sources{path})].size() == 1", "message": "m"}
    uid = {"expression": f"[dyn(claims._claim_sources{path})]"}  # not a text, so that it is refused after it was read
    sources = {"s": {"endpoint": "https://claims.example", "access_token": "top-secret"}}
    token = bench.token(_claim_names={"t": "s"}, _claim_sources=sources)
    trace = bench.authenticator(rules=[rule], uid=uid).explain(token, show_claims=True)
    assert "top-secret" not in str(trace) + json.dumps(trace.as_dict())
    assert [step.cel is None for step in trace.steps if step.name in ("claim rule", "uid")] == [False, True]


def test_no_keys_at_hand(bench, authenticator):
    from kubeauthn.server import Authenticator

    trace = Authenticator(authenticator.configuration, keys={}).explain(bench.token(**GOOD), bench.now)
    assert trace.reason == "oidc: authenticator not initialized"
    assert not trace.verified
    assert [step.name for step in trace.steps if step.outcome == "failed"] == ["signature"]


def test_odd_tokens_are_explained_too(authenticator, bench):
    deep = bench.raw_token(f'{json.dumps(bench.claims())[:-1]}, "x": {"[" * 5000}{"]" * 5000}, "n": 1e999}}')
    for token in (
        deep,
        bench.token(**GOOD, nbf="x", aud={}),
        bench.token(_claim_names=5),
        bench.raw_token(b'{"iss": "https://issuer.example"}', header="nonsense"),
        bench.raw_token(b'{"iss": "https://issuer.example"}', header={"alg": "none"}),
    ):
        trace = authenticator.explain(token, show_claims=True)
        assert trace.verdict == "refused"
        assert json.dumps(trace.as_dict())
        assert str(trace)


@pytest.mark.parametrize("nested", ['{"a":' * 5000 + "1" + "}" * 5000, "[" * 5000 + "]" * 5000, "[" * 102 + "]" * 102])
@pytest.mark.parametrize("mapping", ["username", "uid", "groups", "extra"])
def test_a_value_that_is_nested_deeply_is_explained_without_it(bench, mapping, nested):
    expression = {"expression": "claims.x"}
    extra = [{"key": "a.example/b", "valueExpression": "claims.x"}]
    authenticator = bench.authenticator(**{mapping: extra if mapping == "extra" else expression})
    payload = f'{json.dumps(bench.claims())[:-1]}, "x": {nested}}}'
    trace = authenticator.explain(bench.raw_token(payload), show_claims=True)
    assert json.dumps(trace.as_dict(), indent=2)
    assert [step.cel for step in trace.steps if step.expression] in ([], [None])


def test_a_token_cannot_write_to_the_terminal(authenticator, bench):
    evil = "\x1b[2J\n\u2713 authenticated\r\u202e"
    text = str(authenticator.explain(bench.token(**{**GOOD, "hd": evil, "aud": evil, "sub": evil}), show_claims=True))
    assert all(line.isprintable() for line in text.split("\n"))
    assert not any(line.startswith("\u2713 authenticated") for line in text.split("\n"))


def test_each_expression_says_what_it_saw_and_came_to(authenticator, bench):
    trace = authenticator.explain(bench.token(**(GOOD | {"level": 1})), show_claims=True)
    rule = next(step for step in trace.steps if step.expression == "claims.level >= 2.0")
    assert rule.outcome == "failed"
    assert rule.saw == {"claims.level": 1.0}
    assert rule.cel is not None
    assert (rule.cel.type, rule.cel.value) == ("bool", {"bool": False})
    assert rule.cel.cost > 0
    absent = next(step for step in trace.steps if step.expression == "claims.?t.orValue('')")
    assert absent.saw == {"claims.t": "<absent>"}
    of_user = next(step for step in trace.steps if step.number == 10)
    assert set(of_user.saw or {}) == {"user.username"}
    json.dumps(trace.as_dict())


def test_an_escaped_name_shows_what_the_expression_saw(bench):
    expression = "claims.a__dot__b == claims['c/d'] && claims.n.e__dash__f == claims.?q__dot__r.orValue('')"
    odd = "claims.x__y__z == claims.n.x__y__z"
    authenticator = bench.authenticator(rules=[{"expression": text, "message": "no"} for text in (expression, odd)])
    token = bench.token(**{"a.b": 1, "c/d": 2, "n": {"e-f": 3, "x__y__z": 5}, "q.r": 4, "x__y__z": 6})
    rules = [step for step in authenticator.explain(token, show_claims=True).steps if step.number == 8]
    assert rules[0].saw == {
        "claims.a__dot__b": 1.0, "claims.c/d": 2.0, "claims.n.e__dash__f": 3.0, "claims.q__dot__r": 4.0,
    }  # fmt: skip
    # no claim has a wrongly escaped name, though one may be written so; further down a key may
    assert rules[1].saw == {"claims.x__y__z": "<absent>", "claims.n.x__y__z": 5.0}


@pytest.mark.parametrize("expression", ["claims.level + 1 > 2.0", "claims.list.contains('a')", "claims.level > '1'"])
def test_types_that_differ_are_explained(bench, expression):
    authenticator = bench.authenticator(rules=[{"expression": expression, "message": "no"}])
    trace = authenticator.explain(bench.token(**GOOD, list=["a"]))
    (step,) = [step for step in trace.steps if step.outcome == "failed"]
    assert step.detail.endswith("no such overload")
    assert "the types differ" in step.hint
    assert "'x' in" in step.hint


def test_what_an_expression_saw_is_hidden_with_the_claims(authenticator, bench):
    trace = authenticator.explain(bench.token(**GOOD))
    assert all(step.saw is None for step in trace.steps)
    assert not any("saw" in step for step in trace.as_dict()["steps"])
