"""The keys of one issuer in a worker, kept through reloads: an entry that did not change need not be fetched again.

A configuration holds on to them with `KeysOfGeneration`; when it is retired its interest in changes ends with it.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from kubeauthn.server.keysets import DiscoveredKeys

if TYPE_CHECKING:
    from collections.abc import Callable

    from kubeauthn._core.authentication.keyset_state import KeySetStatus
    from kubeauthn._core.authentication.model import Issuer
    from kubeauthn._core.jose.keys import KeySet
    from kubeauthn.server.key_store import KeyStore


class IssuerKeys:
    """Fetched in the background from `start` on. `stored` are the last good ones of an earlier process, if allowed."""

    def __init__(self, issuer: Issuer, store: KeyStore | None = None) -> None:
        self.issuer = issuer
        self._store = store
        self._recorded = None if store is None else store.recording(issuer)
        self._discovered = DiscoveredKeys(issuer, documents=self._recorded)
        self._stored: KeySet | None = None
        self._tasks: list[asyncio.Task[None]] = []
        self._listeners: dict[object, list[Callable[[], None]]] = {}
        self._arrived = asyncio.Event()
        self._discovered.on_change(self._changed)

    @property
    def status(self) -> KeySetStatus:
        return self._discovered.status

    @property
    def from_store(self) -> bool:
        return self._stored is not None and self._discovered.keys_at_hand() is None

    def keys_at_hand(self) -> KeySet | None:
        found = self._discovered.keys_at_hand()
        return self._stored if found is None else found

    async def newer_keys(self, than: KeySet | None) -> KeySet | None:
        discovered = self._discovered.keys_at_hand()
        found = await self._discovered.newer_keys(discovered if than is self._stored else than)
        return self._stored if found is None else found

    def answers(self) -> int:
        return self._discovered.answers()

    def listen(self, owner: object, callback: Callable[[], None]) -> None:
        self._listeners.setdefault(owner, []).append(callback)

    def forget(self, owner: object) -> None:
        self._listeners.pop(owner, None)

    def start(self) -> None:
        if self._store is not None and not self._tasks:
            self._stored = self._store.load(self.issuer)
        if not self._tasks:
            self._tasks.append(asyncio.get_running_loop().create_task(self._discovered.run()))
            if self._store is not None and self._recorded is not None:
                keeping = self._store.keep(self.issuer, self._recorded, self._discovered)
                self._tasks.append(asyncio.get_running_loop().create_task(keeping))

    def stop(self) -> None:
        for task in self._tasks:
            task.cancel()
        self._tasks = []

    async def arrived(self) -> None:
        """Waits until there are keys at hand."""
        if self.keys_at_hand() is None:
            await self._arrived.wait()

    def _changed(self) -> None:
        self._arrived.set()
        for callbacks in list(self._listeners.values()):
            for callback in callbacks:
                callback()


class KeysOfGeneration:
    """One configuration's view of an issuer's keys: a `KeySource`."""

    __slots__ = ("_keys", "_owner", "answers", "keys_at_hand", "newer_keys")

    def __init__(self, keys: IssuerKeys, owner: object) -> None:
        self._keys = keys
        self._owner = owner
        self.keys_at_hand = keys.keys_at_hand
        self.newer_keys = keys.newer_keys
        self.answers = keys.answers

    def on_change(self, callback: Callable[[], None]) -> None:
        self._keys.listen(self._owner, callback)
