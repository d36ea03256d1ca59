"""The use case: the stored token while it is good, else a new one, made once for all who ask meanwhile.

Nothing more is imported while the stored token is good, nor by those who wait for another command's login.
"""

from __future__ import annotations

import time

from kubeauthn.plugin import credential
from kubeauthn.plugins.oidc.storage import Storage

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from kubeauthn.plugins.oidc.session import Session
    from kubeauthn.plugins.oidc.settings import Settings

_WAIT_WITHOUT_PERSON_SECONDS = 45.0
"""Less than the minute after which clients end a plugin that needs nobody."""


def credential_function(settings: Settings) -> Callable[[credential.Request], credential.Credential]:
    def log_in(request: credential.Request) -> credential.Credential:
        storage = Storage(settings)
        session = None if settings.force_refresh else storage.read()
        if session is None or not session.usable(time.time()):
            session = renewed(settings, storage, person=request.interactive or settings.without_terminal)
        return given_out(session)

    return log_in


def renewed(settings: Settings, storage: Storage, *, person: bool) -> Session:
    """A session that is good, and stored. `person`: somebody is there who can log in."""
    from kubeauthn._io.single_flight import SingleFlight

    if not storage.shared:
        from kubeauthn.plugins.oidc.renewal import new_session

        return new_session(settings, None, person=person)
    patience = settings.seconds + _WAIT_WITHOUT_PERSON_SECONDS if person else _WAIT_WITHOUT_PERSON_SECONDS
    waiting = _say_waiting if person else None
    with SingleFlight(storage.directory, storage.name, seconds=patience, waiting=waiting) as flight:
        session = storage.read()
        # Who had to wait takes what the other one got, also where a refresh was asked for: it is a fresh one.
        if session is not None and session.usable(time.time()) and (flight.waited or not settings.force_refresh):
            return session
        from kubeauthn.plugins.oidc.renewal import new_session

        session = new_session(settings, session, person=person)
        storage.write(session)
        return session


def given_out(session: Session) -> credential.Credential:
    return credential.Token(session.token, expires_at=session.until)


def _say_waiting() -> None:
    from kubeauthn.plugins.oidc.progress import say

    say("waiting for the login that another command has begun")
