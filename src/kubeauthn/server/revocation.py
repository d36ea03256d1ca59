"""Revocation: a decider around a decider, that refuses what a list names. An extension of ours, off by default.

It stands outside the cache of results, so a token that was good a second ago is refused as soon as a source names it.
The claims it goes by are read from the token once the decider inside has found that very text good.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, Protocol

from kubeauthn._core.authentication.token import read_token
from kubeauthn._core.revocation import TokenIdentity, identity_of
from kubeauthn.errors import EnvironmentFailure, NotMine
from kubeauthn.server.decisions import Decision

if TYPE_CHECKING:
    from collections.abc import Sequence

    from kubeauthn.server.decisions import Decider

    WhenUnavailable = Literal["refuse", "allow"]

_log = logging.getLogger("kubeauthn.server.revocation")

PUBLIC_REVOKED = "the token is revoked"
PUBLIC_UNAVAILABLE = "whether the token is revoked cannot be told"
RULE = "revocation"


class RevocationSource(Protocol):
    """Knows what is revoked. Both return the reason, or "" for a token that counts."""

    def reason_now(self, identity: TokenIdentity) -> str | None:
        """None where somebody else has to be asked. Raises EnvironmentFailure."""

    async def reason(self, identity: TokenIdentity) -> str:
        """Within a bounded time. Raises EnvironmentFailure."""

    async def close(self) -> None:
        """Nobody asks any more."""


@dataclass(frozen=True, slots=True)
class RevocationCheck:
    """All sources. A token that one of them names is refused, whatever the others say or fail to say.

    `unavailable` says what becomes of a token when a source cannot be asked: `refuse` or `allow`.
    """

    sources: Sequence[RevocationSource]
    unavailable: WhenUnavailable = "refuse"

    def checked_now(self, decision: Decision, identity: TokenIdentity) -> Decision | None:
        """The decision, or one that refuses. None where a source has to be asked first."""
        missing = ""
        waiting = False
        for source in self.sources:
            try:
                reason = source.reason_now(identity)
            except EnvironmentFailure as error:
                missing = missing or str(error)
                continue
            if reason:
                return refused(decision, reason)
            waiting = waiting or reason is None
        return None if waiting else self._unless_missing(decision, missing)

    async def checked(self, decision: Decision, identity: TokenIdentity) -> Decision:
        missing = ""
        for source in self.sources:
            try:
                reason = await source.reason(identity)
            except EnvironmentFailure as error:
                missing = missing or str(error)
                continue
            if reason:
                return refused(decision, reason)
        return self._unless_missing(decision, missing)

    def _unless_missing(self, decision: Decision, missing: str) -> Decision:
        if not missing:
            return decision
        if self.unavailable == "allow":
            _log.warning("a token is let through although revocations cannot be asked: %s", missing)
            return decision
        return Decision(
            "failed", None, PUBLIC_UNAVAILABLE, missing, decision.issuer, RULE, None, cached=False
        )  # fmt: skip


class RevocationDecider:
    """A decider for tokens that carry their claims. What is opaque is checked where its claims come from."""

    def __init__(self, inner: Decider, check: RevocationCheck) -> None:
        self._inner = inner
        self._check = check

    def decide_now(self, token: str) -> Decision | None:
        decision = self._inner.decide_now(token)
        if decision is None or decision.outcome != "authenticated":
            return decision
        identity = _identity(token, decision)
        return self._check.checked_now(decision, identity) if isinstance(identity, TokenIdentity) else identity

    async def decide(self, token: str) -> Decision:
        decision = await self._inner.decide(token)
        if decision.outcome != "authenticated":
            return decision
        identity = _identity(token, decision)
        return await self._check.checked(decision, identity) if isinstance(identity, TokenIdentity) else identity


def _identity(token: str, decision: Decision) -> TokenIdentity | Decision:
    """Who the token says it is: the issuer's own words, because this text was verified just now. Or a refusal."""
    try:
        return identity_of(decision.issuer or "", read_token(token).untrusted_claims)
    except NotMine:
        return refused(decision, "its claims cannot be read, so nobody can tell whether it is revoked")
    except ValueError as error:
        return refused(decision, f"{error}, so nobody can tell whether the token is revoked")


def refused(decision: Decision, reason: str) -> Decision:
    """The same token, refused."""
    return Decision(
        "refused", None, PUBLIC_REVOKED, reason, decision.issuer, RULE, None, cached=False
    )  # fmt: skip
