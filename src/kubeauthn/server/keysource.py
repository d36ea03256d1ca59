"""The ports between deciding about a token and the network: where keys come from, and where claims of sources do.

`Authenticator` (server/authenticator.py) stands on these two and knows no HTTP. Offline, `keys_at_hand` returns the
given key set for ever and `newer_keys` returns it too; with discovery both are `keysets.DiscoveredKeys`. Claim sources
are resolved by `distributed.ClaimSourceResolver`.

How the path uses them:

1. `keys_at_hand()` is None: synchronous callers refuse with "oidc: authenticator not initialized"; asynchronous ones
   `await newer_keys(None)` first, and refuse if that is None too.
2. No key for the token's `kid`: asynchronous callers `await newer_keys(keys)` once. What comes back is another object
   if there is something newer; the same object means: refuse. The cool-down is the source's business; where it, or an
   issuer that is down, left the question open (`answers` are as many as before), the refusal says so.
3. A claim is needed that a source holds: asynchronous callers make one `resolver.for_token(claims, now)` for the token
   and `await sources.value(name)` for each such claim; synchronous ones call `sources.value_at_hand(name)`.
4. `on_change(callback)`: called after every change of the keys, so that the result cache is emptied.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from kubeauthn._core.authentication.verdict import Authenticated
    from kubeauthn._core.jose.keys import KeySet


class KeySource(Protocol):
    """One issuer's keys."""

    def keys_at_hand(self) -> KeySet | None:
        """The last good key set; None until there was one. Never waits; any thread may ask."""

    async def newer_keys(self, than: KeySet | None) -> KeySet | None:
        """What is at hand if it is not `than`; else the issuer is asked, at most once per cool-down by all callers."""

    def answers(self) -> int | None:
        """How often the issuer has answered with good keys; None where nobody is ever asked."""

    def on_change(self, callback: Callable[[], None]) -> None:
        """Call this after each change of the keys."""


class ClaimResolver(Protocol):
    """One issuer's distributed and aggregated claims."""

    def for_token(self, claims: Mapping[str, Any], now: float) -> TokenSources:
        """For one token with these verified claims. Fetches nothing yet."""


class TokenSources(Protocol):
    """The claim sources of one token: each is asked once, and all together have one limit of time."""

    def shortened(self, verdict: Authenticated) -> Authenticated:
        """The verdict, which ends no later than the tokens of the sources that were asked."""

    def value_at_hand(self, name: str) -> Any:
        """For synchronous callers: never waits. Raises ClaimUnavailable where it would have to."""

    async def value(self, name: str) -> Any:
        """The value of a claim that the token does not hold but names a source for. Raises ClaimUnavailable."""
