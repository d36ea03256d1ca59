"""A token as it came: taken apart, and believed in nothing."""

from __future__ import annotations

from typing import Any

from kubeauthn._core.authentication.claims import read_claims
from kubeauthn._core.jose.compact import NotCompact, decode_part, split_compact
from kubeauthn.errors import NotMine

_GOOGLE = "https://accounts.google.com"
_GOOGLE_WITHOUT_SCHEME = "accounts.google.com"


class UntrustedToken:
    __slots__ = ("header", "signature", "signed", "untrusted_claims")

    def __init__(self, signed: bytes, header: bytes, signature: bytes, untrusted_claims: dict[str, Any]) -> None:
        self.signed = signed
        """What the signature is made over, as it came."""
        self.header = header
        """Still encoded, as is the signature."""
        self.signature = signature
        self.untrusted_claims = untrusted_claims


def read_token(text: str) -> UntrustedToken:
    """Raises NotMine: what has no claims names no issuer, and may be another authenticator's."""
    try:
        signed, header, encoded, signature = split_compact(text)
        payload = decode_part(encoded)
    except NotCompact as error:
        raise NotMine(str(error)) from None
    except ValueError as error:
        raise NotMine(f"error decoding token: {error}") from None
    try:
        return UntrustedToken(signed, header, signature, read_claims(payload))
    except ValueError:
        raise NotMine("while unmarshaling token: the payload is no JSON object") from None


def untrusted_issuer(claims: dict[str, Any]) -> str:
    """The `iss` that nobody has verified yet: good for choosing who verifies, and for nothing else."""
    issuer = dict.get(claims, "iss")  # not the claims' own `get`, which raises for a claim that cannot be read
    if type(issuer) is not str:
        return ""
    return _GOOGLE if issuer == _GOOGLE_WITHOUT_SCHEME else issuer
