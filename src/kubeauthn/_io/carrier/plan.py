"""What becomes of one request: decided by a route, carried out by an exchange."""

from __future__ import annotations

from collections.abc import Awaitable
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Set

    from kubeauthn._core.http1 import RequestHead
    from kubeauthn._io.carrier.pool import Pool


class Plan:
    """Where a request goes, and what is changed on the way. `added` replaces nothing: name it in `without` too."""

    __slots__ = ("added", "mark", "pool", "renewable", "target", "without")

    def __init__(
        self,
        pool: Pool,
        target: bytes,
        *,
        without: Set[bytes] = frozenset(),
        added: tuple[tuple[bytes, bytes], ...] = (),
        renewable: bool = False,
        mark: object = None,
    ) -> None:
        self.pool = pool
        self.target = target
        self.without = without
        self.added = added
        self.renewable = renewable
        """After a 401 the route is asked for another plan, if the request can be sent again."""
        self.mark = mark
        """The route's own."""


class Asked(Protocol):
    """A request as a route sees it."""

    @property
    def head(self) -> RequestHead: ...
    async def body(self, limit: int) -> bytes:
        """All of its body. `HttpMessageError` where it is larger than `limit`."""


class Route(Protocol):
    def plan(self, asked: Asked) -> Plan | Awaitable[Plan]: ...
    async def renewed(self, asked: Asked, refused: Plan) -> Plan | None:
        """After a 401."""

    async def unreachable(self, asked: Asked, failed: Plan, reason: str) -> Plan | None:
        """Nobody was where the plan led, and nothing was sent: another plan, or None."""

    def answered(self, plan: Plan, status: int) -> None:
        """The status that the client is given."""
