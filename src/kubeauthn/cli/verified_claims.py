"""Claims that are to be taken as verified, made into a token of a key of our own.

So they go the very path that a real token goes, and no second one. What every good token has and the claims lack
(`iss`, `aud`, `exp`) is filled in and named.
"""

from __future__ import annotations

import json
from base64 import urlsafe_b64encode
from typing import Any

from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.asymmetric.utils import decode_dss_signature
from cryptography.hazmat.primitives.hashes import SHA256

from kubeauthn._core.authentication.claims import read_claims
from kubeauthn.cli.claims_text import claims_fault
from kubeauthn.errors import UsageError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from kubeauthn._core.authentication.model import AuthenticationConfiguration

ASSUMED_SECONDS = 3600
_SIZE = 32  # of a number of P-256


class ClaimsSigner:
    """Signs with a key that nobody else has and that lives as long as this object."""

    def __init__(self, config: AuthenticationConfiguration) -> None:
        self._config = config
        self._key = ec.generate_private_key(ec.SECP256R1())

    @property
    def keys(self) -> dict[str, dict[str, Any]]:
        """For every issuer of the configuration: our key, and no other."""
        numbers = self._key.public_key().public_numbers()
        x, y = (_base64url(number.to_bytes(_SIZE, "big")) for number in (numbers.x, numbers.y))
        key_set = {"keys": [{"kty": "EC", "crv": "P-256", "alg": "ES256", "use": "sig", "x": x, "y": y}]}
        return {entry.issuer.url: key_set for entry in self._config.jwt}

    def token(self, payload: bytes, now: float, *, complete: bool = True) -> tuple[str, list[str]]:
        """A token with these claims, and the names of those that were filled in. Raises UsageError.

        `complete=False` is for the claims of a whole token, which are what they are.
        """
        payload, assumed = self._completed(payload, now) if complete else (payload, [])
        signed = b".".join((_base64url(b'{"alg":"ES256"}').encode(), _base64url(payload).encode()))
        r, s = decode_dss_signature(self._key.sign(signed, ec.ECDSA(SHA256())))
        return f"{signed.decode()}.{_base64url(r.to_bytes(_SIZE, 'big') + s.to_bytes(_SIZE, 'big'))}", assumed

    def _completed(self, payload: bytes, now: float) -> tuple[bytes, list[str]]:
        """The text as it is, with what is missing put before it: whatever is odd in it stays odd."""
        try:
            claims = read_claims(payload)
        except (ValueError, RecursionError):
            text, hint = claims_fault(payload)
            raise UsageError(text, hint=hint or None) from None
        filled: dict[str, object] = {}
        urls = [entry.issuer.url for entry in self._config.jwt]
        if "iss" not in claims and len(urls) == 1:
            filled["iss"] = urls[0]
        issuer = dict.get(claims, "iss", filled.get("iss"))
        entry = next((entry for entry in self._config.jwt if entry.issuer.url == issuer), None)
        if entry is not None and "aud" not in claims:
            filled["aud"] = entry.issuer.audiences[0]
        if "exp" not in claims:
            filled["exp"] = int(now) + ASSUMED_SECONDS
        if not filled:
            return payload, []
        members = json.dumps(filled, separators=(",", ":")).encode()[1:-1]
        rest = payload.strip()[1:]
        return b"{" + members + (b"," if claims else b"") + rest, list(filled)


def _base64url(data: bytes) -> str:
    return urlsafe_b64encode(data).rstrip(b"=").decode()
