"""Who a token is, by one AuthenticationConfiguration.

The decision is `_core.authentication.authenticate`, a plain function. Here is what it stands on: the clock, each
issuer's keys, and, for asynchronous callers, the fetching of what is missing.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any, NamedTuple

from kubeauthn._core.authentication import fetch_limits
from kubeauthn._core.authentication.authenticate import authenticate
from kubeauthn._core.authentication.claims import ClaimNeeded
from kubeauthn._core.authentication.compiled import NEWEST, CompiledConfiguration, compile_configuration
from kubeauthn._core.authentication.explain import explain
from kubeauthn._core.jose.keys import KeySet, parse_key_set
from kubeauthn.errors import ClaimUnavailable, KeysUnavailable, NotMine, SignatureRefused, TokenError, UsageError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from kubeauthn._core.authentication.model import AuthenticationConfiguration, JWTAuthenticator
    from kubeauthn._core.authentication.trace import Trace
    from kubeauthn._core.authentication.verdict import Authenticated, UserInfo
    from kubeauthn.server.distributed import ClaimSourceResolver, SourcesOfToken
    from kubeauthn.server.keysets import DiscoveredKeys
    from kubeauthn.server.keysource import KeySource


class GivenKeys:
    """A `KeySource` for keys that are given once and never change."""

    def __init__(self, keys: KeySet) -> None:
        self._keys = keys

    def keys_at_hand(self) -> KeySet | None:
        return self._keys

    async def newer_keys(self, than: KeySet | None) -> KeySet | None:
        return self._keys

    def answers(self) -> int | None:
        return None

    def on_change(self, callback: Callable[[], None]) -> None:
        """They never do."""


class _Newer(NamedTuple):
    """Whether other keys came, and whether there was somebody to say that there are none."""

    came: bool
    asked: bool


class Authenticator:
    """Decides about tokens. Threads and tasks may share it.

    `keys` are key sets by issuer URL, as the issuers publish them; an issuer that is not in it has no keys. Without
    `keys` each issuer is asked for its own. `key_sources` puts something else in their place, per issuer URL.
    """

    def __init__(
        self,
        config: AuthenticationConfiguration,
        keys: Mapping[str, Mapping[str, Any]] | None = None,
        *,
        key_sources: Mapping[str, KeySource] | None = None,
        kubernetes: str = NEWEST,
        clock: Callable[[], float] = time.time,
    ) -> None:
        if keys is not None and key_sources is not None:
            raise UsageError("keys are given or fetched from sources, not both")
        self._configuration: CompiledConfiguration = compile_configuration(config, kubernetes)
        self._clock = clock
        self._own_sources: tuple[DiscoveredKeys, ...] = ()
        self._looked_at = float("-inf")
        if keys is not None:
            key_sources = {url: GivenKeys(parse_key_set(document)) for url, document in keys.items()}
        elif key_sources is None:
            discovered = {entry.issuer.url: _discovered(entry, clock) for entry in config.jwt}
            self._own_sources = tuple(discovered.values())
            key_sources = discovered
        self._sources = dict(key_sources)
        self._at_hand = {url: source.keys_at_hand for url, source in self._sources.items()}
        self._resolvers: dict[str, ClaimSourceResolver] = {}

    @property
    def configuration(self) -> AuthenticationConfiguration:
        return self._configuration.configuration

    @property
    def key_sources(self) -> Mapping[str, KeySource]:
        """Where each issuer's keys come from."""
        return self._sources

    def authenticate(self, token: str, now: float | None = None) -> UserInfo:
        """Whose token this is, with keys and claims that are at hand. Raises TokenError or NotMine."""
        return self.decide(token, now).user

    async def authenticate_async(self, token: str, now: float | None = None) -> UserInfo:
        """The same; keys that are missing and claims that are elsewhere are fetched. Raises TokenError or NotMine."""
        return (await self.decide_async(token, now)).user

    def decide(self, token: str, now: float | None = None) -> Authenticated:
        """As `authenticate`, with the issuer and the time until which the verdict holds."""
        now = self._clock() if now is None else now
        try:
            return authenticate(self._configuration, token, now, self._keys_of)
        except ClaimNeeded:
            return self._decide_with({}, token, now)
        except SignatureRefused as error:
            source = self._sources.get(error.issuer)
            if source is not None and source.answers() is None:
                error.newer_keys_may_help = False
            raise

    async def decide_async(self, token: str, now: float | None = None) -> Authenticated:
        """As `authenticate_async`, with the issuer and the time until which the verdict holds."""
        if self.keys_are_due():
            await self.refresh_keys()
        now = self._clock() if now is None else now
        sourced: SourcesOfToken | None = None
        fetched: dict[str, Any] = {}
        keys_asked = False
        while True:
            try:
                verdict = authenticate(self._configuration, token, now, self._keys_of, fetched)
                return verdict if sourced is None else sourced.shortened(verdict)
            except KeysUnavailable as error:
                if keys_asked or not (await self._newer_keys(error.issuer)).came:
                    raise
                keys_asked = True
            except SignatureRefused as error:
                if keys_asked:
                    error.newer_keys_may_help = False  # they did not
                if not error.newer_keys_may_help:
                    raise
                newer = await self._newer_keys(error.issuer)
                if not newer.came:
                    error.newer_keys_may_help = not newer.asked
                    raise
                keys_asked = True
            except ClaimNeeded as needed:
                # Each round fetches a claim that was not there, and a token names a limited number of them.
                if sourced is None:
                    sourced = self._resolver(needed.issuer).for_token(needed.claims, now)
                fetched[needed.name] = await sourced.value(needed.name)

    def keys_are_due(self) -> bool:
        """Whether an issuer should be asked again for its keys: one that was withdrawn shall not serve for ever.

        `authenticate_async` sees to it itself. Who gives key sources of his own keeps them fresh.
        """
        if not self._own_sources or 0 <= time.monotonic() - self._looked_at < fetch_limits.DUE_LOOK_SECONDS:
            return False
        self._looked_at = time.monotonic()
        return any(source.is_due() for source in self._own_sources)

    async def refresh_keys(self) -> None:
        """Ask the issuers whose keys are due. Those that do not answer keep their last good ones."""
        from asyncio import gather  # not loaded where nobody waits

        await gather(*(source.refresh() for source in self._own_sources if source.is_due()))

    def explain(self, token: str, now: float | None = None, *, show_claims: bool = False) -> Trace:
        """Every step of the way, also after one that failed. Fetches nothing.

        The trace never holds a signature or a secret; the claims are in it only with `show_claims`.
        """
        return self.explain_sources(token, now, show_claims=show_claims)[0]

    def explain_sources(
        self, token: str, now: float | None = None, *, show_claims: bool = False
    ) -> tuple[Trace, dict[str, Any]]:
        """As `explain`, with the claims of aggregated sources that the token brought along."""
        now = self._clock() if now is None else now
        fetched: dict[str, Any] = {}
        problem = ""
        try:
            self._decide_with(fetched, token, now)
        except (NotMine, TokenError) as error:
            problem = str(error) if isinstance(error, ClaimUnavailable) else ""
        trace = explain(self._configuration, token, now, self._keys_of, fetched, show_claims=show_claims)
        return (trace._replace(reason=problem) if problem else trace), fetched

    def _keys_of(self, issuer: str) -> KeySet | None:
        at_hand = self._at_hand.get(issuer)
        return None if at_hand is None else at_hand()

    async def _newer_keys(self, issuer: str) -> _Newer:
        source = self._sources.get(issuer)
        if source is None:
            return _Newer(came=False, asked=True)
        before, answers = source.keys_at_hand(), source.answers()
        newer = await source.newer_keys(before)
        asked = answers is None or source.answers() != answers
        return _Newer(came=newer is not None and newer is not before, asked=asked)

    def _decide_with(self, fetched: dict[str, Any], token: str, now: float) -> Authenticated:
        """With aggregated claims, which the token brings along; what has to be fetched is refused."""
        sourced: SourcesOfToken | None = None
        while True:
            try:
                verdict = authenticate(self._configuration, token, now, self._keys_of, fetched)
                return verdict if sourced is None else sourced.shortened(verdict)
            except ClaimNeeded as needed:
                if sourced is None:
                    sourced = self._resolver(needed.issuer).for_token(needed.claims, now)
                fetched[needed.name] = sourced.value_at_hand(needed.name)

    def _resolver(self, issuer: str) -> ClaimSourceResolver:
        found = self._resolvers.get(issuer)
        if found is None:
            from kubeauthn.server.distributed import ClaimSourceResolver

            config = self._configuration.by_issuer[issuer].config.issuer
            made = ClaimSourceResolver(config, self._sources[issuer], known=self._sources, clock=self._clock)
            found = self._resolvers.setdefault(issuer, made)
        return found


def _discovered(entry: JWTAuthenticator, clock: Callable[[], float]) -> DiscoveredKeys:
    from kubeauthn.server.keysets import DiscoveredKeys

    return DiscoveredKeys(entry.issuer, clock=clock)
