"""Between the carrier and the author's function."""

from __future__ import annotations

import asyncio
import inspect
import ssl
import time
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING

from kubeauthn._io.carrier.destination import address_of, host_header, path_prefix
from kubeauthn._io.carrier.plan import Asked, Plan
from kubeauthn._io.carrier.pool import Pool
from kubeauthn._io.tls import identity_is_spent
from kubeauthn.errors import UsageError
from kubeauthn.plugin._proxy_request import Change, Request

if TYPE_CHECKING:
    from kubeauthn._core.kubeconfig.model import Cluster

Handler = Callable[[Request], "Change | Awaitable[Change | None] | None"]

_HOST = frozenset({b"host"})
_NOTHING: frozenset[bytes] = frozenset()


AGAIN_SECONDS = 10.0
"""Between two contexts from the author: a server that refuses each certificate must not have one made per request."""


class HandlerRoute:
    """`make_context` is asked for another context when the server refused the certificate of the one that it gave."""

    def __init__(
        self,
        handler: Handler | None,
        cluster: Cluster,
        context: ssl.SSLContext | None,
        body_limit: int,
        make_context: Callable[[], ssl.SSLContext],
    ) -> None:
        self._context = context
        self._make_context = make_context
        self._under_way: asyncio.Task[None] | None = None
        self._not_before = 0.0
        self._handler = handler
        self._cluster = cluster
        self._limit = body_limit
        self._host = host_header(cluster)
        self._prefix = path_prefix(cluster)
        self._host_line = ((b"Host", self._host),)
        self.pool = self._new_pool()

    def plan(self, asked: Asked) -> Plan | Awaitable[Plan]:
        if self._context is not None and identity_is_spent(self._context) and time.monotonic() >= self._not_before:
            return self._with_another_context(asked)
        return self._plan(asked)

    def _new_pool(self) -> Pool:
        # Whose key is in the author's context nobody here knows: it may be one that somebody must touch.
        return Pool(address_of(self._cluster, self._context, signs_slowly=self._context is not None))

    async def _with_another_context(self, asked: Asked) -> Plan:
        if self._under_way is None:
            self._under_way = asyncio.ensure_future(self._take_another_context())
        await asyncio.shield(self._under_way)  # one client that leaves does not end it for the others
        plan = self._plan(asked)
        return plan if isinstance(plan, Plan) else await plan

    async def _take_another_context(self) -> None:
        try:
            self._context = await asyncio.to_thread(self._make_context)  # a signer may take its time
            self.pool.close()
            self.pool = self._new_pool()
        finally:
            self._not_before = time.monotonic() + AGAIN_SECONDS
            self._under_way = None

    def _plan(self, asked: Asked) -> Plan | Awaitable[Plan]:
        head = asked.head
        target = head.target
        # A client that was given the server's address has put its path there already.
        if self._prefix and target != b"*" and not target.startswith(self._prefix + b"/"):
            target = self._prefix + target
        if self._handler is None:
            return self._planned(asked, target, None)
        request = Request(asked, self._cluster, target.decode("ascii"), self._host.decode(), self._limit)
        answer = self._handler(request)
        if answer is not None and inspect.isawaitable(answer):
            return self._when_decided(asked, target, answer)
        return self._planned(asked, target, answer)

    async def renewed(self, asked: Asked, refused: Plan) -> Plan | None:
        return None

    async def unreachable(self, asked: Asked, failed: Plan, reason: str) -> Plan | None:
        return None

    def answered(self, plan: Plan, status: int) -> None:
        """The client judges it."""

    async def _when_decided(self, asked: Asked, target: bytes, answer: Awaitable[Change | None]) -> Plan:
        return self._planned(asked, target, await answer)

    def _planned(self, asked: Asked, target: bytes, change: Change | None) -> Plan:
        without, added = (_NOTHING, ()) if change is None else _parts(change)
        if asked.head.value(b"host") != self._host:
            without, added = without | _HOST, self._host_line + added
        if change is not None and change.target is not None:
            target = change.target
        return Plan(self.pool, target, without=without, added=added)


def _parts(change: object) -> tuple[frozenset[bytes], tuple[tuple[bytes, bytes], ...]]:
    if not isinstance(change, Change):
        raise UsageError(f"the function returned a {type(change).__name__}, expected a Change or None")
    return change.without, change.added
