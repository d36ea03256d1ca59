"""`kubeauthn plugin github-actions`: the id token of the running workflow, for a cluster that trusts GitHub's issuer.

A job with the permission `id-token: write` finds an address, and a token for it, in its environment. What is fetched
there says which repository, branch and environment the job belongs to, and is good for minutes. No secret is stored.
"""

from __future__ import annotations

import os
import time

from kubeauthn._core.record import record
from kubeauthn._secret import Secret
from kubeauthn.errors import CredentialError, EnvironmentFailure, UsageError
from kubeauthn.plugin import credential

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

URL_VARIABLE = "ACTIONS_ID_TOKEN_REQUEST_URL"
TOKEN_VARIABLE = "ACTIONS_ID_TOKEN_REQUEST_TOKEN"  # noqa: S105  a name
PERMISSION_HINT = "the job needs the permission `id-token: write`, which a workflow from a fork does not get"
ATTEMPTS = 3
FIRST_PAUSE_SECONDS = 0.5
"""Between two attempts, doubled each time: the service now and then answers 500."""
ANSWER_SECONDS = 15.0
"""For each attempt: all of them together take less than a client gives us, so that the message comes from here."""
_AUDIENCE_CHARACTERS = 1024


@record(frozen=True, slots=True)
class Settings:
    audience: str
    certificate_authority: str = ""


def credential_function(settings: Settings) -> Callable[[credential.Request], credential.Credential]:
    def get_token(request: credential.Request) -> credential.Credential:
        return make_token(settings)

    return get_token


def make_token(settings: Settings) -> credential.Credential:
    """Raises CredentialError where GitHub gives none."""
    from kubeauthn._core.jwt_peek import untrusted_expiry
    from kubeauthn.plugins.token_life import handed_out_until

    status, answer = _asked(settings, _address(settings), _permit())
    token = answer.get("value")
    if status != 200 or not isinstance(token, str) or not token:
        raise _refusal(status)
    # Not verified: it goes to the cluster alone, which does that. Its own times say how long it may be kept.
    ends = untrusted_expiry(token)
    if ends is None:
        raise CredentialError("what GitHub gave is no token that can be read")
    return credential.Token(token, expires_at=handed_out_until(token, ends, time.time()))


def _address(settings: Settings) -> str:
    from urllib.parse import quote

    from kubeauthn._core.oidc.provider import is_safe_address

    audience = settings.audience
    if not audience or len(audience) > _AUDIENCE_CHARACTERS or not audience.isprintable():
        raise UsageError("--audience takes the audience that the cluster's configuration names")
    url = os.environ.get(URL_VARIABLE, "")
    if not url:
        raise CredentialError(
            f"{URL_VARIABLE} is not set: this is no job of GitHub Actions, or one without id tokens",
            hint=PERMISSION_HINT,
        )
    # Behind a # the audience would stay here, and the token would be for another.
    if not is_safe_address(url) or "#" in url:
        raise CredentialError(f"{URL_VARIABLE} is no https address: nothing was sent there")
    return f"{url}{'&' if '?' in url else '?'}audience={quote(audience, safe='')}"


def _permit() -> Secret:
    permit = os.environ.get(TOKEN_VARIABLE, "")
    if not permit or not permit.isascii() or not permit.isprintable() or " " in permit:
        raise CredentialError(f"{TOKEN_VARIABLE} is not set, or no token", hint=PERMISSION_HINT)
    return Secret(permit)


def _asked(settings: Settings, url: str, permit: Secret) -> tuple[int, dict[str, Any]]:
    from kubeauthn._io.issuer_http import ask, trusting

    context = trusting(url, settings.certificate_authority)
    for attempt in range(ATTEMPTS):
        last = attempt == ATTEMPTS - 1
        try:
            status, answer = ask("GET", url, context, bearer=permit, seconds=ANSWER_SECONDS)
            if status < 500 or last:
                return status, answer
        except EnvironmentFailure:
            if last:
                raise
        time.sleep(FIRST_PAUSE_SECONDS * 2**attempt)
    raise AssertionError("the last attempt returns or raises")


def _refusal(status: int) -> CredentialError:
    if status == 200:
        return CredentialError("GitHub answered without a token")
    hint = PERMISSION_HINT if status in (401, 403) else None
    return CredentialError(f"GitHub answered {status} and no token", hint=hint)
