"""What can be told of a token without telling it: its length and, for a JWT, a few claims nobody has verified."""

from __future__ import annotations

import json
from base64 import urlsafe_b64decode

from kubeauthn._core import rfc3339

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

LONGEST_JWT = 64 * 1024


def untrusted_claims(token: str) -> dict[str, Any] | None:
    """The payload of a JWT, or None if this is none. Nothing is verified."""
    parts = token.split(".")
    if len(parts) != 3 or len(token) > LONGEST_JWT:
        return None
    header, payload = _decoded(parts[0]), _decoded(parts[1])
    return payload if header is not None and "alg" in header else None


def token_as_json(token: str) -> dict[str, Any]:
    """`{"length": …, "jwt": null | {"verified": false, …}}`."""
    claims = untrusted_claims(token)
    if claims is None:
        return {"length": len(token), "jwt": None}
    audience = claims.get("aud")
    audiences = audience if isinstance(audience, list) else [] if audience is None else [audience]
    return {
        "length": len(token),
        "jwt": {
            "verified": False,
            "issuer": _text(claims.get("iss")),
            "subject": _text(claims.get("sub")),
            "audiences": [str(item) for item in audiences],
            "issuedAt": _time(claims.get("iat")),
            "expiresAt": _time(claims.get("exp")),
        },
    }


def _decoded(part: str) -> dict[str, Any] | None:
    try:
        value = json.loads(urlsafe_b64decode(part + "=" * (-len(part) % 4)))
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else None


def _text(value: object) -> str | None:
    return value if isinstance(value, str) else None


def _time(value: object) -> str | None:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    try:
        return rfc3339.format(value)
    except (ValueError, OverflowError, OSError):
        return None
