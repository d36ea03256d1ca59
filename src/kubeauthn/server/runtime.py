"""What one worker decides by: the configuration in force, and the one that is being prepared.

A reload has two phases, so that all workers change together. `prepare` builds everything and waits for the issuers;
`commit` is one assignment. A configuration comes with a cache of its own, so no answer of the old one survives.
"""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING

from kubeauthn._core.authentication.load import load_configuration
from kubeauthn.errors import EnvironmentFailure
from kubeauthn.server import limits
from kubeauthn.server.authenticator import Authenticator
from kubeauthn.server.cache import CachedAuthenticator
from kubeauthn.server.decisions import AuthenticatorDecider, Decider, Decision
from kubeauthn.server.issuer_keys import IssuerKeys, KeysOfGeneration

if TYPE_CHECKING:
    from kubeauthn._core.authentication.model import AuthenticationConfiguration, Issuer
    from kubeauthn.server.key_store import KeyStore

_log = logging.getLogger("kubeauthn.server")


class DeciderSwitch:
    """Always the decider of the configuration in force. Until there is one, nobody is authenticated."""

    __slots__ = ("inner",)

    def __init__(self) -> None:
        self.inner: Decider | None = None

    def decide_now(self, token: str) -> Decision | None:
        return _NOT_READY if self.inner is None else self.inner.decide_now(token)

    async def decide(self, token: str) -> Decision:
        return _NOT_READY if self.inner is None else await self.inner.decide(token)


_NOT_READY = Decision("failed", None, "not ready yet", "no configuration is in force", None, None, None, cached=False)


class Generation:
    """One configuration with all that deciding by it takes."""

    def __init__(self, number: int, configuration: AuthenticationConfiguration, keys: dict[str, IssuerKeys]) -> None:
        self.number = number
        self.configuration = configuration
        self.keys = keys
        sources = {url: KeysOfGeneration(found, self) for url, found in keys.items()}
        self.authenticator = Authenticator(configuration, key_sources=sources)
        self.decider = AuthenticatorDecider(CachedAuthenticator(self.authenticator))

    def retire(self) -> None:
        for keys in self.keys.values():
            keys.forget(self)


class Runtime:
    """`switch` is the decider that the doors ask."""

    def __init__(self, store: KeyStore | None = None) -> None:
        self._store = store
        self.switch = DeciderSwitch()
        self.current: Generation | None = None
        self._prepared: Generation | None = None

    async def prepare(self, number: int, text: str, *, patient: bool) -> None:
        """Raises KubeauthnError if the text is not right or, with `patient`, an issuer stays unhealthy."""
        configuration = load_configuration(text)
        keys = {entry.issuer.url: self._keys(entry.issuer) for entry in configuration.jwt}
        self.abort()
        self._prepared = generation = Generation(number, configuration, keys)
        for found in keys.values():
            found.start()
        if patient:
            await _healthy(keys)
        if self._prepared is not generation:
            raise EnvironmentFailure("a newer configuration took its place")

    def commit(self, number: int) -> None:
        """From here on every token is decided about by the prepared configuration."""
        if self._prepared is None or self._prepared.number != number:
            raise EnvironmentFailure(f"generation {number} is not the one that was prepared")
        before, self.current, self._prepared = self.current, self._prepared, None
        self.switch.inner = self.current.decider
        if before is not None:
            self._drop(before)

    def abort(self) -> None:
        """What was prepared is given up; what is in force stays."""
        given_up, self._prepared = self._prepared, None
        if given_up is not None:
            self._drop(given_up)

    def stop(self) -> None:
        for generation in (self.current, self._prepared):
            for keys in generation.keys.values() if generation else ():
                keys.stop()

    def _keys(self, issuer: Issuer) -> IssuerKeys:
        """Those of the configuration in force, if the entry is the same in every respect that leads to keys."""
        known = self.current.keys.get(issuer.url) if self.current else None
        if known is not None and _same_source(known.issuer, issuer):
            return known
        return IssuerKeys(issuer, self._store)

    def _drop(self, generation: Generation) -> None:
        generation.retire()
        in_use = {id(keys) for kept in (self.current, self._prepared) if kept for keys in kept.keys.values()}
        for keys in generation.keys.values():
            if id(keys) not in in_use:
                keys.stop()


def _same_source(one: Issuer, other: Issuer) -> bool:
    """Audiences may differ: they have nothing to do with where the keys are, but claim sources are checked by them."""
    return (one.url, one.discovery_url, one.certificate_authority) == (
        other.url,
        other.discovery_url,
        other.certificate_authority,
    )


async def _healthy(keys: dict[str, IssuerKeys]) -> None:
    waits = [asyncio.ensure_future(found.arrived()) for found in keys.values()]
    if not waits:
        return
    try:
        _, late = await asyncio.wait(waits, timeout=limits.HEALTHY_SECONDS)
    finally:  # also where it is given up meanwhile: nobody else ends them
        for wait in waits:
            wait.cancel()
    if late:
        sick = [f"{url} ({found.status.failure or 'no answer'})" for url, found in keys.items() if not _has(found)]
        raise EnvironmentFailure(f"unhealthy issuers: {', '.join(sick)}")


def _has(found: IssuerKeys) -> bool:
    return found.keys_at_hand() is not None
