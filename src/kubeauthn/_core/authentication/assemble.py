"""Decoded fields to records, with the defaults: what is absent is empty."""

from __future__ import annotations

from kubeauthn._core.authentication.model import (
    Anonymous,
    AuthenticationConfiguration,
    ClaimMappings,
    ClaimOrExpression,
    ClaimValidationRule,
    ExtraMapping,
    Issuer,
    JWTAuthenticator,
    PrefixedClaim,
    UserValidationRule,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    Fields = Mapping[str, Any]


def assemble(api_version: str, values: Fields, source: str) -> AuthenticationConfiguration:
    """`values` are the fields by their names in the file; a field that is not there may be missing or None."""
    anonymous = values.get("anonymous")
    return AuthenticationConfiguration(
        api_version,
        tuple(_authenticator(entry) for entry in _items(values, "jwt")),
        None if anonymous is None else _anonymous(anonymous),
        source,
    )


def _items(values: Fields, name: str) -> list[Fields]:
    """The entries of a list; one that is null is an empty one."""
    return [entry or {} for entry in values.get(name) or ()]


def _text(values: Fields, name: str) -> str:
    return values.get(name) or ""


def _anonymous(values: Fields) -> Anonymous:
    conditions = values.get("conditions")
    paths = None if conditions is None else tuple(_text(entry or {}, "path") for entry in conditions)
    return Anonymous(bool(values.get("enabled")), paths)


def _authenticator(values: Fields) -> JWTAuthenticator:
    return JWTAuthenticator(
        _issuer(values.get("issuer") or {}),
        tuple(
            ClaimValidationRule(
                _text(rule, "claim"), _text(rule, "requiredValue"), _text(rule, "expression"), _text(rule, "message")
            )
            for rule in _items(values, "claimValidationRules")
        ),
        _mappings(values.get("claimMappings") or {}),
        tuple(
            UserValidationRule(_text(rule, "expression"), _text(rule, "message"))
            for rule in _items(values, "userValidationRules")
        ),
    )


def _issuer(values: Fields) -> Issuer:
    return Issuer(
        _text(values, "url"),
        _text(values, "discoveryURL"),
        _text(values, "certificateAuthority"),
        tuple(audience or "" for audience in values.get("audiences") or ()),
        _text(values, "audienceMatchPolicy"),
        _text(values, "egressSelectorType"),
    )


def _mappings(values: Fields) -> ClaimMappings:
    uid = values.get("uid") or {}
    return ClaimMappings(
        _prefixed(values.get("username") or {}),
        _prefixed(values.get("groups") or {}),
        ClaimOrExpression(_text(uid, "claim"), _text(uid, "expression")),
        tuple(ExtraMapping(_text(entry, "key"), _text(entry, "valueExpression")) for entry in _items(values, "extra")),
    )


def _prefixed(values: Fields) -> PrefixedClaim:
    return PrefixedClaim(_text(values, "claim"), values.get("prefix"), _text(values, "expression"))
