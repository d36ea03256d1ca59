"""The path of a token, in one function. Steps are numbered as `explain` shows them; KEP is KEP-3331."""

from __future__ import annotations

from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from kubeauthn._core.authentication.claim_sources import check_groups_source
from kubeauthn._core.authentication.claims import ClaimNeeded, with_sources
from kubeauthn._core.authentication.expressions import Expressions
from kubeauthn._core.authentication.mapping import map_user
from kubeauthn._core.authentication.rules import check_claim_rules, check_user_rules
from kubeauthn._core.authentication.token import read_token, untrusted_issuer
from kubeauthn._core.authentication.verdict import Authenticated, UserInfo
from kubeauthn._core.authentication.verify import check_audience, check_signature, check_times, check_types, has_ended
from kubeauthn._core.authentication.written_times import written_times
from kubeauthn.errors import AudienceRefused, KeysUnavailable, NotMine, SignatureRefused, TokenError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from kubeauthn._core.authentication.compiled import CompiledConfiguration
    from kubeauthn._core.jose.keys import KeySet

    KeysOf = Callable[[str], KeySet | None]
    """The keys of an issuer that are at hand, by its URL."""

NOTHING_FETCHED: Mapping[str, Any] = MappingProxyType({})
NOT_INITIALIZED = "oidc: authenticator not initialized"
_SEAL = object()


class VerifiedClaims:
    """Claims of a token whose signature, audience and times were found good. Only `authenticate` makes them."""

    __slots__ = ("expires_at", "values")

    def __init__(self, seal: object, values: dict[str, Any], expires_at: float) -> None:
        if seal is not _SEAL:
            raise TypeError("claims are verified by authenticate, and nowhere else")
        self.values = values
        self.expires_at = expires_at


def authenticate(
    configuration: CompiledConfiguration,
    token: str,
    now: float,
    keys_of: KeysOf,
    fetched: Mapping[str, Any] = NOTHING_FETCHED,
) -> Authenticated:
    """Whose token this is. Raises NotMine or TokenError; ClaimNeeded where a claim of another source is missing.

    `fetched` are claims of other sources that were got since the last try.
    """
    # 1. A token is three parts of base64url, its payload a JSON object (KEP "Token Validation").
    untrusted = read_token(token)

    # 2. Its issuer, which nobody has verified yet, chooses the authenticator (KEP "Configuration File": one per
    #    issuer, so there is no order among them). Nobody's token is not ours to refuse.
    authenticator = configuration.by_issuer.get(untrusted_issuer(untrusted.untrusted_claims))
    if authenticator is None:
        raise NotMine("no issuer of the configuration made this token")
    issuer = authenticator.config.issuer

    try:
        keys = keys_of(issuer.url)
        if keys is None:
            raise KeysUnavailable(NOT_INITIALIZED, hint="the issuer's keys are not at hand")

        # 3. One of the issuer's keys signed it, with one of nine algorithms (KEP "Token Validation": these checks
        #    of OpenID Connect come first).
        check_signature(untrusted, keys)
        claims = untrusted.untrusted_claims  # from here on the issuer's own words

        # Steps 4 to 10 for the token that is accepted; if it is not, they follow with their reasons.
        accepted = authenticator.accept(claims, now)
        if accepted is not None:
            return accepted

        # 4. Registered claims are of their types. (The issuer needs no second look: these same claims chose it.)
        check_types(claims)

        # 5. It is meant for one of the configured audiences (KEP "issuer.audiences").
        check_audience(claims, issuer)

        # 6. It has not ended, and has begun.
        verified = VerifiedClaims(_SEAL, claims, check_times(written_times(untrusted), now))

        # 7. Claims that another source holds join in (OpenID Connect Core 5.6.2); those not fetched yet stop the
        #    step that first asks for one.
        check_groups_source(verified.values, authenticator.config.claim_mappings.groups.claim)
        claims = with_sources(verified.values, fetched)
        run = Expressions({"claims": claims})

        # 8. Every claim validation rule is met (KEP "claimValidationRules").
        check_claim_rules(authenticator, claims, run)

        # 9. The claims are mapped to a user (KEP "claimMappings").
        user = run.variables["user"] = map_user(authenticator, claims, run)

        # 10. Every user validation rule is met (KEP "userValidationRules").
        check_user_rules(authenticator, run)
    except (TokenError, ClaimNeeded) as error:
        error.issuer = issuer.url
        if isinstance(error, AudienceRefused):
            error.rule = f"jwt[{authenticator.index}].issuer.audiences"
        if isinstance(error, SignatureRefused) and has_ended(untrusted.untrusted_claims, now):
            error.newer_keys_may_help = False  # whoever signed it: nobody need be asked
        raise
    return Authenticated(UserInfo.of(user), issuer.url, verified.expires_at)
