"""Distributed and aggregated claims: fetched from their sources, verified as tokens of their own issuers.

The rules (OpenID Connect Core 5.6.2, and kube-apiserver's where it has any):

- https only, with the system's roots or the issuer's CA; no redirect to another host; 1 MiB; five seconds for a token
- never at a loopback or link-local address unless the configured issuer itself is there
- an access token goes to its own endpoint alone
- the answer is a token of its own, with a signature of its own issuer and the same audiences as the token
- no chains: what that token holds is taken, what it says is elsewhere is not
"""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from http import HTTPStatus
from typing import Any
from urllib.parse import urlsplit

from kubeauthn._core.authentication import fetch_limits
from kubeauthn._core.authentication.claim_sources import (
    Aggregated,
    ClaimSource,
    check_inner_tokens,
    local_kind,
    source_of,
)
from kubeauthn._core.authentication.model import Issuer
from kubeauthn._core.authentication.source_token import claims_of_source_token, payload_fault
from kubeauthn._core.authentication.token import UntrustedToken, read_token, untrusted_issuer
from kubeauthn._core.authentication.verdict import Authenticated
from kubeauthn._core.jose.go_json import kind
from kubeauthn._core.jose.keys import KeySet
from kubeauthn.cel.go_text import quote
from kubeauthn.errors import ClaimUnavailable, EnvironmentFailure, NotMine, SignatureRefused, TokenError
from kubeauthn.server.discovery import Documents
from kubeauthn.server.keysets import DiscoveredKeys
from kubeauthn.server.keysource import KeySource


class ClaimSourceResolver:
    """The claim sources that one configured issuer's tokens may name.

    `known` are the keys of other issuers that are configured or given; those of strangers are found by discovery.
    """

    def __init__(
        self,
        issuer: Issuer,
        keys: KeySource,
        *,
        known: Mapping[str, KeySource] | None = None,
        documents: Documents | None = None,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._issuer = issuer
        self._documents = documents or source_documents(issuer)
        self._clock = clock
        self._known = {**(known or {}), issuer.url: keys}
        self._found: dict[str, KeySource] = {}
        self._lock = threading.Lock()

    def for_token(self, claims: dict[str, Any], now: float) -> SourcesOfToken:
        """For one token with these verified claims."""
        return SourcesOfToken(self, claims, now)

    async def token_from(self, source: ClaimSource, name: str) -> str:
        if isinstance(source, Aggregated):
            return source.token.reveal()
        failure = ""
        try:
            answer = await self._documents.get(
                source.endpoint, seconds=fetch_limits.SOURCE_SECONDS, bearer=source.access_token
            )
            if not 200 <= answer.status <= 226:
                told = f"{answer.status} {_phrase(answer.status)}".rstrip()
                failure = f"error while getting distributed claim JWT: {told}"
        except EnvironmentFailure as error:
            failure = str(error)
        if failure:
            raise _unavailable(f"while getting distributed claim {quote(name)}: {failure}")
        return answer.body.decode("utf-8", "replace").strip(" \t\r\n")

    def claims_at_hand(self, text: str, source: ClaimSource, name: str, now: float) -> dict[str, Any]:
        """The claims of a source's token, with keys that are at hand."""
        token = _read(text, source, name)
        keys_from = self._key_source(token)
        return self._verified(token, keys_from, keys_from.keys_at_hand(), now)

    async def claims(self, text: str, source: ClaimSource, name: str, now: float) -> dict[str, Any]:
        """The claims of a source's token; its issuer is asked for keys if need be."""
        token = _read(text, source, name)
        keys_from = self._key_source(token)
        if isinstance(keys_from, DiscoveredKeys) and keys_from.is_due():
            await keys_from.refresh()
        keys = keys_from.keys_at_hand() or await keys_from.newer_keys(None)
        try:
            return self._verified(token, keys_from, keys, now)
        except ClaimUnavailable as error:
            if not _newer_keys_may_help(error.__cause__):
                raise
            newer = await keys_from.newer_keys(keys)
            if newer is keys:
                raise
        return self._verified(token, keys_from, newer, now)

    def _verified(self, token: UntrustedToken, keys_from: KeySource, keys: KeySet | None, now: float) -> dict[str, Any]:
        if keys is None:
            issuer = untrusted_issuer(token.untrusted_claims)
            why = keys_from.status.failure if isinstance(keys_from, DiscoveredKeys) else ""
            raise _unavailable(
                f"verifying untrusted issuer {issuer} failed: verifier not initialized for issuer: {quote(issuer)}"
                + (f": {why}" if why else "")
            )
        try:
            return claims_of_source_token(token, keys, self._issuer, now)
        except TokenError as error:
            reason = str(error).removeprefix("oidc: verify token: ")
            raise _unavailable(f"verify distributed claim token: {reason}") from error

    def _key_source(self, token: UntrustedToken) -> KeySource:
        issuer = untrusted_issuer(token.untrusted_claims)
        if issuer in self._known:
            return self._known[issuer]
        with self._lock:
            found = self._found.pop(issuer, None)
            if found is None:
                config = Issuer(issuer, certificate_authority=self._issuer.certificate_authority)
                found = DiscoveredKeys(config, documents=self._documents, clock=self._clock)
                if len(self._found) >= fetch_limits.SOURCE_ISSUERS:
                    del self._found[next(iter(self._found))]
            self._found[issuer] = found  # at the end: the one that was not asked for longest goes first
        return found


class SourcesOfToken:
    """One token's claims of sources. Each source is asked once, however many of its claims are needed."""

    def __init__(self, resolver: ClaimSourceResolver, claims: dict[str, Any], now: float) -> None:
        self._resolver = resolver
        self._claims = claims
        self._now = now
        self._fetched: dict[ClaimSource, dict[str, Any]] = {}
        self._deadline: float | None = None

    def shortened(self, verdict: Authenticated) -> Authenticated:
        """A verdict that stands on claims of sources ends with the first of their tokens."""
        ends: float = min((int(claims["exp"]) for claims in self._fetched.values()), default=verdict.expires_at)
        return verdict._replace(expires_at=ends) if ends < verdict.expires_at else verdict

    def value_at_hand(self, name: str) -> Any:
        """For who must not wait: the claim of an aggregated source whose issuer's keys are at hand."""
        source = self._source(name)
        if source not in self._fetched:
            if not isinstance(source, Aggregated):
                raise _unavailable(f"claim {quote(name)} has to be fetched, which only an asynchronous caller does")
            text = source.token.reveal()
            self._fetched[source] = self._resolver.claims_at_hand(text, source, name, self._now)
        return self._value(name, source)

    async def value(self, name: str) -> Any:
        """The claim, fetched if need be. Raises ClaimUnavailable."""
        source = self._source(name)
        if source not in self._fetched:
            if self._deadline is None:
                self._deadline = asyncio.get_running_loop().time() + fetch_limits.SOURCE_SECONDS
            try:
                async with asyncio.timeout_at(self._deadline):
                    text = await self._resolver.token_from(source, name)
                    self._fetched[source] = await self._resolver.claims(text, source, name, self._now)
            except TimeoutError:
                limit = f"{fetch_limits.SOURCE_SECONDS:g} s"
                raise _unavailable(f"while getting distributed claim {quote(name)}: not done within {limit}") from None
        return self._value(name, source)

    def _source(self, name: str) -> ClaimSource:
        source = source_of(self._claims, name)
        if source is None:
            raise _unavailable(f"claim {quote(name)} has no source that may hold it")
        check_inner_tokens(self._claims)
        return source

    def _value(self, name: str, source: ClaimSource) -> Any:
        claims = self._fetched[source]
        # Not `claims[name]` alone: what the source says is elsewhere again is not there.
        if name not in claims:
            told = "aggregated claim source"
            if not isinstance(source, Aggregated):
                told = f"distributed claim endpoint {quote(source.endpoint)}"
            raise _unavailable(f"jwt returned by {told} did not contain claim: {name}")
        return dict.__getitem__(claims, name)  # also one that cannot be read: whoever uses it says so


def source_documents(issuer: Issuer) -> Documents:
    """Documents from claim sources: trusted through public roots or the issuer's CA, and not from near this machine."""
    from kubeauthn._core.kubeconfig.model import Cluster
    from kubeauthn._io.async_http import AsyncDocuments, look_up
    from kubeauthn._io.tls import proxy_context

    hosts = [host for url in (issuer.url, issuer.discovery_url) if url and (host := urlsplit(url).hostname)]

    async def refusal(host: str, addresses: Sequence[str]) -> str:
        near = {kind for address in addresses if (kind := local_kind(address))}
        if not near or host in hosts:
            return ""
        for own in hosts:
            try:
                near -= {local_kind(address) for address in await look_up(own)}
            except OSError:
                continue  # where the issuer cannot be found, it allows nothing
        return f"is at a {' and a '.join(sorted(near))} address: no claim source may be there" if near else ""

    bundle = issuer.certificate_authority.encode()
    cluster = Cluster(server=issuer.url, certificate_authority_data=bundle)
    # What is trusted on the way to a proxy is what is wanted here too: the system's roots and this CA.
    return AsyncDocuments(lambda: proxy_context(cluster), guard=refusal)


def _read(text: str, source: ClaimSource, name: str) -> UntrustedToken:
    try:
        token = read_token(text)
        failure = "" if untrusted_issuer(token.untrusted_claims) else _no_issuer(token)
    except NotMine as error:
        failure = payload_fault(text) or str(error)
    if failure:
        where = "token in the token" if isinstance(source, Aggregated) else f"endpoint {source.endpoint}"
        raise _unavailable(f"getting untrusted issuer from {where} failed for claim {quote(name)}: {failure}")
    return token


def _no_issuer(token: UntrustedToken) -> str:
    issuer = dict.get(token.untrusted_claims, "iss")
    if issuer is None or type(issuer) is str:
        return "it names no issuer"
    return f"while unmarshaling token: json: cannot unmarshal {kind(issuer)} into Go struct field .iss of type string"


def _newer_keys_may_help(error: BaseException | None) -> bool:
    return isinstance(error, SignatureRefused) and error.newer_keys_may_help


def _unavailable(reason: str) -> ClaimUnavailable:
    return ClaimUnavailable(f"oidc: could not expand distributed claims: {reason}")


_PHRASES = {
    413: "Request Entity Too Large",
    414: "Request URI Too Long",
    416: "Requested Range Not Satisfiable",
    418: "I'm a teapot",
    422: "Unprocessable Entity",
}
"""Where Go has other words than one Python or another."""


def _phrase(status: int) -> str:
    try:
        return _PHRASES.get(status) or HTTPStatus(status).phrase
    except ValueError:
        return ""
