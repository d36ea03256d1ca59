"""The OpenID Connect checks: signature, the types of registered claims, audience, times.

Each raises the TokenError of the first fault, with kube-apiserver's text.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from kubeauthn._core.authentication.claim_sources import NAMES, SOURCES
from kubeauthn._core.authentication.go_time import LARGEST_SECONDS, ZERO_TIME, go_time
from kubeauthn._core.jose.algorithms import ALGORITHMS
from kubeauthn._core.jose.compact import decode_part
from kubeauthn._core.jose.go_json import kind
from kubeauthn._core.jose.header import Header, read_header
from kubeauthn.cel.go_text import quote
from kubeauthn.cel.large_numbers import TooLarge
from kubeauthn.errors import AudienceRefused, MalformedToken, SignatureRefused, TokenExpired, TokenNotYetValid

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from kubeauthn._core.authentication.model import Issuer
    from kubeauthn._core.authentication.token import UntrustedToken
    from kubeauthn._core.jose.keys import KeySet

NOT_BEFORE_LEEWAY_SECONDS = 60.0
_UNSIGNED = "oidc: verify token: failed to verify signature: failed to verify id token signature"
_CHANGED = "the signature is not of the issuer's keys, or the token was changed"


def read_token_header(token: UntrustedToken) -> Header:
    """The header of a token whose algorithm is one of the nine. Raises MalformedToken or SignatureRefused."""
    try:
        header = read_header(_check_encoding(token.header, "header"))
    except ValueError as error:  # BadHeader is one
        raise MalformedToken(f"oidc: verify token: oidc: malformed jwt: {error}") from None
    if header.algorithm not in ALGORITHMS:
        raise SignatureRefused(
            "oidc: verify token: oidc: id token signed with unsupported algorithm, "
            f"expected {_list(ALGORITHMS)} got {quote(header.algorithm)}",
            public_message="the token is signed with an algorithm that is not allowed",
        )
    return header


def _check_encoding(part: bytes, name: str) -> bytes:
    try:
        return decode_part(part)
    except ValueError as error:
        raise _not_canonical(name, error) from None


def _not_canonical(name: str, error: ValueError) -> MalformedToken:
    text = f"oidc: verify token: oidc: malformed jwt: {error}"
    return MalformedToken(text, hint=f"the {name} is not canonical base64url")


def check_signature(token: UntrustedToken, keys: KeySet) -> None:
    """One of the keys signed it. Raises MalformedToken or SignatureRefused."""
    try:
        signature = decode_part(token.signature)
    except ValueError as error:
        _check_encoding(token.header, "header")  # of two parts that are wrong the first is named
        raise _not_canonical("signature", error) from None
    verifiers = keys.known_headers.get(token.header)
    if verifiers is None:
        _check_first_signature(token, keys, signature)
        return
    for verify in verifiers:
        if verify(signature, token.signed):
            return
    raise SignatureRefused(_UNSIGNED, hint=_CHANGED)


def _check_first_signature(token: UntrustedToken, keys: KeySet, signature: bytes) -> None:
    """The same for a header that is new."""
    header = read_token_header(token)
    if header.critical:
        raise SignatureRefused(_UNSIGNED, hint="the header asks for an extension (crit, b64), and none is understood")
    verifiers = keys.verifiers(header.kid, header.algorithm)
    for verify in verifiers:
        if verify(signature, token.signed):
            keys.remember_header(token.header, verifiers)
            return
    refused = SignatureRefused(_UNSIGNED, hint=_signature_hint(header, keys, bool(verifiers)))
    refused.newer_keys_may_help = not header.kid or header.kid not in keys.kids
    raise refused


def _signature_hint(header: Header, keys: KeySet, tried: bool) -> str:
    if header.kid and header.kid not in keys.kids:
        return "the issuer's key set has no key with the kid that the token names"
    if not tried:
        return f"no key of the issuer is one for {header.algorithm}"
    return _CHANGED


_STRING_CLAIMS = ("iss", "sub", "nonce", "at_hash")
_TIME_CLAIMS = ("exp", "iat", "nbf")
_STOP_THE_DECODER = frozenset(("aud", *_TIME_CLAIMS))


def check_types(claims: dict[str, Any]) -> None:
    """Registered claims are of their types, and claim sources are complete. Raises MalformedToken."""
    get = claims.get
    if (
        type(claims) is dict  # one with a number too large for a double is another type
        and type(get("sub", "")) is str
        and type(get("exp", 0.0)) is float
        and type(get("iat", 0.0)) is float
        and type(get("nbf", 0.0)) is float
        and "nonce" not in claims
        and "at_hash" not in claims
        and NAMES not in claims
        and SOURCES not in claims
    ):
        audience = get("aud", "")
        if type(audience) is str or (type(audience) is list and all(type(entry) is str for entry in audience)):
            return
    if fault := _first_type_fault(claims):
        raise MalformedToken(f"oidc: verify token: oidc: failed to unmarshal claims: {fault}")
    _check_sources(claims)


def _first_type_fault(claims: dict[str, Any]) -> str:
    """The first of a time or an audience, where Go's decoder stops; without one, the first of the others."""
    first = ""
    for name in list(claims):
        fault = _type_fault(name, dict.__getitem__(claims, name))
        if fault and name in _STOP_THE_DECODER:
            return fault
        first = first or fault
    return first


def _type_fault(name: str, value: object) -> str:
    """What Go's decoder says; "" if the claim is as it must be, or is none of the registered ones."""
    if value is None:
        # null is no value, but a time that is there must be a number
        return 'strconv.ParseFloat: parsing "": invalid syntax' if name in ("exp", "iat") else ""
    if name in _STRING_CLAIMS:
        return "" if type(value) is str else _mismatch(name, value, "string")
    if name in _TIME_CLAIMS:
        if type(value) is TooLarge:
            return f'strconv.ParseFloat: parsing "{value}": value out of range'
        return "" if type(value) is float else _mismatch(name, value, "json.Number")
    if name == "aud":
        return _audience_fault(value)
    if name == NAMES:
        return _members_fault(name, value, "map[string]string", "string")
    if name == SOURCES:
        return _members_fault(name, value, "map[string]oidc.claimSource", "oidc.claimSource")
    return ""


def _mismatch(name: str, value: object, wanted: str, struct: str = "idToken") -> str:
    return f"json: cannot unmarshal {kind(value)} into Go struct field {struct}.{name} of type {wanted}"


def _audience_fault(value: object) -> str:
    if type(value) is str:
        return ""
    if not isinstance(value, list):
        return _mismatch("aud", value, "[]string")
    wrong = next((entry for entry in value if entry is not None and type(entry) is not str), None)
    return "" if wrong is None else _mismatch("aud", wrong, "string")


def _members_fault(name: str, value: object, whole: str, each: str) -> str:
    """A fault of `_claim_names`, an object of texts, or of `_claim_sources`, an object of objects of texts."""
    if not isinstance(value, dict):
        return _mismatch(name, value, whole)
    for member in value.values():
        if member is None:
            continue
        if type(member) is not (str if name == NAMES else dict):
            return _mismatch(name, member, each)
        if isinstance(member, dict) and (fault := _source_fault(member)):
            return fault
    return ""


def _source_fault(source: dict[str, Any]) -> str:
    for part, value in source.items():
        if part in ("endpoint", "access_token") and value is not None and type(value) is not str:
            return _mismatch(f"{SOURCES}.{part}", value, "string", "claimSource")
    return ""


def _check_sources(claims: dict[str, Any]) -> None:
    """Every claim that is elsewhere has a source. Their types have been checked."""
    names, sources = dict.get(claims, NAMES) or {}, dict.get(claims, SOURCES) or {}
    for source in names.values():
        if not source:
            raise MalformedToken("oidc: verify token: oidc: failed to obtain source from claim name")
        if source not in sources:
            raise MalformedToken("oidc: verify token: oidc: source does not exist")


def check_audience(claims: dict[str, Any], issuer: Issuer) -> None:
    """The token is meant for one of the audiences. Raises AudienceRefused."""
    audience = claims.get("aud", ())
    got = audience if isinstance(audience, list) else (audience,) if "aud" in claims else ()
    wanted = issuer.audiences
    for entry in got:
        if entry in wanted:
            return
    expected = quote(wanted[0]) if len(wanted) == 1 else f"in {_list(sorted(wanted))}"
    shown = _list([entry or "" for entry in got])
    raise AudienceRefused(f"oidc: verify token: oidc: expected audience {expected} got {shown}")


def check_times(times: Mapping[str, float | None], now: float) -> float:
    """Not ended, and begun but for a minute. Returns when it ends. Raises TokenExpired or TokenNotYetValid."""
    expiry = times.get("exp")
    if expiry is None:
        raise TokenExpired(
            f"oidc: verify token: oidc: token is expired (Token Expiry: {ZERO_TIME})", hint="the token has no exp claim"
        )
    ends = int(expiry)
    if not now < ends <= LARGEST_SECONDS:
        raise TokenExpired(f"oidc: verify token: oidc: token is expired (Token Expiry: {go_time(ends)})")
    begin = times.get("nbf")
    if begin is not None and now + NOT_BEFORE_LEEWAY_SECONDS < int(begin) <= LARGEST_SECONDS:
        ahead = f"current time {go_time(now)} before the nbf (not before) time: {go_time(int(begin))}"
        raise TokenNotYetValid(f"oidc: verify token: oidc: {ahead}")
    return ends


def has_ended(claims: dict[str, Any], now: float) -> bool:
    """Whether the claims themselves, verified or not, say that the token is over."""
    expiry = dict.get(claims, "exp")
    return type(expiry) is float and expiry <= now


def _list(texts: Sequence[str]) -> str:
    return f"[{' '.join(map(quote, texts))}]"
