"""What is kept of a login: the token that is given out, and the refresh token that gets the next."""

from __future__ import annotations

import json

from kubeauthn._core.record import field, record
from kubeauthn._secret import Secret

_VERSION = 1


@record(frozen=True, slots=True)
class Session:
    """`token` was verified when it came. It is used until `until`, a little before its end."""

    token: Secret = field(repr=False)
    until: float
    refresh_token: Secret = field(repr=False)
    subject: str

    def usable(self, now: float) -> bool:
        # Whole seconds, because that is what the client is told.
        return now < int(self.until)


def encode(session: Session, identity: str) -> bytes:
    return json.dumps(
        {
            "version": _VERSION,
            "identity": identity,
            "token": session.token.reveal(),
            "until": session.until,
            "refreshToken": session.refresh_token.reveal(),
            "subject": session.subject,
        }
    ).encode()


def decode(content: bytes | str, identity: str) -> Session | None:
    """None for what is broken, of another version or of another login: it is then made anew."""
    try:
        document = json.loads(content)
    except (ValueError, RecursionError):
        return None
    if not isinstance(document, dict) or document.get("version") != _VERSION or document.get("identity") != identity:
        return None
    token, until = document.get("token"), document.get("until")
    refresh_token, subject = document.get("refreshToken"), document.get("subject")
    if isinstance(until, bool) or not isinstance(until, int | float) or not 0 <= until < 1e12:
        return None
    if not (isinstance(token, str) and isinstance(refresh_token, str) and isinstance(subject, str)):
        return None
    if not (token and token.isascii() and token.isprintable() and refresh_token.isascii()):
        return None
    return Session(Secret(token), float(until), Secret(refresh_token), subject)
