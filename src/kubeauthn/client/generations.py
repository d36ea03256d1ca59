"""Connections by client certificate: a new certificate gets new connections, the old ones are let go."""

from __future__ import annotations

import os
import threading
import weakref
from collections.abc import Callable
from typing import Any, Generic, TypeVar

from kubeauthn._core.credential import ClientIdentity, Credential

Pool = TypeVar("Pool")

_all: weakref.WeakSet[Generations[Any]] = weakref.WeakSet()


class Generations(Generic[Pool]):
    """One pool of connections per certificate.

    A renewed credential with the same certificate, or with only another token, keeps its pool.
    `make` builds a pool for a certificate; the pools that `pool_for` returns beside the one asked
    for are the caller's to retire: closing is its library's business and may need an event loop.
    """

    def __init__(self, make: Callable[[ClientIdentity | None], Pool]) -> None:
        self._make = make
        self._lock = threading.Lock()
        self._pools: dict[ClientIdentity | None, Pool] = {}
        self._bare: Pool | None = None
        self._newest: Credential | None = None
        self._settled: tuple[Credential, Pool] | None = None
        """The newest credential with its pool, while there is no other pool: then there is nothing to decide."""
        _all.add(self)

    def pool_for(self, credential: Credential) -> tuple[Pool, list[Pool]]:
        """The pool for this credential, and those that are of no more use."""
        settled = self._settled
        if settled is not None and settled[0] is credential:
            return settled[1], []
        with self._lock:
            pool = self._pools.get(credential.identity)
            if pool is None:
                pool = self._pools[credential.identity] = self._make(credential.identity)
            if self._newest is not None and credential.number < self._newest.number:
                # A request that still holds an older credential gets what it needs, but does not bring the older
                # certificate back to the front: the next request that has the newest one retires this pool.
                if len(self._pools) > 1:
                    self._settled = None
                return pool, []
            self._newest = credential
            self._settled = (credential, pool)
            retired = [self._pools.pop(identity) for identity in list(self._pools) if identity != credential.identity]
            return pool, retired

    def bare_pool(self) -> Pool:
        """For requests that bring their own `Authorization`: no certificate is shown."""
        with self._lock:
            if self._bare is None:
                self._bare = self._make(None)
            return self._bare

    def drain(self) -> list[Pool]:
        """All pools, to be closed for good."""
        with self._lock:
            pools = list(self._pools.values())
            if self._bare is not None:
                pools.append(self._bare)
            self._pools, self._bare, self._newest, self._settled = {}, None, None, None
            return pools

    def _after_fork(self) -> None:
        self._lock = threading.Lock()
        self._pools, self._bare, self._newest, self._settled = {}, None, None, None


def _after_fork_in_child() -> None:
    # The connections are the parent's. Two processes on one TLS connection would spoil it for each other, and
    # encrypt different requests with the same key and nonce.
    for generations in list(_all):
        generations._after_fork()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork_in_child)
