"""What became of a token, as the doors of the server (TokenReview, forward-auth, middleware) see it.

A door asks a `Decider` and never catches anything: a bad token is a `Decision` too. `decide_now` answers from what is
at hand and is a plain call; where something has to be fetched first it returns None, and `decide` waits for it::

    decision = decider.decide_now(token)
    if decision is None:
        decision = await decider.decide(token)

Extensions (revocation, introspection, audit) are deciders around a decider.
"""

from __future__ import annotations

import logging
import time
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, Protocol

from kubeauthn._core.authentication.verdict import may_change
from kubeauthn.errors import NotMine, TokenError

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import TracebackType

    from kubeauthn._core.authentication.verdict import Authenticated, UserInfo
    from kubeauthn.server.cache import CachedAuthenticator

    Outcome = Literal["authenticated", "not_mine", "refused", "failed"]

_log = logging.getLogger("kubeauthn.server")

_new = tuple.__new__  # half of what calling the class takes
_KEPT_DECISIONS = 4096
"""Decisions about tokens that are asked for again and again, kept ready to hand out."""


class Decision(NamedTuple):
    """One token's outcome.

    `refused` is about the token, `failed` about the world (keys or a claim that cannot be had, a new key id while the
    issuer may not be asked again, a fault of ours): the same token may be good a moment later. `reason` is the whole of
    it and for the log alone, because it may hold claims; `public_message` is what the sender may be told. Neither ever
    holds the token.
    """

    outcome: Outcome
    user: UserInfo | None
    public_message: str
    reason: str
    issuer: str | None
    rule: str | None
    """The field of the configuration that refused it, or the kind of reason (`TokenExpired`)."""
    expires_at: float | None
    """The token's `exp`, in unix seconds: nobody may rely on the decision for longer."""
    cached: bool
    answers: dict[Any, Any] | None = None
    """What the doors made of a decision that is handed out again and again; None for one that is not."""

    def __repr__(self) -> str:
        return f"Decision({self.outcome}, issuer {self.issuer}, rule {self.rule}, cached {self.cached})"


class Decider(Protocol):
    """Never raises for a token, however bad."""

    def decide_now(self, token: str) -> Decision | None:
        """With what is at hand. None: something must be fetched first, ask `decide`."""

    async def decide(self, token: str) -> Decision:
        """The same, and waits for what has to be fetched."""


NO_ISSUER_MADE_IT = "no issuer of the configuration made this token"
NOT_MINE = Decision("not_mine", None, NO_ISSUER_MADE_IT, NO_ISSUER_MADE_IT, None, "NotMine", None, cached=False)


class AuthenticatorDecider:
    """By one configuration: its `Authenticator`, with its results remembered."""

    __slots__ = ("_authenticator", "_clock", "_kept", "_results", "_uncached")

    def __init__(self, authenticator: CachedAuthenticator, *, clock: Callable[[], float] = time.time) -> None:
        self._authenticator = authenticator
        self._results = authenticator.results
        self._uncached = authenticator.uncached
        self._clock = clock
        self._kept: dict[int, tuple[Authenticated, Decision]] = {}

    def decide_now(self, token: str) -> Decision | None:
        now = self._clock()
        results = self._results
        generation = results.generation
        key = results.key(token)
        try:
            found = results.at(key, now)
            if found is not None:
                return _refusal(found, cached=True) if isinstance(found, TokenError) else self._known(found)
            result = self._uncached.decide(token, now)
        except NotMine:
            return NOT_MINE
        except TokenError as error:
            if may_change(error):
                return None
            results.remember(token, error, now, generation, key)
            return _refusal(error, cached=False)
        except Exception as error:
            return _fault(error)
        results.remember(token, result, now, generation, key)
        user, issuer, expires_at = result
        return _new(Decision, ("authenticated", user, "", "", issuer, None, expires_at, False, None))

    async def decide(self, token: str) -> Decision:
        if self._uncached.keys_are_due():
            await self._uncached.refresh_keys()
        decision = self.decide_now(token)
        if decision is not None:
            return decision
        try:
            result = await self._authenticator.decide_async(token, self._clock())
        except NotMine:
            return NOT_MINE
        except TokenError as error:
            return _refusal(error, cached=False)
        except Exception as error:
            return _fault(error)
        return Decision("authenticated", result.user, "", "", result.issuer, None, result.expires_at, cached=False)

    def _known(self, result: Authenticated) -> Decision:
        """The cache hands out one object again and again; so does this. Its id is its own, for it is held."""
        kept = self._kept.get(id(result))
        if kept is not None and kept[0] is result:
            return kept[1]
        decision = Decision("authenticated", result.user, "", "", result.issuer, None, result.expires_at, True, {})
        if len(self._kept) >= _KEPT_DECISIONS:
            self._kept = {}
        self._kept[id(result)] = (result, decision)
        return decision


def _refusal(error: TokenError, *, cached: bool) -> Decision:
    outcome: Outcome = "failed" if may_change(error) else "refused"
    rule = error.rule or type(error).__name__
    return Decision(outcome, None, error.public_message, str(error), error.issuer or None, rule, None, cached)


def _fault(error: Exception) -> Decision:
    """Of ours: refused, and nothing of the text goes anywhere, because nobody knows what it quotes."""
    kind = type(error).__name__
    _log.error("a token could not be decided about: unexpected %s", kind, exc_info=place_only(error))
    reason = f"unexpected {kind}"
    return Decision("failed", None, "internal error", reason, None, kind, None, cached=False)


def place_only(error: Exception) -> tuple[type[BaseException], BaseException, TracebackType | None]:
    """For a log: where it happened, without a text that may quote anything."""
    return RuntimeError, RuntimeError(f"{type(error).__name__}, its text withheld"), error.__traceback__
