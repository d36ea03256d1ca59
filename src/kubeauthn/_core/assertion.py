"""A user as a signed, short-lived JWT (ES256): the one header that a service behind a proxy need not take on trust.

Both ends are here: `sign_assertion` writes it, `read_assertion` believes it only if every check holds. The type in the
header keeps it apart from every other token that the same issuer name or key might be used for (RFC 8725, 3.11).
"""

from __future__ import annotations

import json
from base64 import urlsafe_b64encode
from hashlib import sha256
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.asymmetric.utils import decode_dss_signature

from kubeauthn._core.authentication.verdict import NO_EXTRA, UserInfo
from kubeauthn._core.jose.compact import NotCompact, decode_part, split_compact
from kubeauthn._core.jose.header import read_header
from kubeauthn.errors import AudienceRefused, MalformedToken, SignatureRefused, TokenExpired, TokenNotYetValid

if TYPE_CHECKING:
    from collections.abc import Mapping

    from kubeauthn._core.jose.keys import KeySet

ALGORITHM = "ES256"
TYPE = "kubeauthn-assertion+jwt"
CLOCK_LEEWAY_SECONDS = 30.0
"""How far ahead the clock of who signed may be. There is no leeway at the end: it lives for a minute as it is."""
_NUMBER_BYTES = 32


def public_jwk(key: ec.EllipticCurvePublicKey) -> dict[str, str]:
    """The key as a key set lists it. Its id is its thumbprint (RFC 7638), so that equal keys have equal ids."""
    numbers = key.public_numbers()
    point = {"x": _base64url(numbers.x.to_bytes(_NUMBER_BYTES)), "y": _base64url(numbers.y.to_bytes(_NUMBER_BYTES))}
    essence = {"crv": "P-256", "kty": "EC", **point}
    kid = _base64url(sha256(json.dumps(essence, separators=(",", ":"), sort_keys=True).encode()).digest())
    return {**essence, "kid": kid, "alg": ALGORITHM, "use": "sig"}


def assertion_claims(
    user: UserInfo, *, issuer: str, audience: str, now: float, seconds: float, token_ends: float | None
) -> dict[str, Any]:
    """It never outlives the token that it stands for."""
    ends = now + seconds if token_ends is None else min(now + seconds, token_ends)
    claims: dict[str, Any] = {
        "iss": issuer,
        "aud": audience,
        "iat": int(now),
        "exp": int(ends),
        "sub": user.username,
        "groups": list(user.groups),
    }
    if user.uid:
        claims["uid"] = user.uid
    if user.extra:
        claims["extra"] = {key: list(values) for key, values in user.extra.items()}
    return claims


def sign_assertion(claims: Mapping[str, Any], key: ec.EllipticCurvePrivateKey, kid: str) -> str:
    header = {"alg": ALGORITHM, "kid": kid, "typ": TYPE}
    signed = f"{_segment(header)}.{_segment(claims)}"
    r, s = decode_dss_signature(key.sign(signed.encode(), ec.ECDSA(hashes.SHA256())))
    return f"{signed}.{_base64url(r.to_bytes(_NUMBER_BYTES) + s.to_bytes(_NUMBER_BYTES))}"


def read_assertion(text: str, keys: KeySet, *, issuer: str, audience: str, now: float) -> UserInfo:
    """The user it stands for. Raises a TokenError: MalformedToken, SignatureRefused, AudienceRefused, …"""
    # 1. Text: canonical base64url in three parts.
    try:
        signed, encoded_header, encoded_claims, encoded_signature = split_compact(text)
        raw_header, signature = decode_part(encoded_header), decode_part(encoded_signature)
        header = read_header(raw_header)
        members = json.loads(raw_header)
    except NotCompact as error:
        raise MalformedToken(f"assertion: {error}") from None
    except ValueError:
        raise MalformedToken("assertion: its header or signature cannot be read") from None
    # 2. Header: exactly what we write.
    if not isinstance(members, dict) or members.get("typ") != TYPE:
        raise MalformedToken(f"assertion: expected the type {TYPE}")
    if header.algorithm != ALGORITHM or header.critical or not header.kid:
        raise SignatureRefused(f"assertion: expected {ALGORITHM}, a key id and no critical extension")
    # 3. Signature, before any claim is looked at.
    verifiers = keys.verifiers(header.kid, ALGORITHM)
    if not any(verify(signature, signed) for verify in verifiers):
        refused = SignatureRefused("assertion: not signed with one of the keys given")
        refused.newer_keys_may_help = not verifiers
        raise refused
    try:
        claims = json.loads(decode_part(encoded_claims))
    except (ValueError, RecursionError):
        raise MalformedToken("assertion: its claims cannot be read") from None
    if not isinstance(claims, dict):
        raise MalformedToken("assertion: expected an object of claims")
    # 4. For whom, from whom, when.
    if claims.get("iss") != issuer:
        raise AudienceRefused("assertion: made by another issuer")
    if claims.get("aud") != audience:
        raise AudienceRefused("assertion: made for another audience")
    begins, ends = claims.get("iat"), claims.get("exp")
    if type(begins) is not int or type(ends) is not int:
        raise MalformedToken("assertion: expected iat and exp as whole numbers")
    if not now < ends:
        raise TokenExpired("assertion: it has ended")
    if now + CLOCK_LEEWAY_SECONDS < begins:
        raise TokenNotYetValid("assertion: its time has not come")
    return _user(claims)


def _user(claims: dict[str, Any]) -> UserInfo:
    username, uid = claims.get("sub"), claims.get("uid", "")
    groups, extra = claims.get("groups", []), claims.get("extra", {})
    if not isinstance(username, str) or not username or not isinstance(uid, str) or not _is_texts(groups):
        raise MalformedToken("assertion: its user cannot be read")
    if not isinstance(extra, dict) or not all(map(_is_texts, extra.values())):
        raise MalformedToken("assertion: its user's extra values cannot be read")
    frozen = MappingProxyType({key: tuple(values) for key, values in extra.items()})
    return UserInfo(username, uid, tuple(groups), frozen if extra else NO_EXTRA)


def _is_texts(value: object) -> bool:
    return isinstance(value, list) and all(isinstance(entry, str) for entry in value)


def _segment(document: Mapping[str, Any]) -> str:
    return _base64url(json.dumps(document, separators=(",", ":")).encode())


def _base64url(data: bytes) -> str:
    return urlsafe_b64encode(data).rstrip(b"=").decode()
