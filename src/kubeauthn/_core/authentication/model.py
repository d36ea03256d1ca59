"""An AuthenticationConfiguration as data.

The names are those of the file, in Python's spelling. What is absent is "" or (), as in Kubernetes, where `null` and
absent are one thing; only `prefix` and `anonymous` tell absent from empty.
"""

from __future__ import annotations

from kubeauthn._core.record import field, record

GROUP = "apiserver.config.k8s.io"
KIND = "AuthenticationConfiguration"
MATCH_ANY = "MatchAny"


@record(frozen=True, slots=True)
class Issuer:
    """`jwt[].issuer`: who signs, where its keys are found, and for whom its tokens must be meant."""

    url: str = ""
    discovery_url: str = ""
    certificate_authority: str = field(default="", repr=False)
    """PEM text, not a path; "" is the system's own roots."""
    audiences: tuple[str, ...] = ()
    audience_match_policy: str = ""
    egress_selector_type: str = ""
    """Where kube-apiserver connects from. It has no effect here."""


@record(frozen=True, slots=True)
class ClaimValidationRule:
    """`jwt[].claimValidationRules[]`: a claim with a value it must have, or an expression that must be true."""

    claim: str = ""
    required_value: str = ""
    expression: str = ""
    message: str = ""


@record(frozen=True, slots=True)
class PrefixedClaim:
    """A claim with a prefix, or an expression. A prefix is literal: "-" is a dash, "" is nothing."""

    claim: str = ""
    prefix: str | None = None
    expression: str = ""


@record(frozen=True, slots=True)
class ClaimOrExpression:
    claim: str = ""
    expression: str = ""


@record(frozen=True, slots=True)
class ExtraMapping:
    key: str = ""
    value_expression: str = ""


@record(frozen=True, slots=True)
class ClaimMappings:
    """`jwt[].claimMappings`: how claims become a user."""

    username: PrefixedClaim = PrefixedClaim()
    groups: PrefixedClaim = PrefixedClaim()
    uid: ClaimOrExpression = ClaimOrExpression()
    extra: tuple[ExtraMapping, ...] = ()


@record(frozen=True, slots=True)
class UserValidationRule:
    """`jwt[].userValidationRules[]`: an expression over `user` that must be true."""

    expression: str = ""
    message: str = ""


@record(frozen=True, slots=True)
class JWTAuthenticator:
    """One entry of `jwt`."""

    issuer: Issuer = Issuer()
    claim_validation_rules: tuple[ClaimValidationRule, ...] = ()
    claim_mappings: ClaimMappings = ClaimMappings()
    user_validation_rules: tuple[UserValidationRule, ...] = ()


@record(frozen=True, slots=True)
class Anonymous:
    """`anonymous`. `conditions` are the paths; None where the field is absent, () where it is an empty list."""

    enabled: bool = False
    conditions: tuple[str, ...] | None = None


@record(frozen=True, slots=True)
class AuthenticationConfiguration:
    """A whole file."""

    api_version: str
    jwt: tuple[JWTAuthenticator, ...] = ()
    anonymous: Anonymous | None = None
    source: str = ""
    """What the text hashes to, as the metrics show it: `sha256:` and the hex digest."""
