"""The use case: the kept credential while it is good, else the command is run, once for all who ask meanwhile."""

from __future__ import annotations

import os
import time

from kubeauthn._core.record import record
from kubeauthn._io.private_store import PrivateStore, cache_home
from kubeauthn._secret import Secret
from kubeauthn.plugin import credential
from kubeauthn.plugins.cache.entry import MARGIN_SECONDS, Entry, decode, encode, kept_until
from kubeauthn.plugins.cache.identity import identity

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

FOLDER = ("kubeauthn", "cache")
SUFFIX = ".json"
_WAIT_SECONDS = 55.0
_WAIT_FOR_PERSON_SECONDS = 600.0
"""For another command that runs the plugin: a little less than a client waits, or as long as a login may take."""


@record(frozen=True, slots=True)
class Settings:
    """`command` is the plugin and its arguments."""

    command: tuple[str, ...]
    max_age: float | None = None
    margin: float = MARGIN_SECONDS
    ignored: tuple[str, ...] = ()


def credential_function(settings: Settings) -> Callable[[credential.Request], credential.Credential]:
    def cached(request: credential.Request) -> credential.Credential:
        store = open_store()
        name = name_of(settings, request)
        entry = read(store, name)
        if entry is None or not entry.usable(time.time()):
            return _renewed(settings, store, name, request)
        return given_out(entry)

    return cached


def open_store() -> PrivateStore:
    return PrivateStore(cache_home(os.environ), FOLDER)


def name_of(settings: Settings, request: credential.Request) -> str:
    return identity(settings.command, os.environ, request.cluster_fields, settings.ignored)


def read(store: PrivateStore, name: str) -> Entry | None:
    content = store.read(name + SUFFIX)
    return None if content is None else decode(content)


def given_out(entry: Entry) -> credential.Credential:
    return credential.Credential(
        token=entry.token or None,
        certificate=entry.certificate or None,
        key=entry.key or None,
        expires_at=entry.expires_at,
    )


def _renewed(settings: Settings, store: PrivateStore, name: str, request: credential.Request) -> credential.Credential:
    from kubeauthn._io.single_flight import SingleFlight

    patience = _WAIT_FOR_PERSON_SECONDS if request.interactive else _WAIT_SECONDS
    with SingleFlight(store, name, seconds=patience):
        entry = read(store, name)
        if entry is not None and entry.usable(time.time()):
            return given_out(entry)
        from kubeauthn.plugins.cache.sweep import sweep
        from kubeauthn.plugins.cache.wrapped import ask

        fresh, not_after = ask(settings.command, request)
        entry = _entry(settings, fresh, not_after, time.time())
        if entry is None:
            store.remove(name + SUFFIX)
            return fresh
        store.write(name + SUFFIX, encode(entry))
        sweep(store, time.time())
        return given_out(entry)


def _entry(settings: Settings, fresh: credential.Credential, not_after: float | None, now: float) -> Entry | None:
    """None for a credential of which nobody says when it ends: it is not kept."""
    oldest = [now + settings.max_age] if settings.max_age is not None else []
    ends = [moment for moment in (fresh.expires_at, *oldest) if moment is not None]
    if not ends:
        return None
    if not_after is not None:
        ends.append(not_after)
    expires_at = min(ends)
    return Entry(
        made_at=now,
        until=kept_until(now, expires_at, settings.margin),
        expires_at=expires_at,
        token=fresh.token or Secret(""),
        certificate=fresh.certificate or "",
        key=fresh.key or Secret(""),
    )
