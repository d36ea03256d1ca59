"""A JSON Schema (draft 2020-12) of the file, for editors.

The fields and their types come from `schema.STRUCTS`, which the decoder reads by, so no field is forgotten. What
JSON Schema cannot say (that an expression compiles, that issuers differ) is left to `check`.
"""

from __future__ import annotations

from kubeauthn._core.authentication.model import GROUP, KIND, MATCH_ANY
from kubeauthn._core.authentication.schema import BOOL, STRUCTS, VERSIONS
from kubeauthn._core.authentication.validate import AUTHENTICATORS, EGRESS_SELECTORS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

DRAFT = "https://json-schema.org/draft/2020-12/schema"

_HTTPS = {"pattern": "^[hH][tT][tT][pP][sS]://[^/?#@]*(/[^?#]*)?$"}
_HTTPS_OR_NONE = {"pattern": "^([hH][tT][tT][pP][sS]://[^/?#@]*(/[^?#]*)?)?$"}
_NOT_RESERVED = r"(?!([^/]*\.)?(k8s|kubernetes)\.io/)"
_TEXT = {"minLength": 1}
_CEL_CLAIMS = "CEL over claims, a map of the token's claims."
_CEL_USER = "CEL over user (username, uid, groups, extra); it must be true."

_DESCRIPTIONS = {
    "AuthenticationConfiguration": "Who may come with which tokens.",
    "AuthenticationConfiguration.jwt": "One entry for each issuer.",
    "AuthenticationConfiguration.anonymous": "Who may come without a token. A TokenReview webhook is never asked.",
    "AnonymousAuthConfig.conditions": "The paths on which anonymous requests are allowed; without it, all.",
    "Issuer.url": "The issuer, letter for letter as in the iss of its tokens.",
    "Issuer.discoveryURL": "The address of the discovery document, where it is not below url.",
    "Issuer.certificateAuthority": "The CA of the issuer's server: PEM text, not the path of a file.",
    "Issuer.audiences": "A token's aud must hold one of them.",
    "Issuer.audienceMatchPolicy": "MatchAny; needed where there are several audiences.",
    "Issuer.egressSelectorType": "Where kube-apiserver connects from. It has no effect elsewhere.",
    "JWTAuthenticator.claimValidationRules": "What the claims of a token must be; every rule must be met.",
    "JWTAuthenticator.claimMappings": "How claims become a user.",
    "JWTAuthenticator.userValidationRules": "What the user must be; every rule must be met.",
    "ClaimValidationRule": "A claim with the value it must have, or an expression that must be true.",
    "ClaimValidationRule.expression": f"{_CEL_CLAIMS} It must be true.",
    "ClaimValidationRule.message": "Why a token is refused by the expression.",
    "PrefixedClaimOrExpression": "A claim with a prefix, or an expression.",
    "PrefixedClaimOrExpression.prefix": 'Put before each name. It is literal: "" is none, "-" is a dash.',
    "PrefixedClaimOrExpression.expression": _CEL_CLAIMS,
    "ClaimOrExpression.expression": f"{_CEL_CLAIMS} It must be a string.",
    "ExtraMapping.key": "A path with a domain before it, in lower case: example.com/name.",
    "ExtraMapping.valueExpression": f"{_CEL_CLAIMS} It must be a string or a list of strings.",
    "UserValidationRule.expression": _CEL_USER,
    "UserValidationRule.message": "Why a user is refused.",
}

_LIMITS: dict[str, dict[str, Any]] = {
    "AuthenticationConfiguration.kind": {"const": KIND},
    "AuthenticationConfiguration.apiVersion": {"enum": [f"{GROUP}/{version}" for version in VERSIONS]},
    "AuthenticationConfiguration.jwt": {"maxItems": AUTHENTICATORS},
    "Issuer.url": _HTTPS,
    "Issuer.discoveryURL": _HTTPS_OR_NONE,
    "Issuer.audiences": {"minItems": 1, "uniqueItems": True},
    "Issuer.audienceMatchPolicy": {"enum": [MATCH_ANY, "", None]},
    "Issuer.egressSelectorType": {"enum": [*EGRESS_SELECTORS, "", None]},
    "ExtraMapping.key": {"pattern": f"^{_NOT_RESERVED}[a-z0-9]([-a-z0-9.]*[a-z0-9])?/[^A-Z]+$"},
    "ExtraMapping.valueExpression": _TEXT,
    "UserValidationRule.expression": _TEXT,
}

_REQUIRED = {
    "AuthenticationConfiguration": ["apiVersion", "kind"],
    "JWTAuthenticator": ["issuer", "claimMappings"],
    "Issuer": ["url", "audiences"],
    "ClaimMappings": ["username"],
    "ExtraMapping": ["key", "valueExpression"],
    "UserValidationRule": ["expression"],
}


def _given(*names: str) -> dict[str, Any]:
    """These fields are there and not empty."""
    return {"required": list(names), "properties": {name: {"type": "string", "minLength": 1} for name in names}}


def _one_of_two(with_claim: dict[str, Any], with_expression: dict[str, Any]) -> list[dict[str, Any]]:
    return [{**with_claim, "not": _given("expression")}, {**with_expression, "not": _given("claim")}]


_PREFIXED = _one_of_two(
    {"required": ["claim", "prefix"], "properties": {**_given("claim")["properties"], "prefix": {"type": "string"}}},
    {**_given("expression"), "properties": {**_given("expression")["properties"], "prefix": {"type": "null"}}},
)
_WHOLE: dict[str, dict[str, Any]] = {
    "AnonymousAuthConfig": {
        "if": {"properties": {"conditions": {"type": "array", "minItems": 1}}, "required": ["conditions"]},
        "then": {"properties": {"enabled": {"const": True}}, "required": ["enabled"]},
    },
    "ClaimValidationRule": {
        "oneOf": _one_of_two(
            {**_given("claim"), "properties": {**_given("claim")["properties"], "message": {"enum": ["", None]}}},
            {
                **_given("expression"),
                "properties": {**_given("expression")["properties"], "requiredValue": {"enum": ["", None]}},
            },
        )
    },
    "ClaimMappings": {"properties": {"username": {"oneOf": _PREFIXED}}},
    "PrefixedClaimOrExpression": {
        "anyOf": [{"not": {"anyOf": [_given("claim"), _given("expression")]}}, {"oneOf": _PREFIXED}]
    },
    "ClaimOrExpression": {"not": _given("claim", "expression")},
    "Issuer": {
        "if": {"properties": {"audiences": {"minItems": 2}}, "required": ["audiences"]},
        "then": {"properties": {"audienceMatchPolicy": {"const": MATCH_ANY}}, "required": ["audienceMatchPolicy"]},
    },
}
"""What holds between the fields of a struct."""


def configuration_schema() -> dict[str, Any]:
    definitions = {name: _struct(name) for name in STRUCTS}
    root = definitions.pop(KIND)
    return {"$schema": DRAFT, "title": KIND, **root, "$defs": definitions}


def _struct(name: str) -> dict[str, Any]:
    required = _REQUIRED.get(name, [])
    schema: dict[str, Any] = {
        "type": "object",
        "additionalProperties": False,
        "properties": {field: _field(name, field, kind, field in required) for field, kind in STRUCTS[name].items()},
    }
    if required:
        schema["required"] = required
    if description := _DESCRIPTIONS.get(name):
        schema["description"] = description
    whole = _WHOLE.get(name)
    if whole:
        schema["allOf"] = [whole]
    return schema


def _field(struct: str, name: str, kind: str, required: bool) -> dict[str, Any]:
    """`null` is absent in Kubernetes, so it is allowed wherever a field may be absent."""
    place = f"{struct}.{name}"
    schema = {**_type(kind, required), **_LIMITS.get(place, {})}
    if description := _DESCRIPTIONS.get(place):
        schema["description"] = description
    return schema


def _type(kind: str, required: bool) -> dict[str, Any]:
    kind = kind.removeprefix("*")
    if kind.startswith("[]"):
        element = kind.removeprefix("[]")
        items = {"$ref": f"#/$defs/{element}"} if element in STRUCTS else {"type": "string", "minLength": 1}
        return {"type": "array" if required else ["array", "null"], "items": items}
    if kind in STRUCTS:
        reference = {"$ref": f"#/$defs/{kind}"}
        return reference if required else {"anyOf": [reference, {"type": "null"}]}
    name = "boolean" if kind == BOOL else "string"
    return {"type": name if required else [name, "null"]}
