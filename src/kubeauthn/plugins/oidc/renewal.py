"""How a new token is made: by refresh if that will do, and else by a login. What comes is verified."""

from __future__ import annotations

import time

from kubeauthn._secret import Secret
from kubeauthn.errors import InteractionRequired, LoginFailed
from kubeauthn.plugins.oidc.checks import check
from kubeauthn.plugins.oidc.issuer import Issuer
from kubeauthn.plugins.oidc.session import Session
from kubeauthn.plugins.oidc.settings import ACCESS_TOKEN

TYPE_CHECKING = False
if TYPE_CHECKING:
    from kubeauthn._core.oidc.tokens import TokenReply, VerifiedIdToken
    from kubeauthn.plugins.oidc.settings import Settings


def new_session(settings: Settings, before: Session | None, *, person: bool) -> Session:
    """`before` is the one that has ended. `person`: somebody is there who can log in."""
    check(settings)
    if before is None or not before.refresh_token:
        _check_person(settings, person)
    issuer = Issuer(settings)
    if before is not None and before.refresh_token:
        session = _refreshed(settings, issuer, before)
        if session is not None:
            return session
        _check_person(settings, person)
    if settings.grant == "device-code":
        from kubeauthn.plugins.oidc.device_login import log_in_with_device

        # No nonce: this grant has none, and the device code went to nobody but the issuer.
        return _verified(settings, issuer, log_in_with_device(settings, issuer), nonce=None)
    from kubeauthn.plugins.oidc.browser_login import browser_login

    # The page in the browser says that all is well only when the token has been verified.
    with browser_login(settings, issuer) as (reply, nonce):
        return _verified(settings, issuer, reply, nonce=nonce)


def _refreshed(settings: Settings, issuer: Issuer, before: Session) -> Session | None:
    """None where only a login helps. An issuer that cannot be reached is an error: it would not help either."""
    reply = issuer.refresh(before.refresh_token)
    if reply is None or (not reply.id_token and settings.token != ACCESS_TOKEN):
        return None
    return _verified(settings, issuer, reply, nonce=None, before=before)


def _verified(
    settings: Settings, issuer: Issuer, reply: TokenReply, *, nonce: str | None, before: Session | None = None
) -> Session:
    from kubeauthn._core.oidc.tokens import kept_until

    id_token: VerifiedIdToken | None = None
    if reply.id_token:
        id_token = issuer.verify(reply, nonce=nonce, subject=before.subject if before is not None else None)
    elif before is None:
        raise LoginFailed(
            "the issuer gave no id token: it does not speak OpenID Connect to this client",
            hint="whoever runs the issuer must allow the client the scope openid",
        )
    refresh_token = reply.refresh_token or (before.refresh_token if before is not None else Secret(""))
    subject = id_token.subject if id_token is not None else before.subject if before is not None else ""
    if settings.token == ACCESS_TOKEN:
        return Session(reply.access_token, _access_token_until(reply), refresh_token, subject)
    if id_token is None:
        raise LoginFailed("the issuer gave no id token")
    return Session(id_token.token, kept_until(id_token.ends, id_token.begins), refresh_token, subject)


def _access_token_until(reply: TokenReply) -> float:
    """By the issuer's word, or its own if it is a JWT; it is opaque to us otherwise."""
    from kubeauthn._core.jwt_peek import untrusted_expiry
    from kubeauthn._core.oidc import limits
    from kubeauthn._core.oidc.tokens import kept_until

    if not reply.access_token:
        raise LoginFailed("the issuer gave no access token, and --access-token asks for one")
    now = time.time()
    ends = now + reply.seconds if reply.seconds is not None else untrusted_expiry(reply.access_token.reveal())
    if ends is None:
        return now + limits.UNKNOWN_LIFE_SECONDS
    if ends <= now + 1:
        raise LoginFailed(
            "the access token that the issuer has just made has already ended",
            hint="is the clock of this machine right?",
        )
    return kept_until(ends, now)


def _check_person(settings: Settings, person: bool) -> None:
    if person:
        return
    import shlex

    from kubeauthn.plugins.oidc.kubeconfig_entry import words_of

    command = shlex.join(["kubeauthn", *words_of(settings, "--login")])
    raise InteractionRequired(
        f"you must log in at {settings.issuer_url}, and there is no terminal for it",
        hint=f"log in once in a terminal: {command}",
    )
