"""Entries that have ended are removed, so that the cache holds no more than what is used."""

from __future__ import annotations

from kubeauthn._io.single_flight import SUFFIX as LOCK_SUFFIX
from kubeauthn._io.single_flight import SingleFlight
from kubeauthn.errors import KubeauthnError
from kubeauthn.plugins.cache.entry import decode
from kubeauthn.plugins.cache.plugin import SUFFIX

TYPE_CHECKING = False
if TYPE_CHECKING:
    from kubeauthn._io.private_store import PrivateStore

_LOOKED_AT = 64


def sweep(store: PrivateStore, now: float) -> None:
    """A few at a time: whoever waits for a credential should not wait for this."""
    for name in [name for name in store.names() if name.endswith(SUFFIX)][:_LOOKED_AT]:
        content = store.read(name)
        entry = None if content is None else decode(content)
        if entry is None or not entry.usable(now):
            remove(store, name.removesuffix(SUFFIX))


def remove(store: PrivateStore, name: str) -> bool:
    """Whether there was one. What somebody is just renewing is left to them."""
    try:
        with SingleFlight(store, name, seconds=0.0) as flight:
            removed = store.remove(name + SUFFIX)
            flight.remove()
            return removed
    except KubeauthnError:
        return False


def clear(store: PrivateStore) -> int:
    """Everything. How many credentials there were."""
    count = 0
    for name in store.names():
        stem = name.removesuffix(SUFFIX).removesuffix(LOCK_SUFFIX)
        if name.startswith("."):
            store.remove(name)  # half written, by a process that was killed
        elif name != stem:
            count += remove(store, stem)
    return count
