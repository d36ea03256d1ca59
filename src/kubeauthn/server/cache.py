"""Results remembered for seconds, by a keyed hash of the token: the shell around `ResultCache`, with its lock and key.

The key is made anew in each process: what a memory dump shows of it is of no use elsewhere. Results that are about the
world and not about the token (keys or a claim that could not be had, a key that may be too new) are not remembered.
"""

from __future__ import annotations

import marshal  # only for bytes that this process itself has made
import secrets
import threading
import time
from collections.abc import Callable
from hashlib import sha256
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from kubeauthn import errors
from kubeauthn._core.authentication import fetch_limits
from kubeauthn._core.authentication.result_cache import ResultCache
from kubeauthn._core.authentication.verdict import NO_EXTRA, Authenticated, UserInfo, may_change
from kubeauthn._core.jose.limits import TOKEN_CHARACTERS
from kubeauthn._core.jwt_peek import untrusted_expiry
from kubeauthn.errors import TokenError

if TYPE_CHECKING:
    from kubeauthn._core.authentication.result_cache import Entry
    from kubeauthn.server.authenticator import Authenticator


class CachedResults:
    """::

        generation = cache.generation          # before anything is looked at
        found = cache.find(token, now)         # Authenticated, a TokenError to raise, or None
        …
        cache.remember(token, result, now, generation)

    Threads may share it.
    """

    def __init__(self, cache: ResultCache | None = None) -> None:
        self._cache = ResultCache() if cache is None else cache
        self._lock = threading.Lock()
        # With the key already in it: a copy is made for each token. The block is the key's alone.
        self._keyed = sha256(secrets.token_bytes(64))
        self._hot: dict[bytes, tuple[float, Authenticated]] = {}

    def __len__(self) -> int:
        return len(self._cache.successes) + len(self._cache.failures)

    @property
    def generation(self) -> int:
        return self._cache.generation

    def key(self, token: str) -> bytes:
        """For `at` and `remember`, so that a token is hashed once. Empty for one that is refused unread."""
        if len(token) > TOKEN_CHARACTERS:
            return b""
        digest = self._keyed.copy()
        digest.update(token.encode("utf-8", "surrogatepass"))
        return digest.digest()

    def find(self, token: str, now: float) -> Authenticated | TokenError | None:
        return self.at(self.key(token), now)

    def at(self, key: bytes, now: float) -> Authenticated | TokenError | None:
        """As `find`, by the token's key."""
        # Without the lock: each is one look into a dictionary, which is whole at any time.
        hot = self._hot.get(key)
        if hot is not None and self._cache.successes.is_current(hot[0], now):
            return hot[1]
        generation = self._cache.generation
        success = self._cache.successes.get(key, now)
        if success is not None:
            return self._kept_at_hand(key, success, generation)
        failure = self._cache.failures.get(key, now)
        return None if failure is None else _unpack_failure(failure[1])

    def remember(
        self, token: str, result: Authenticated | TokenError, now: float, generation: int, key: bytes | None = None
    ) -> None:
        """Not if the cache was emptied since `generation`: then the result may be of what was before."""
        if type(result) is Authenticated:
            table, packed, not_after = self._cache.successes, _pack_success(result), result.expires_at
        else:
            refusal = _pack_refusal(result)
            if refusal is None:
                return
            table, packed, not_after = self._cache.failures, refusal, _reason_ends(token, now)
        key = self.key(token) if key is None else key
        if not key:
            return
        with self._lock:
            if generation == self._cache.generation:
                table.put(key, packed, now, not_after)

    def clear(self) -> None:
        """After a reload, and whenever the keys of an issuer change."""
        with self._lock:
            self._cache.clear()
            self._hot = {}

    def _kept_at_hand(self, key: bytes, success: Entry, generation: int) -> Authenticated:
        """Unpacked, and kept so: who is asked for twice is asked for often. Nobody who gets it can change it."""
        ends, packed, _ = success
        result = _unpack_success(packed)
        if len(packed) <= fetch_limits.HOT_RESULT_BYTES:
            with self._lock:
                if generation == self._cache.generation:
                    if len(self._hot) >= fetch_limits.HOT_RESULTS:
                        self._hot = {}  # whoever is still asked for is soon in it again
                    self._hot[key] = (ends, result)
        return result


class CachedAuthenticator:
    """An `Authenticator` whose results are remembered for seconds, and forgotten when an issuer's keys change.

    A configuration that was reloaded comes with an `Authenticator` of its own, and so with a cache of its own.
    """

    def __init__(
        self,
        authenticator: Authenticator,
        cache: CachedResults | None = None,
        *,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self.uncached = authenticator
        self.results = CachedResults() if cache is None else cache
        self._clock = clock
        for source in authenticator.key_sources.values():
            source.on_change(self.results.clear)

    def authenticate(self, token: str, now: float | None = None) -> UserInfo:
        return self.decide(token, now).user

    async def authenticate_async(self, token: str, now: float | None = None) -> UserInfo:
        return (await self.decide_async(token, now)).user

    def keys_are_due(self) -> bool:
        return self.uncached.keys_are_due()

    async def refresh_keys(self) -> None:
        await self.uncached.refresh_keys()

    def decide(self, token: str, now: float | None = None) -> Authenticated:
        now = self._clock() if now is None else now
        generation = self.results.generation
        found = self.results.find(token, now)
        if found is None:
            try:
                found = self.uncached.decide(token, now)
            except TokenError as error:
                self.results.remember(token, error, now, generation)
                raise
            self.results.remember(token, found, now, generation)
        elif isinstance(found, TokenError):
            raise found
        return found

    async def decide_async(self, token: str, now: float | None = None) -> Authenticated:
        now = self._clock() if now is None else now
        generation = self.results.generation
        found = self.results.find(token, now)
        if found is None:
            try:
                found = await self.uncached.decide_async(token, now)
            except TokenError as error:
                self.results.remember(token, error, now, generation)
                raise
            self.results.remember(token, found, now, generation)
        elif isinstance(found, TokenError):
            raise found
        return found


def _reason_ends(token: str, now: float) -> float:
    """When the reason for refusing it becomes another: at `exp`, if that is still to come."""
    expiry = untrusted_expiry(token)
    return expiry if expiry is not None and expiry > now else float("inf")


def _pack_success(result: Authenticated) -> bytes:
    user = result.user
    extra = {key: tuple(values) for key, values in user.extra.items()} if user.extra else None
    return marshal.dumps((user.username, user.uid, tuple(user.groups), extra, result.issuer, result.expires_at))


def _unpack_success(packed: bytes) -> Authenticated:
    username, uid, groups, extra, issuer, expires_at = marshal.loads(packed)  # noqa: S302  our own bytes
    user = UserInfo(username, uid, groups, MappingProxyType(extra) if extra else NO_EXTRA)
    return Authenticated(user, issuer, expires_at)


def _pack_refusal(error: Any) -> bytes | None:
    """Not the error itself: that one holds its traceback, and the traceback the token. None: not to be remembered."""
    if may_change(error):
        return None
    state = (str(error), error.public_message, error.rule, error.issuer, error.hint)
    known: Any = getattr(errors, type(error).__name__, None)
    return marshal.dumps((type(error).__name__, state)) if known is type(error) else None


def _unpack_failure(packed: bytes) -> TokenError:
    name, (message, public_message, rule, issuer, hint) = marshal.loads(packed)  # noqa: S302  our own bytes
    kind: type[TokenError] = getattr(errors, name)
    return kind(message, public_message=public_message, rule=rule, issuer=issuer, hint=hint)
