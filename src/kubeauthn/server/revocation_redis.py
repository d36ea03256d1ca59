"""Revocations in Redis, for several replicas: one question for each token that was found good, within a bounded time.

Keys and values are those of `_core.revocation` (`store_key`, `store_value`); docs/serve-extensions.md has the table.
"""

from __future__ import annotations

import asyncio
import time
from typing import TYPE_CHECKING, Any

from kubeauthn._core.revocation import reason_in_store, store_key, store_keys, store_value
from kubeauthn.errors import EnvironmentFailure, MissingExtra, UsageError

try:
    import redis
    import redis.asyncio
    import redis.asyncio.retry
    import redis.retry
    from redis.backoff import NoBackoff
except ModuleNotFoundError as error:
    raise MissingExtra("redis", "redis") from error

if TYPE_CHECKING:
    from collections.abc import Callable

    from kubeauthn._core.revocation import Revocation, TokenIdentity

PREFIX = "kubeauthn:revoked:"
SECONDS = 0.5
"""For one question, connecting included."""
COOLDOWN_SECONDS = 1.0
"""After a failure nobody asks for this long: a Redis that is away must not cost every request the whole time limit."""
CONNECTIONS = 32


class RedisRevocations:
    """A `RevocationSource`. It belongs to the event loop that first asks it."""

    def __init__(
        self,
        url: str,
        *,
        prefix: str = PREFIX,
        seconds: float = SECONDS,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._seconds = seconds
        self._prefix = prefix
        self._clock = clock
        self._closed_until = 0.0
        self._failure = ""
        self._client = _client(redis.asyncio, url, seconds)
        self._turns = asyncio.Semaphore(CONNECTIONS)

    def reason_now(self, identity: TokenIdentity) -> None:
        """It always has to be asked; unless it just failed, and then nobody is kept waiting."""
        if self._clock() < self._closed_until:
            raise EnvironmentFailure(self._failure)

    async def reason(self, identity: TokenIdentity) -> str:
        self.reason_now(identity)
        try:
            async with asyncio.timeout(self._seconds):
                async with self._turns:
                    values = await self._values(store_keys(identity, self._prefix))
        except (redis.RedisError, OSError, TimeoutError, ValueError) as error:
            # Only the kind: the text may hold the address with its password.
            self._failure = f"redis cannot be asked for revocations: {type(error).__name__}"
            self._closed_until = self._clock() + COOLDOWN_SECONDS
        else:
            return reason_in_store(identity, values)
        raise EnvironmentFailure(self._failure)

    async def _values(self, keys: list[str]) -> list[bytes | None]:
        """In one message. Not MGET: for a key of another type, a list for one, it answers as if there were none."""
        async with self._client.pipeline(transaction=False) as questions:
            for key in keys:
                questions.get(key)
            answers = await questions.execute(raise_on_error=False)
        for answer in answers:
            if isinstance(answer, Exception) and not _is_of_another_type(answer):
                raise answer
        return [_UNREADABLE if isinstance(answer, Exception) else answer for answer in answers]

    async def close(self) -> None:
        await self._client.aclose()


_UNREADABLE = b""
"""What `reason_in_store` takes for a revocation without an end."""


def _is_of_another_type(answer: Exception) -> bool:
    return isinstance(answer, redis.ResponseError) and str(answer).startswith("WRONGTYPE")


def add_revocation(url: str, entry: Revocation, *, prefix: str = PREFIX, keep_seconds: int | None = None) -> str:
    """Store one entry, and say under which key. A later end of one that is there already stays. For a command."""
    key, value = store_key(entry, prefix), store_value(entry)
    failure = ""
    with _client(redis, url, seconds=5.0) as client:
        try:
            client.eval(_KEEP_LATER, 1, key, value, keep_seconds or 0)
        except (redis.RedisError, OSError, ValueError) as error:
            failure = f"redis did not take the revocation: {type(error).__name__}"
    if failure:
        raise EnvironmentFailure(failure)
    return key


# In one step, because two administrators may revoke at once: the later end wins, and nothing is ever kept shorter.
_KEEP_LATER = """
local there = redis.call('GET', KEYS[1])
local life = redis.call('TTL', KEYS[1])
local value = ARGV[1]
if there and value ~= 'all' and (not tonumber(there) or tonumber(there) > tonumber(value)) then value = there end
local keep = tonumber(ARGV[2])
if keep == 0 or life == -1 then redis.call('SET', KEYS[1], value)
else redis.call('SET', KEYS[1], value, 'EX', math.max(keep, life)) end
return value
"""


def _client(module: Any, url: str, seconds: float) -> Any:
    try:
        return module.Redis.from_url(
            url,
            socket_timeout=seconds,
            socket_connect_timeout=seconds,
            # Once more at once: a connection that lay idle while Redis restarted fails on its first use.
            retry=module.retry.Retry(NoBackoff(), 1),
        )
    except (ValueError, TypeError):
        # Not its own text: it may quote the address, and that holds the password.
        pass
    raise UsageError(
        "the address of redis is not one",
        hint="redis://host:6379/0, rediss:// for TLS, or unix:///path/of/socket",
    )
