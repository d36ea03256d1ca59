"""Between the carrier and the author's function."""

from __future__ import annotations

import inspect
import ssl
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING

from kubeauthn._io.carrier.destination import address_of, host_header, path_prefix
from kubeauthn._io.carrier.plan import Asked, Plan
from kubeauthn._io.carrier.pool import Pool
from kubeauthn.errors import UsageError
from kubeauthn.plugin._proxy_request import Change, Request

if TYPE_CHECKING:
    from kubeauthn._core.kubeconfig.model import Cluster

Handler = Callable[[Request], "Change | Awaitable[Change | None] | None"]

_HOST = frozenset({b"host"})
_NOTHING: frozenset[bytes] = frozenset()


class HandlerRoute:
    def __init__(
        self, handler: Handler | None, cluster: Cluster, context: ssl.SSLContext | None, body_limit: int
    ) -> None:
        self._handler = handler
        self._cluster = cluster
        self._limit = body_limit
        self._host = host_header(cluster)
        self._prefix = path_prefix(cluster)
        self._host_line = ((b"Host", self._host),)
        # Whose key is in the author's context nobody here knows: it may be one that somebody must touch.
        self.pool = Pool(address_of(cluster, context, signs_slowly=context is not None))

    def plan(self, asked: Asked) -> Plan | Awaitable[Plan]:
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
