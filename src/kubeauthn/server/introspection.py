"""Opaque tokens, asked about at an introspection endpoint (RFC 7662). An extension of ours, off by default.

A decider around a decider: only what the inner one calls not mine, and what carries no claims of its own, is asked
about. What the endpoint tells goes through the claim rules and mappings of one issuer of the configuration. Answers,
not verdicts, are remembered: a changed configuration or a revocation counts for them at once.
"""

from __future__ import annotations

import asyncio
import logging
import secrets
import time
from hashlib import sha256
from typing import TYPE_CHECKING, Any

from kubeauthn._core.authentication.introspected import authenticate_introspected, may_be_introspected, told_claims
from kubeauthn._core.authentication.result_cache import ResultTable
from kubeauthn._core.revocation import identity_of
from kubeauthn.errors import EnvironmentFailure, KubeauthnError, TokenError
from kubeauthn.server.decisions import Decision
from kubeauthn.server.revocation import refused

if TYPE_CHECKING:
    from collections.abc import Callable

    from kubeauthn._core.authentication.compiled import CompiledConfiguration
    from kubeauthn.server.decisions import Decider
    from kubeauthn.server.introspection_client import IntrospectionEndpoint
    from kubeauthn.server.revocation import RevocationCheck

_log = logging.getLogger("kubeauthn.server.introspection")

ANSWER_SECONDS = 10.0
INACTIVE_SECONDS = 2.0
"""How long an answer is remembered, and one that says no: kube-apiserver sends every token that nobody else takes."""
ANSWERS = 20_000
ANSWERS_BYTES = 24 << 20
_INACTIVE = b'{"active":false}'


class IntrospectionDecider:
    """`configuration` returns the one in force; `check` is for revocations, which go by the claims."""

    def __init__(
        self,
        inner: Decider,
        endpoint: IntrospectionEndpoint,
        configuration: Callable[[], CompiledConfiguration],
        *,
        issuer: str,
        token_prefix: str = "",
        check: RevocationCheck | None = None,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._inner = inner
        self._endpoint = endpoint
        self._configuration = configuration
        self._issuer = issuer
        self._prefix = token_prefix
        self._check = check
        self._clock = clock
        self._keyed = sha256(secrets.token_bytes(64))
        self._answers = ResultTable(ANSWER_SECONDS, ANSWERS, ANSWERS_BYTES)
        self._inactive = ResultTable(INACTIVE_SECONDS, ANSWERS, ANSWERS_BYTES)
        self._asking: dict[bytes, asyncio.Future[bytes]] = {}

    def decide_now(self, token: str) -> Decision | None:
        decision = self._inner.decide_now(token)
        if decision is None or decision.outcome != "not_mine" or not may_be_introspected(token, self._prefix):
            return decision
        return None

    async def decide(self, token: str) -> Decision:
        decision = await self._inner.decide(token)
        if decision.outcome != "not_mine" or not may_be_introspected(token, self._prefix):
            return decision
        key = self._hash(token)
        now = self._clock()
        found = self._answers.get(key, now) or self._inactive.get(key, now)
        try:
            answer = found[1] if found is not None else await self._asked(key, token)
        except EnvironmentFailure as error:
            _log.warning("a token could not be introspected: %s", error)
            return self._failed(str(error))
        return await self._decided(answer, cached=found is not None)

    async def _decided(self, answer: bytes, *, cached: bool) -> Decision:
        try:
            claims = told_claims(answer, self._issuer)
        except ValueError:
            return self._failed(f"{self._endpoint.place} answered no introspection response")
        except TokenError as error:
            return self._refused(error, cached=cached)
        try:
            result = authenticate_introspected(self._configuration(), claims, self._clock(), self._issuer)
        except TokenError as error:
            return self._refused(error, cached=cached)
        except KubeauthnError as error:  # the configuration has lost the issuer since
            return self._failed(str(error))
        decision = Decision(
            "authenticated", result.user, "", "", self._issuer, None, result.expires_at, cached=cached
        )  # fmt: skip
        return decision if self._check is None else await self._unless_revoked(decision, claims, self._check)

    async def _unless_revoked(self, decision: Decision, claims: dict[str, Any], check: RevocationCheck) -> Decision:
        try:
            identity = identity_of(self._issuer, claims)
        except ValueError as error:
            return refused(decision, f"{error}, so nobody can tell whether the token is revoked")
        return await check.checked(decision, identity)

    async def _asked(self, key: bytes, token: str) -> bytes:
        """The endpoint's answer; whoever brings the same token meanwhile waits for it too."""
        asking = self._asking.get(key)
        if asking is None:
            asking = asyncio.ensure_future(self._ask(key, token))
            self._asking[key] = asking
            asking.add_done_callback(lambda done: self._forget(key, done))
        # Shielded: one caller who goes away must not end it for the others.
        return await asyncio.shield(asking)

    async def _ask(self, key: bytes, token: str) -> bytes:
        answer = await self._endpoint.ask(token)
        now = self._clock()
        try:
            claims = told_claims(answer, self._issuer)
        except ValueError:
            return answer  # of the endpoint, not of the token: not remembered
        except TokenError:
            self._inactive.put(key, answer if len(answer) < 1024 else _INACTIVE, now, float("inf"))
            return answer
        expiry = dict.get(claims, "exp")
        ends = expiry if type(expiry) is float else float("inf")
        self._answers.put(key, answer, now, ends)
        return answer

    def _forget(self, key: bytes, done: asyncio.Future[bytes]) -> None:
        self._asking.pop(key, None)
        if not done.cancelled():
            done.exception()  # seen, even where every caller has gone away

    def _hash(self, token: str) -> bytes:
        digest = self._keyed.copy()
        digest.update(token.encode("ascii"))
        return digest.digest()

    def _refused(self, error: TokenError, *, cached: bool) -> Decision:
        rule = error.rule or type(error).__name__
        return Decision("refused", None, error.public_message, str(error), self._issuer, rule, None, cached)

    def _failed(self, reason: str) -> Decision:
        public = "the token cannot be introspected"
        return Decision("failed", None, public, reason, self._issuer, "introspection", None, cached=False)
