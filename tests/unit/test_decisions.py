"""A decider never raises for a token, and tells refused from failed."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

import pytest

from kubeauthn._core.authentication.verdict import Authenticated
from kubeauthn.server import Authenticator, load_configuration
from kubeauthn.server.cache import CachedAuthenticator
from kubeauthn.server.decisions import AuthenticatorDecider

ISSUER = "https://issuer.example"
CONFIGURATION = f"""
apiVersion: apiserver.config.k8s.io/v1
kind: AuthenticationConfiguration
jwt:
- issuer: {{url: {ISSUER}, audiences: [a]}}
  claimMappings: {{username: {{claim: sub, prefix: ""}}}}
"""


def decider(authenticator: Any) -> AuthenticatorDecider:
    return AuthenticatorDecider(CachedAuthenticator(authenticator))


def without_keys() -> Authenticator:
    return Authenticator(load_configuration(CONFIGURATION), keys={})


TOKEN = "eyJhbGciOiJSUzI1NiJ9.eyJpc3MiOiJodHRwczovL2lzc3Vlci5leGFtcGxlIn0.AAAA"


def test_nobodys_token_and_garbage() -> None:
    decide = decider(without_keys())
    other = decide.decide_now("eyJhbGciOiJSUzI1NiJ9.eyJpc3MiOiJvdGhlciJ9.AAAA")
    assert other is not None
    assert (other.outcome, other.user) == ("not_mine", None)
    garbage = decide.decide_now("garbage")
    assert garbage is not None
    assert garbage.outcome in ("not_mine", "refused")


def test_keys_that_are_not_there_are_waited_for_and_then_it_failed() -> None:
    decide = decider(without_keys())
    assert decide.decide_now(TOKEN) is None
    decision = asyncio.run(decide.decide(TOKEN))
    assert (decision.outcome, decision.public_message) == ("failed", "the token's issuer cannot be reached")
    assert decision.issuer == ISSUER


def test_a_fault_of_ours_refuses_and_quotes_nothing(caplog: pytest.LogCaptureFixture) -> None:
    class Broken:
        key_sources: Mapping[str, Any] = MappingProxyType({})

        def decide(self, token: str, now: float) -> Authenticated:
            raise ZeroDivisionError(f"with {token}")

    decision = decider(Broken()).decide_now("s3cret-token")
    assert decision is not None
    assert (decision.outcome, decision.reason) == ("failed", "unexpected ZeroDivisionError")
    assert "s3cret-token" not in caplog.text
