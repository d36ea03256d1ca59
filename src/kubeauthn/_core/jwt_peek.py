"""Claims of a token that nobody has verified: enough to see when one's own token ends, and to explain it."""

from __future__ import annotations

import json
from base64 import urlsafe_b64decode
from typing import Any

_YEAR_10000 = 253402300800.0
"""What comes later cannot be written as a date."""


def untrusted_claims(token: str) -> dict[str, Any] | None:
    """The payload of a compact JWT, or None if it is none."""
    parts = token.split(".")
    if len(parts) != 3:
        return None
    payload = parts[1]
    try:
        claims = json.loads(urlsafe_b64decode(payload + "=" * (-len(payload) % 4)))
    except (ValueError, RecursionError):
        return None
    return claims if isinstance(claims, dict) else None


def untrusted_expiry(token: str) -> float | None:
    """The `exp` claim as unix seconds, or None."""
    expiry = (untrusted_claims(token) or {}).get("exp")
    if isinstance(expiry, bool) or not isinstance(expiry, int | float):
        return None
    return float(expiry) if 0 <= expiry < _YEAR_10000 else None
