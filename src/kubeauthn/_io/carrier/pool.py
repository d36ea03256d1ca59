"""Connections to one server, kept while they are idle."""

from __future__ import annotations

import asyncio
import time

from kubeauthn._io.carrier.dialling import Address, dial
from kubeauthn._io.carrier.upstream import Upstream

IDLE_SECONDS = 90.0
IDLE_CONNECTIONS = 128


class Pool:
    """The connections that show one certificate to one server. Last in, first out: what is not needed grows cold."""

    def __init__(self, address: Address) -> None:
        self.address = address
        self._idle: list[tuple[float, Upstream]] = []
        self._sweep: asyncio.TimerHandle | None = None
        self.closed = False

    def take(self) -> Upstream | None:
        """An idle connection that still stands, or None."""
        while self._idle:
            _, upstream = self._idle.pop()
            if not upstream.closed:
                upstream.reused = True
                return upstream
        return None

    async def open(self) -> Upstream:
        upstream = Upstream(self)
        await dial(self.address, upstream)
        return upstream

    def give_back(self, upstream: Upstream) -> None:
        if self.closed or len(self._idle) >= IDLE_CONNECTIONS:
            upstream.close()
            return
        self._idle.append((time.monotonic(), upstream))
        if self._sweep is None:
            self._sweep = asyncio.get_running_loop().call_later(IDLE_SECONDS, self._drop_cold)

    def close(self) -> None:
        """Idle ones now, the others when they come back."""
        self.closed = True
        if self._sweep is not None:
            self._sweep.cancel()
        for _, upstream in self._idle:
            upstream.close()
        self._idle.clear()

    def _drop_cold(self) -> None:
        oldest = time.monotonic() - IDLE_SECONDS
        for since, upstream in self._idle:
            if since <= oldest:
                upstream.close()
        self._idle = [(since, upstream) for since, upstream in self._idle if since > oldest and not upstream.closed]
        self._sweep = asyncio.get_running_loop().call_later(IDLE_SECONDS, self._drop_cold) if self._idle else None
