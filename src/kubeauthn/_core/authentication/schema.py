"""The fields of an AuthenticationConfiguration and their types, as Kubernetes names both. All three versions agree."""

from __future__ import annotations

STRING, BOOL = "string", "bool"

STRUCTS: dict[str, dict[str, str]] = {
    "AuthenticationConfiguration": {
        "kind": STRING,
        "apiVersion": STRING,
        "jwt": "[]JWTAuthenticator",
        "anonymous": "*AnonymousAuthConfig",
    },
    "AnonymousAuthConfig": {"enabled": BOOL, "conditions": "[]AnonymousAuthCondition"},
    "AnonymousAuthCondition": {"path": STRING},
    "JWTAuthenticator": {
        "issuer": "Issuer",
        "claimValidationRules": "[]ClaimValidationRule",
        "claimMappings": "ClaimMappings",
        "userValidationRules": "[]UserValidationRule",
    },
    "Issuer": {
        "url": STRING,
        "discoveryURL": "*string",
        "certificateAuthority": STRING,
        "audiences": "[]string",
        "audienceMatchPolicy": "AudienceMatchPolicyType",
        "egressSelectorType": "EgressSelectorType",
    },
    "ClaimValidationRule": {"claim": STRING, "requiredValue": STRING, "expression": STRING, "message": STRING},
    "ClaimMappings": {
        "username": "PrefixedClaimOrExpression",
        "groups": "PrefixedClaimOrExpression",
        "uid": "ClaimOrExpression",
        "extra": "[]ExtraMapping",
    },
    "PrefixedClaimOrExpression": {"claim": STRING, "prefix": "*string", "expression": STRING},
    "ClaimOrExpression": {"claim": STRING, "expression": STRING},
    "ExtraMapping": {"key": STRING, "valueExpression": STRING},
    "UserValidationRule": {"expression": STRING, "message": STRING},
}

STRING_TYPES = frozenset({"AudienceMatchPolicyType", "EgressSelectorType"})
"""Types of their own that hold a string."""

VERSIONS = ("v1", "v1beta1", "v1alpha1")

_TRACING = frozenset({"endpoint", "samplingRatePerMillion"})
OTHER_KINDS: dict[str, dict[str, frozenset[str]]] = {
    "apiserver.config.k8s.io/v1": {
        "AdmissionConfiguration": frozenset({"plugins"}),
        "AuthorizationConfiguration": frozenset({"authorizers"}),
        "EncryptionConfiguration": frozenset({"resources"}),
        "TracingConfiguration": _TRACING,
    },
    "apiserver.config.k8s.io/v1beta1": {
        "AuthorizationConfiguration": frozenset({"authorizers"}),
        "TracingConfiguration": _TRACING,
    },
    "apiserver.config.k8s.io/v1alpha1": {
        "AuthorizationConfiguration": frozenset({"authorizers"}),
        "TracingConfiguration": _TRACING,
    },
    "apiserver.k8s.io/v1beta1": {"EgressSelectorConfiguration": frozenset({"egressSelections"})},
    "apiserver.k8s.io/v1alpha1": {
        "AdmissionConfiguration": frozenset({"plugins"}),
        "EgressSelectorConfiguration": frozenset({"egressSelections"}),
    },
}
"""kube-apiserver's other files, by version, and the fields at the top of each: a wrong file is no wrong name."""
