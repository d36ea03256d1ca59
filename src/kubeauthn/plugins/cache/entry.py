"""One kept credential, and for how long it may be handed out."""

from __future__ import annotations

import json

from kubeauthn._core.record import field, record
from kubeauthn._secret import Secret

_VERSION = 1
MARGIN_SECONDS = 60.0
MARGIN_SHARE = 0.1
"""Not handed out in the last minute of its life, or the last tenth where that is shorter."""
BACKWARDS_SECONDS = 60.0
"""A clock that was set back further than this cannot say how old something is."""


@record(frozen=True, slots=True)
class Entry:
    made_at: float
    until: float
    """From then on the plugin is asked again."""
    expires_at: float
    """What the client is told."""
    token: Secret = field(repr=False, default=Secret(""))
    certificate: str = field(repr=False, default="")
    key: Secret = field(repr=False, default=Secret(""))

    def usable(self, now: float) -> bool:
        return self.made_at - BACKWARDS_SECONDS <= now < self.until and now < int(self.expires_at)


def kept_until(now: float, expires_at: float, margin: float) -> float:
    return expires_at - min(margin, max(0.0, expires_at - now) * MARGIN_SHARE)


def encode(entry: Entry) -> bytes:
    return json.dumps(
        {
            "version": _VERSION,
            "madeAt": entry.made_at,
            "until": entry.until,
            "expiresAt": entry.expires_at,
            "token": entry.token.reveal(),
            "certificate": entry.certificate,
            "key": entry.key.reveal(),
        }
    ).encode()


def decode(content: bytes) -> Entry | None:
    """None for what is broken or of another version: the plugin is then asked."""
    try:
        document = json.loads(content)
    except (ValueError, RecursionError):
        return None
    if not isinstance(document, dict) or document.get("version") != _VERSION:
        return None
    times = [document.get(name) for name in ("madeAt", "until", "expiresAt")]
    texts = [document.get(name) for name in ("token", "certificate", "key")]
    if not all(isinstance(time, int | float) and not isinstance(time, bool) and 0 <= time < 1e12 for time in times):
        return None
    if not all(isinstance(text, str) and text.isascii() for text in texts):
        return None
    token, certificate, key = (str(text) for text in texts)
    if bool(certificate) != bool(key) or not (token or certificate):
        return None
    made_at, until, expires_at = (float(time or 0.0) for time in times)
    return Entry(made_at, until, expires_at, Secret(token), certificate, Secret(key))
