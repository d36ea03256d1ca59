"""The authorization code flow as a native program does it: RFC 6749 4.1, RFC 7636 (PKCE), RFC 8252, RFC 9207."""

from __future__ import annotations

from base64 import urlsafe_b64encode
from hashlib import sha256
from urllib.parse import urlencode

from kubeauthn._core.oidc import limits
from kubeauthn._core.record import field, record
from kubeauthn._secret import Secret
from kubeauthn.errors import LoginFailed

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from kubeauthn._core.oidc.provider import Provider

RESERVED = frozenset(
    (
        "client_id", "client_secret", "code", "code_challenge", "code_challenge_method", "code_verifier", "grant_type",
        "nonce", "redirect_uri", "request", "request_uri", "response_mode", "response_type", "scope", "state",
    )
)  # fmt: skip
"""Parameters that are ours to set: what protects a login hangs on them."""


@record(frozen=True, slots=True)
class Attempt:
    """The three things that tie an answer to one question. Each is made from 32 random bytes."""

    state: str = field(repr=False)
    nonce: str = field(repr=False)
    verifier: Secret = field(repr=False)


def new_attempt(random: bytes) -> Attempt:
    """`random` is 96 bytes that nobody else knows."""
    if len(random) != 96:
        raise ValueError("an attempt takes 96 random bytes")
    state, nonce, verifier = (_text(random[at : at + 32]) for at in (0, 32, 64))
    return Attempt(state, nonce, Secret(verifier))


def authorization_address(
    provider: Provider,
    attempt: Attempt,
    *,
    client_id: str,
    redirect_uri: str,
    scopes: Sequence[str],
    audience: str = "",
    parameters: Sequence[tuple[str, str]] = (),
) -> str:
    """Where the browser is sent."""
    if not provider.authorization_endpoint:
        raise LoginFailed(
            "the issuer has no authorization endpoint, so nobody can log in there with a browser",
            hint="try --grant device-code",
        )
    query = {
        **dict(parameters),
        **({"audience": audience} if audience else {}),
        "response_type": "code",
        "client_id": client_id,
        "redirect_uri": redirect_uri,
        "scope": " ".join(scopes),
        "state": attempt.state,
        "nonce": attempt.nonce,
        "code_challenge": challenge(attempt.verifier),
        "code_challenge_method": "S256",
    }
    joint = "&" if "?" in provider.authorization_endpoint else "?"
    return f"{provider.authorization_endpoint}{joint}{urlencode(query)}"


def challenge(verifier: Secret) -> str:
    return _text(sha256(verifier.reveal().encode()).digest())


def code_of(redirect: Mapping[str, str], provider: Provider) -> Secret:
    """The code of a redirect whose state has been found to be ours. Raises LoginFailed."""
    # RFC 9207, 2.4: who answers must be who was asked, else a code of one issuer is handed to another.
    named = redirect.get("iss")
    if named != provider.issuer and (named is not None or provider.names_itself):
        who = "another issuer" if named is not None else "nobody knows whom"
        raise LoginFailed(f"the answer came from {who}, not from {provider.issuer}: it was not used")
    if "error" in redirect:
        raise LoginFailed(f"the issuer refused the login: {told(redirect)}", hint=_hint(redirect["error"]))
    code = redirect.get("code", "")
    if not code or len(code) > limits.CODE_CHARACTERS:
        raise LoginFailed("the issuer sent the browser back without a code")
    return Secret(code)


def told(answer: Mapping[str, object]) -> str:
    """The error code and its description, as far as they are plain text. Both are the issuer's words, and no secret."""
    parts = [answer.get("error"), answer.get("error_description")]
    shown = [part for part in parts if isinstance(part, str) and part and part.isprintable()]
    return ": ".join(part[:200] for part in shown) or "it gave no reason"


def _hint(error: str) -> str | None:
    return {
        "access_denied": "was the login cancelled? else ask whoever runs the issuer",
        "unauthorized_client": "whoever runs the issuer must allow this client the authorization code grant",
        "invalid_scope": "the issuer does not know a --scope",
        "login_required": "take prompt=none out of --parameter",
    }.get(error)


def _text(content: bytes) -> str:
    return urlsafe_b64encode(content).rstrip(b"=").decode()
