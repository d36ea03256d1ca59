"""The whole way: a file, discovery over TLS, tokens, claims from other sources, and the result cache."""

from __future__ import annotations

import asyncio
import textwrap
import time
from collections.abc import Iterator
from typing import Any

import pytest

from kubeauthn._core.authentication import fetch_limits
from kubeauthn.errors import (
    ClaimRefused,
    ClaimUnavailable,
    KeysUnavailable,
    NotMine,
    SignatureRefused,
    TokenExpired,
    Unauthenticated,
)
from kubeauthn.server import Authenticator, load_configuration
from kubeauthn.server.cache import CachedAuthenticator
from kubeauthn.server.decisions import AuthenticatorDecider, Decision
from kubeauthn.server.keysets import DiscoveredKeys
from kubeauthn.server.views import authenticate_request
from kubeauthn.testing import CertificateAuthority, FakeClock
from kubeauthn.testing.issuer import Issuer
from tests.integration.rough_servers import RoughServer, reply

CLAIM_MAPPINGS = """
username: {claim: sub, prefix: ""}
groups: {claim: groups, prefix: ""}
"""
EXPRESSIONS = """
username: {expression: claims.sub}
groups: {expression: "dyn(claims.teams).map(t, 'team:' + t)"}
"""


def configuration(issuer: Issuer, mappings: str = CLAIM_MAPPINGS, rules: str = "[]") -> str:
    return "\n".join(
        [
            "apiVersion: apiserver.config.k8s.io/v1",
            "kind: AuthenticationConfiguration",
            "jwt:",
            "- issuer:",
            f"    url: {issuer.url}",
            "    audiences: [kubernetes]",
            "    certificateAuthority: |",
            textwrap.indent(issuer.ca.certificate_pem.decode(), " " * 6),
            f"  claimValidationRules: {rules}",
            "  claimMappings:",
            textwrap.indent(mappings, " " * 4),
        ]
    )


def authenticator(issuer: Issuer, mappings: str = CLAIM_MAPPINGS, rules: str = "[]", **options: Any) -> Authenticator:
    return Authenticator(load_configuration(configuration(issuer, mappings, rules)), **options)


def sources_for(issuer: Issuer, clock: FakeClock) -> dict[str, Any]:
    (entry,) = load_configuration(configuration(issuer)).jwt
    return {issuer.url: DiscoveredKeys(entry.issuer, clock=clock)}


@pytest.fixture(scope="module")
def ca() -> CertificateAuthority:
    return CertificateAuthority("online CA")


@pytest.fixture
def issuer(ca: CertificateAuthority) -> Iterator[Issuer]:
    with Issuer(ca=ca) as running:
        running.rotate()
        yield running


@pytest.fixture
def source(ca: CertificateAuthority) -> Iterator[RoughServer]:
    with RoughServer(ca) as running:
        yield running


def distributed(source: RoughServer, **names: str) -> dict[str, Any]:
    return {
        "_claim_names": names,
        "_claim_sources": {
            name: {"endpoint": f"{source.url}/{name}", "access_token": f"for-{name}"} for name in names.values()
        },
    }


# -- keys -----------------------------------------------------------------------------------------


def test_keys_are_fetched_for_the_first_token_and_are_then_at_hand(issuer: Issuer) -> None:
    checked = authenticator(issuer)
    token = issuer.token("jane", groups=["dev"])
    with pytest.raises(KeysUnavailable, match="oidc: authenticator not initialized"):
        checked.authenticate(token)
    assert issuer.requests == []
    user = asyncio.run(checked.authenticate_async(token))
    assert (user.username, user.groups) == ("jane", ("dev",))
    assert checked.authenticate(token) == user
    assert len(issuer.requests) == 2


def test_an_issuer_that_is_down_is_not_initialized(issuer: Issuer) -> None:
    issuer.fail_next(10_000)
    checked = authenticator(issuer)
    for _ in range(5):
        with pytest.raises(KeysUnavailable, match="oidc: authenticator not initialized"):
            asyncio.run(checked.authenticate_async(issuer.token("jane")))
    assert len(issuer.requests) == 1


def test_a_rotated_key_is_found_and_made_up_ones_cost_one_fetch(issuer: Issuer) -> None:
    clock = FakeClock()
    checked = authenticator(issuer, key_sources=sources_for(issuer, clock))
    asyncio.run(checked.authenticate_async(issuer.token("jane")))
    issuer.rotate()
    assert asyncio.run(checked.authenticate_async(issuer.token("joe"))).username == "joe"
    seen = len(issuer.requests)
    times = {"iat": int(time.time()), "exp": int(time.time()) + 60}
    for number in range(20):
        forged = issuer.sign({"iss": issuer.url, "aud": "kubernetes", **times}, headers={"kid": f"made-up-{number}"})
        with pytest.raises(SignatureRefused):
            asyncio.run(checked.authenticate_async(forged))
    assert len(issuer.requests) == seen
    clock.advance(30)
    for _ in range(20):
        with pytest.raises(SignatureRefused):
            asyncio.run(checked.authenticate_async(forged))
    assert len(issuer.requests) == seen + 1


def test_a_wrong_signature_of_a_known_key_asks_nobody(issuer: Issuer) -> None:
    checked = authenticator(issuer)
    token = issuer.token("jane")
    asyncio.run(checked.authenticate_async(token))
    seen = len(issuer.requests)
    head, _, _ = issuer.token("joe").rpartition(".")
    with pytest.raises(SignatureRefused):
        asyncio.run(checked.authenticate_async(f"{head}.{token.rpartition('.')[2]}"))
    assert len(issuer.requests) == seen


def test_an_issuer_that_fails_later_does_not_end_what_worked(issuer: Issuer) -> None:
    checked = authenticator(issuer)
    token = issuer.token("jane")
    asyncio.run(checked.authenticate_async(token))
    issuer.fail_next(10_000)
    issuer.rotate()
    with pytest.raises(SignatureRefused):
        asyncio.run(checked.authenticate_async(issuer.token("joe")))
    assert asyncio.run(checked.authenticate_async(token)).username == "jane"


@pytest.mark.parametrize(
    "ask",
    [
        lambda checked, token: asyncio.run(checked.uncached.authenticate_async(token)),
        lambda checked, token: asyncio.run(checked.authenticate_async(token)),
        lambda checked, token: authenticate_request({"Authorization": f"Bearer {token}"}, checked.uncached),
        lambda checked, token: authenticate_request({"Authorization": f"Bearer {token}"}, checked),
    ],
    ids=["async", "cached", "view", "cached view"],
)
def test_a_withdrawn_key_ends_also_where_nothing_runs_in_the_background(
    issuer: Issuer, monkeypatch: pytest.MonkeyPatch, ask: Any
) -> None:
    monkeypatch.setattr(fetch_limits, "DUE_LOOK_SECONDS", 0.0)
    clock = FakeClock(time.time())
    checked = CachedAuthenticator(authenticator(issuer, clock=clock), clock=clock)
    token = issuer.token("jane", expires_in=3600)
    assert ask(checked, token).username == "jane"
    issuer.withdraw(issuer.kids[0])
    issuer.rotate()
    clock.advance(580)
    assert ask(checked, token).username == "jane", "nobody has asked the issuer yet"
    clock.advance(20)
    with pytest.raises((SignatureRefused, Unauthenticated)):
        ask(checked, token)
    assert len(issuer.requests) <= 4, "discovery; the keys at first, when they were due, and for the unknown key id"


class SlowIssuer(Issuer):
    seconds = 0.0

    def jwks(self) -> dict[str, Any]:
        time.sleep(self.seconds)
        return super().jwks()


def test_a_withdrawn_key_of_a_slow_issuer_ends_also_where_each_call_has_a_loop_of_its_own(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """What is not fetched while the call waits ends with its loop, and so would every other attempt."""
    monkeypatch.setattr(fetch_limits, "DUE_LOOK_SECONDS", 0.0)
    monkeypatch.setattr(fetch_limits, "REFRESH_WAIT_SECONDS", 0.2)
    clock = FakeClock(time.time())
    with SlowIssuer() as issuer:
        checked = authenticator(issuer, clock=clock)
        headers = {"Authorization": f"Bearer {issuer.token('jane', expires_in=3600)}"}
        assert authenticate_request(headers, checked).username == "jane"
        issuer.withdraw(issuer.kids[0])
        issuer.rotate()
        issuer.seconds = 1.0
        clock.advance(600)
        assert authenticate_request(headers, checked).username == "jane"
        clock.advance(30)
        with pytest.raises(Unauthenticated):
            authenticate_request(headers, checked)


def test_keys_that_are_due_stay_where_the_issuer_does_not_answer(
    issuer: Issuer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(fetch_limits, "DUE_LOOK_SECONDS", 0.0)
    clock = FakeClock(time.time())
    decider = AuthenticatorDecider(CachedAuthenticator(authenticator(issuer, clock=clock), clock=clock), clock=clock)
    token = issuer.token("jane", expires_in=3600)
    asyncio.run(decider.decide(token))
    issuer.fail_next(10_000)
    clock.advance(600)
    for _ in range(5):
        assert asyncio.run(decider.decide(token)).outcome == "authenticated"
    assert len(issuer.requests) == 4, "asked once more, at both addresses"


# -- claims of other sources ----------------------------------------------------------------------


def test_the_groups_claim_is_fetched(issuer: Issuer, source: RoughServer) -> None:
    checked = authenticator(issuer)
    source.routes["/src1"] = reply(issuer.token("x", groups=["a", "b"]).encode())
    token = issuer.token("jane", **distributed(source, groups="src1"))
    assert asyncio.run(checked.authenticate_async(token)).groups == ("a", "b")
    assert [request.header("authorization") for request in source.requests] == ["Bearer for-src1"]
    with pytest.raises(ClaimUnavailable, match="has to be fetched"):
        checked.authenticate(token)


def test_any_claim_that_an_expression_touches_is_fetched_and_no_other(issuer: Issuer, source: RoughServer) -> None:
    checked = authenticator(issuer, EXPRESSIONS)
    source.routes["/src1"] = reply(issuer.token("x", teams=["blue"]).encode())
    token = issuer.token("jane", **distributed(source, teams="src1", unused="src2"))
    assert asyncio.run(checked.authenticate_async(token)).groups == ("team:blue",)
    assert source.paths() == ["/src1"]


def test_a_rule_that_says_no_first_saves_the_fetch(issuer: Issuer, source: RoughServer) -> None:
    checked = authenticator(issuer, EXPRESSIONS, "[{expression: \"claims.sub == 'joe'\"}]")
    token = issuer.token("jane", **distributed(source, teams="src1"))
    with pytest.raises(ClaimRefused):
        asyncio.run(checked.authenticate_async(token))
    assert source.requests == []


def test_a_rule_over_a_fetched_claim(issuer: Issuer, source: RoughServer) -> None:
    checked = authenticator(issuer, rules="[{expression: \"has(claims.level) && claims.level == 'high'\"}]")
    token = issuer.token("jane", groups=[], **distributed(source, level="src1"))
    source.routes["/src1"] = reply(issuer.token("x", level="low").encode())
    with pytest.raises(ClaimRefused):
        asyncio.run(checked.authenticate_async(token))
    source.routes["/src1"] = reply(issuer.token("x", level="high").encode())
    assert asyncio.run(checked.authenticate_async(token)).username == "jane"


def test_an_aggregated_claim_is_used_without_a_network(issuer: Issuer) -> None:
    checked = authenticator(issuer, keys={issuer.url: issuer.jwks()})
    inner = issuer.token("x", groups=["inside"])
    token = issuer.token("jane", _claim_names={"groups": "s"}, _claim_sources={"s": {"JWT": inner}})
    assert checked.authenticate(token).groups == ("inside",)
    trace = checked.explain(token)
    assert trace.user is not None, trace.reason
    assert trace.user.groups == ("inside",)
    assert issuer.requests == []


def test_a_verdict_ends_with_the_claims_that_it_stands_on(issuer: Issuer, source: RoughServer) -> None:
    clock = FakeClock(time.time())
    checked = CachedAuthenticator(authenticator(issuer, clock=clock), clock=clock)
    short = issuer.token("ignored", expires_in=5, groups=["admins"])
    source.routes["/src1"] = reply(short.encode())
    fetched = issuer.token("jane", **distributed(source, groups="src1"))
    brought = issuer.token("joe", _claim_names={"groups": "s"}, _claim_sources={"s": {"JWT": short}})
    for token in (fetched, brought):
        verdict = asyncio.run(checked.decide_async(token))
        assert verdict.user.groups == ("admins",)
        assert 0 < verdict.expires_at - clock() <= 5
    assert checked.uncached.decide(brought).expires_at == verdict.expires_at
    clock.advance(5)
    for token in (fetched, brought):
        with pytest.raises(ClaimUnavailable, match="token is expired"):
            asyncio.run(checked.decide_async(token))


def test_the_explanation_fetches_nothing_and_says_so(issuer: Issuer, source: RoughServer) -> None:
    checked = authenticator(issuer, keys={issuer.url: issuer.jwks()})
    trace = checked.explain(issuer.token("jane", **distributed(source, groups="src1")))
    assert trace.user is None
    assert "has to be fetched" in trace.reason
    assert source.requests == []


def test_a_claim_that_cannot_be_had_refuses_the_token(issuer: Issuer, source: RoughServer) -> None:
    checked = authenticator(issuer)
    token = issuer.token("jane", **distributed(source, groups="src1"))
    with pytest.raises(ClaimUnavailable, match="404 Not Found") as caught:
        asyncio.run(checked.authenticate_async(token))
    assert caught.value.public_message == "a claim of the token cannot be fetched"


def test_a_claim_elsewhere_that_nothing_asks_for_changes_nothing(issuer: Issuer, source: RoughServer) -> None:
    checked = authenticator(issuer, 'username: {claim: sub, prefix: ""}')
    token = issuer.token("jane", **distributed(source, groups="src1"))
    assert asyncio.run(checked.authenticate_async(token)).groups == ()
    assert source.requests == []


# -- the result cache -----------------------------------------------------------------------------


class Counted:
    """An authenticator that counts how often it is really asked."""

    def __init__(self, inner: Authenticator) -> None:
        self._inner = inner
        self.key_sources = inner.key_sources
        self.keys_are_due = inner.keys_are_due
        self.refresh_keys = inner.refresh_keys
        self.asked = 0

    def decide(self, token: str, now: float | None = None) -> Any:
        self.asked += 1
        return self._inner.decide(token, now)

    async def decide_async(self, token: str, now: float | None = None) -> Any:
        self.asked += 1
        return await self._inner.decide_async(token, now)


def cached(issuer: Issuer, clock: FakeClock, **options: Any) -> tuple[CachedAuthenticator, Counted]:
    counted = Counted(authenticator(issuer, **options))
    return CachedAuthenticator(counted, clock=clock), counted  # type: ignore[arg-type]


def warm(issuer: Issuer, clock: FakeClock) -> tuple[CachedAuthenticator, Counted]:
    """With the keys at hand: when they come, everything decided before they did is forgotten."""
    checked, counted = cached(issuer, clock)
    asyncio.run(checked.authenticate_async(issuer.token("somebody")))
    assert len(checked.results) == 0
    counted.asked = 0
    return checked, counted


def test_a_result_is_decided_once_in_up_to_ten_seconds(issuer: Issuer) -> None:
    clock = FakeClock(time.time())
    checked, counted = warm(issuer, clock)
    token = issuer.token("jane")
    first = asyncio.run(checked.authenticate_async(token))
    clock.advance(7.5)  # how much longer hangs on the token
    assert asyncio.run(checked.authenticate_async(token)) == first
    assert checked.authenticate(token) == first
    assert counted.asked == 1
    clock.advance(2.5)
    assert checked.authenticate(token) == first
    assert counted.asked == 2


def test_a_remembered_result_ends_with_the_token(issuer: Issuer) -> None:
    clock = FakeClock(time.time())
    checked, _ = cached(issuer, clock)
    token = issuer.token("jane", expires_in=5)
    asyncio.run(checked.authenticate_async(token))
    clock.advance(5)
    with pytest.raises(TokenExpired):
        asyncio.run(checked.authenticate_async(token))


def test_a_refusal_is_remembered_for_two_seconds(issuer: Issuer) -> None:
    clock = FakeClock(time.time())
    checked, counted = warm(issuer, clock)
    expired = issuer.token("jane", expires_in=-60)
    for _ in range(5):
        with pytest.raises(TokenExpired):
            asyncio.run(checked.authenticate_async(expired))
    assert counted.asked == 1
    clock.advance(2)
    with pytest.raises(TokenExpired):
        asyncio.run(checked.authenticate_async(expired))
    assert counted.asked == 2


def test_a_withdrawn_key_ends_what_was_remembered(issuer: Issuer) -> None:
    clock, wall = FakeClock(), FakeClock(time.time())
    sources = sources_for(issuer, clock)
    checked, counted = cached(issuer, wall, key_sources=sources)
    old = issuer.token("jane")
    asyncio.run(checked.authenticate_async(old))  # brings the first keys, and is forgotten with what was before them
    for _ in range(2):
        asyncio.run(checked.authenticate_async(old))
    assert counted.asked == 2
    issuer.withdraw(issuer.kids[0])
    issuer.rotate()
    asyncio.run(checked.authenticate_async(issuer.token("joe")))  # brings the new keys in
    clock.advance(1)
    with pytest.raises(SignatureRefused):
        asyncio.run(checked.authenticate_async(old))


def test_an_issuer_that_is_down_is_not_remembered(issuer: Issuer) -> None:
    wall = FakeClock(time.time())
    clock = FakeClock()
    checked, _ = cached(issuer, wall, key_sources=sources_for(issuer, clock))
    issuer.fail_next(1)
    token = issuer.token("jane")
    with pytest.raises(KeysUnavailable):
        asyncio.run(checked.authenticate_async(token))
    clock.advance(10)
    assert asyncio.run(checked.authenticate_async(token)).username == "jane"


def test_what_only_the_network_can_tell_is_not_refused_for_those_who_may_ask_it(issuer: Issuer) -> None:
    wall = FakeClock(time.time())
    checked, _ = cached(issuer, wall)
    token = issuer.token("jane")
    with pytest.raises(KeysUnavailable):
        checked.authenticate(token)
    asyncio.run(checked.authenticate_async(token))
    issuer.rotate()
    newer = issuer.token("joe")
    with pytest.raises(SignatureRefused):
        checked.authenticate(newer)
    assert asyncio.run(checked.authenticate_async(newer)).username == "joe"


def test_an_unknown_key_is_refused_if_the_issuer_could_be_asked_and_else_not_decided(issuer: Issuer) -> None:
    """kube-apiserver remembers a refusal for minutes, and the key may be there in seconds."""
    clock, wall = FakeClock(), FakeClock(time.time())
    checked, counted = cached(issuer, wall, key_sources=sources_for(issuer, clock))
    decider = AuthenticatorDecider(checked, clock=wall)

    def decided(token: str) -> Decision:
        return asyncio.run(decider.decide(token))

    assert decided(issuer.token("jane")).outcome == "authenticated"
    claims = {"iss": issuer.url, "aud": "kubernetes", "sub": "jane", "exp": int(wall()) + 600}
    forged = issuer.sign(claims, headers={"kid": "made-up"})
    first = decided(forged)
    assert (first.outcome, first.rule) == ("refused", "SignatureRefused"), "the issuer said that it has no such key"
    asked = counted.asked
    assert decided(forged) == first._replace(cached=True), "which is remembered"
    assert counted.asked == asked

    issuer.rotate()
    newer = issuer.token("joe")
    waiting = decided(newer)
    assert (waiting.outcome, waiting.user) == ("failed", None), "nobody was asked: the last time is too short ago"
    assert waiting.public_message == "the token's signature cannot be verified"
    clock.advance(30)
    assert decided(newer).outcome == "authenticated"

    issuer.rotate()
    newest = issuer.token("ann")
    issuer.fail_next(10_000)
    clock.advance(30)
    assert decided(newest).outcome == "failed", "it was asked, and did not answer"


def test_nobody_is_asked_about_the_key_of_a_token_that_is_over(issuer: Issuer) -> None:
    clock, wall = FakeClock(), FakeClock(time.time())
    checked, _ = cached(issuer, wall, key_sources=sources_for(issuer, clock))
    decider = AuthenticatorDecider(checked, clock=wall)
    asyncio.run(decider.decide(issuer.token("jane")))
    issuer.withdraw(issuer.kids[0])
    issuer.rotate()
    asyncio.run(decider.decide(issuer.token("joe")))
    seen = len(issuer.requests)
    clock.advance(30)
    claims = {"iss": issuer.url, "aud": "kubernetes", "sub": "jane", "exp": int(wall())}
    decision = asyncio.run(decider.decide(issuer.sign(claims, headers={"kid": "of-last-year"})))
    assert (decision.outcome, decision.rule) == ("refused", "SignatureRefused")
    assert len(issuer.requests) == seen


def test_keys_that_are_given_are_all_there_are(issuer: Issuer) -> None:
    configured = load_configuration(configuration(issuer))
    checked = CachedAuthenticator(Authenticator(configured, keys={issuer.url: issuer.jwks()}))
    claims = {"iss": issuer.url, "aud": "kubernetes", "sub": "jane", "exp": int(time.time()) + 600}
    decision = AuthenticatorDecider(checked).decide_now(issuer.sign(claims, headers={"kid": "made-up"}))
    assert decision is not None
    assert decision.outcome == "refused"


def test_not_mine_is_not_remembered(issuer: Issuer) -> None:
    checked, counted = cached(issuer, FakeClock(time.time()))
    for _ in range(3):
        with pytest.raises(NotMine):
            asyncio.run(checked.authenticate_async("opaque"))
    assert counted.asked == 3
    assert len(checked.results) == 0
