"""The token endpoint's answer, and what is checked of it before a token is given out (OpenID Connect Core, 3.1.3.7)."""

from __future__ import annotations

from base64 import urlsafe_b64encode
from hashlib import new as new_hash
from typing import Any

from kubeauthn._core.authentication.model import Issuer
from kubeauthn._core.authentication.token import UntrustedToken, read_token, untrusted_issuer
from kubeauthn._core.authentication.verify import (
    check_audience,
    check_signature,
    check_times,
    check_types,
    read_token_header,
)
from kubeauthn._core.authentication.written_times import written_times
from kubeauthn._core.execwire import fits_in_a_header
from kubeauthn._core.jose.keys import KeySet
from kubeauthn._core.oidc import limits
from kubeauthn._core.record import field, record
from kubeauthn._secret import Secret
from kubeauthn.errors import AudienceRefused, LoginFailed, NotMine, TokenError, TokenExpired, TokenNotYetValid


@record(frozen=True, slots=True)
class TokenReply:
    """RFC 6749, 5.1, with the id token of OpenID Connect. Nothing in it is verified."""

    id_token: Secret = field(repr=False)
    access_token: Secret = field(repr=False)
    refresh_token: Secret = field(repr=False)
    seconds: float | None = None
    """How long the access token is good for, by the issuer's word."""


@record(frozen=True, slots=True)
class VerifiedIdToken:
    """Made by `verify_id_token` alone."""

    token: Secret = field(repr=False)
    subject: str
    ends: float
    """By this machine's clock, also where that is behind the issuer's."""
    begins: float


def read_reply(document: dict[str, Any]) -> TokenReply:
    """Raises LoginFailed."""
    kind = document.get("token_type")
    if not isinstance(kind, str) or kind.lower() != "bearer":
        raise LoginFailed("the issuer's tokens are not bearer tokens, and no other kind is known to Kubernetes")
    seconds = document.get("expires_in")
    known = isinstance(seconds, int | float) and not isinstance(seconds, bool) and 0 < seconds < 1e9
    return TokenReply(
        id_token=_token(document, "id_token"),
        access_token=_token(document, "access_token"),
        refresh_token=_token(document, "refresh_token"),
        seconds=float(seconds) if known and seconds is not None else None,
    )


def verify_id_token(
    token: Secret,
    keys: KeySet,
    *,
    issuer_url: str,
    client_id: str,
    now: float,
    nonce: str | None,
    access_token: Secret,
    subject: str | None = None,
) -> VerifiedIdToken:
    """The numbered steps of the specification. `nonce` is None and `subject` known where a refresh gave the token.

    Raises LoginFailed, which never holds the token.
    """
    try:
        untrusted = read_token(token.reveal())
        # 3.1.3.7, 6 and 7: signed with one of the issuer's keys, by one of nine algorithms
        check_signature(untrusted, keys)
        check_types(untrusted.untrusted_claims)
        claims = untrusted.untrusted_claims  # signed, from here on
        # 2: by this issuer
        if untrusted_issuer(claims) != issuer_url:
            raise LoginFailed(f"the id token names another issuer than {issuer_url}: it was not used")
        # 3, 4 and 5: for this client, and handed to no other
        check_audience(claims, Issuer(url=issuer_url, audiences=(client_id,)))
        _check_party(claims, client_id)
        # 9: not ended
        ends = check_times(written_times(untrusted), now)
    except AudienceRefused:
        raise LoginFailed(
            f"the id token is not meant for the client {client_id}: it was not used",
            hint="whoever runs the issuer must look at the audience of this client's tokens",
        ) from None
    except (TokenExpired, TokenNotYetValid) as error:
        raise LoginFailed(
            f"the id token that the issuer has just made is not good now: {error}",
            hint="is the clock of this machine right? else it is the issuer's",
        ) from None
    except (TokenError, NotMine) as error:
        raise LoginFailed(f"the issuer's id token does not hold: {error}", hint=error.hint) from None
    # 11: made for this very login
    if nonce is not None and claims.get("nonce") != nonce:
        raise LoginFailed("the id token is of another login (its nonce is not ours): it was not used")
    _check_access_token(claims, untrusted, access_token)
    named = claims.get("sub")
    if not isinstance(named, str) or not named:
        raise LoginFailed("the issuer's id token names nobody: it has no sub")
    # 12.2: a refresh cannot turn one person into another
    if subject is not None and named != subject:
        raise LoginFailed("the issuer refreshed the token of one person with that of another: it was not used")
    begins = claims.get("iat")
    begins = float(begins) if isinstance(begins, float) else now
    # A clock that is behind the issuer's would use the token after its end.
    behind = max(0.0, begins - now)
    return VerifiedIdToken(token, named, ends - behind, min(begins, now))


def kept_until(ends: float, begins: float) -> float:
    """The moment from which a token is not handed out any more: a little before its end."""
    return ends - min(limits.MARGIN_SECONDS, max(0.0, ends - begins) * limits.MARGIN_SHARE)


def _check_party(claims: dict[str, Any], client_id: str) -> None:
    audience, party = claims.get("aud"), claims.get("azp")
    if party is None and isinstance(audience, list) and len(audience) > 1:
        raise LoginFailed("the id token is for several audiences and does not say which client it was made for")
    if party is not None and party != client_id:
        raise LoginFailed("the id token was made for another client (its azp is not ours): it was not used")


def _check_access_token(claims: dict[str, Any], token: UntrustedToken, access_token: Secret) -> None:
    """3.1.3.8: where the id token says which access token it came with, it must be that one."""
    expected = claims.get("at_hash")
    if expected is None or not access_token:
        return
    digest = new_hash(f"sha{read_token_header(token).algorithm[2:]}", access_token.reveal().encode()).digest()
    if expected != urlsafe_b64encode(digest[: len(digest) // 2]).rstrip(b"=").decode():
        raise LoginFailed("the access token is not the one that the id token names: neither was used")


def _token(document: dict[str, Any], name: str) -> Secret:
    value = document.get(name)
    if value is None:
        return Secret("")
    if not isinstance(value, str) or len(value) > limits.TOKEN_CHARACTERS or not fits_in_a_header(value):
        raise LoginFailed(f"the issuer's answer has an {name} that is too long, or no token at all")
    return Secret(value)
