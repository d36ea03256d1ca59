"""The path of an opaque token, whose claims an introspection endpoint told (RFC 7662). An extension of ours.

From the fourth step on it is the path of `authenticate`: the same checks, rules and mappings of the same configuration.
In place of the signature stands the connection to the endpoint, which speaks for one configured issuer and no other.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from kubeauthn._core.authentication.claim_sources import NAMES, SOURCES
from kubeauthn._core.authentication.claims import read_claims
from kubeauthn._core.authentication.expressions import Expressions
from kubeauthn._core.authentication.mapping import map_user
from kubeauthn._core.authentication.rules import check_claim_rules, check_user_rules
from kubeauthn._core.authentication.token import read_token
from kubeauthn._core.authentication.verdict import Authenticated, UserInfo
from kubeauthn._core.authentication.verify import check_audience, check_times, check_types
from kubeauthn.errors import AudienceRefused, MalformedToken, NotMine, TokenError, UsageError

if TYPE_CHECKING:
    from kubeauthn._core.authentication.compiled import CompiledConfiguration

OPAQUE_CHARACTERS = 4096
_TOKEN68 = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~+/")
_BOOTSTRAP = frozenset("abcdefghijklmnopqrstuvwxyz0123456789")


def may_be_introspected(token: str, prefix: str) -> bool:
    """Only what is nobody else's to read: a token that goes to the endpoint is shown to whoever runs it.

    Not a token that carries claims (another issuer's, such as the cluster's own service accounts), not a bootstrap
    token of the cluster, not what no bearer token looks like (RFC 6750).
    """
    if not token.startswith(prefix) or not 0 < len(token) <= OPAQUE_CHARACTERS:
        return False
    if not _TOKEN68.issuperset(token.rstrip("=")) or _is_bootstrap(token):
        return False
    try:
        read_token(token)
    except NotMine:
        return not _looks_like_jwt(token)
    return False


def _looks_like_jwt(token: str) -> bool:
    """Also one that is damaged or encrypted: what begins as a JSON object in base64url is meant to be one."""
    return token.startswith("eyJ") and token.count(".") in (2, 4)


def _is_bootstrap(token: str) -> bool:
    """`abcdef.0123456789abcdef`, which kube-apiserver may ask us about before it looks itself."""
    name, dot, secret = token.partition(".")
    return len(name) == 6 and bool(dot) and len(secret) == 16 and _BOOTSTRAP.issuperset(name + secret)


def told_claims(answer: bytes, issuer: str) -> dict[str, Any]:
    """The claims of an answer. Raises ValueError for what is no answer, TokenError for a token that is not active."""
    claims = read_claims(answer)
    active = dict.get(claims, "active")
    if type(active) is not bool:
        raise ValueError("active is neither true nor false")
    if not active:
        raise TokenError("introspection: the token is not active", issuer=issuer, rule="introspection")
    told = dict.get(claims, "iss", issuer)  # RFC 7662 2.2 leaves it out where it is clear
    if told != issuer:
        # Not the other one's name: whoever runs this endpoint could otherwise speak for any issuer.
        raise TokenError("introspection: iss is not the issuer of the endpoint", issuer=issuer, rule="introspection")
    claims["iss"] = issuer
    # Claims are taken from here and from nowhere else: no address in an answer is followed.
    for name in ("active", NAMES, SOURCES):
        claims.pop(name, None)
    return claims


def authenticate_introspected(
    configuration: CompiledConfiguration, claims: dict[str, Any], now: float, issuer: str
) -> Authenticated:
    """Whose token these claims belong to. Raises TokenError; the numbers are those of `authenticate`."""
    # 2. The issuer is the endpoint's, whatever the token is.
    authenticator = configuration.by_issuer.get(issuer)
    if authenticator is None:
        raise UsageError("the issuer of the introspection endpoint is not in the configuration")
    try:
        # 4. to 6. Types, audience, times: what a token lacks here it would lack there.
        if "exp" in claims and dict.get(claims, "exp") is None:
            raise MalformedToken("introspection: exp is null")
        check_types(claims)
        check_audience(claims, authenticator.config.issuer)
        expires_at = check_times(claims, now)
        # 8. to 10. Claim rules, mappings, user rules.
        run = Expressions({"claims": claims})
        check_claim_rules(authenticator, claims, run)
        user = run.variables["user"] = map_user(authenticator, claims, run)
        check_user_rules(authenticator, run)
    except TokenError as error:
        error.issuer = issuer
        if isinstance(error, AudienceRefused):
            error.rule = f"jwt[{authenticator.index}].issuer.audiences"
        raise
    return Authenticated(UserInfo.of(user), issuer, expires_at)
