"""The JSON Schema: it has every field, accepts what Kubernetes accepts, and refuses what an editor should underline."""

from __future__ import annotations

import io
import json
import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from kubeauthn._core.authentication.json_schema import configuration_schema
from kubeauthn._core.authentication.schema import STRUCTS
from kubeauthn.cli.main import main
from kubeauthn.cli.world import World

RECORDED = Path(__file__).parents[1] / "recorded" / "authn.jsonl"
SCHEMA = configuration_schema()
EXAMPLE = """\
apiVersion: apiserver.config.k8s.io/v1
kind: AuthenticationConfiguration
anonymous: {enabled: true, conditions: [{path: /healthz}]}
jwt:
- issuer:
    url: https://example.com
    discoveryURL: https://elsewhere.example/.well-known/openid-configuration
    audiences: [my-app, other-app]
    audienceMatchPolicy: MatchAny
    egressSelectorType: cluster
  claimValidationRules:
  - {claim: hd, requiredValue: example.com}
  - {expression: 'claims.hd == "example.com"', message: another domain}
  claimMappings:
    username: {expression: claims.username}
    groups: {claim: groups, prefix: ""}
    uid: {claim: sub}
    extra: [{key: example.com/client, valueExpression: claims.some}]
  userValidationRules:
  - {expression: "!user.username.startsWith('system:')", message: 'no system: here'}
"""

TYPES = {"object": dict, "array": list, "string": str, "boolean": bool, "null": type(None)}
KNOWN = {
    *("$schema", "$defs", "$ref", "title", "description", "type", "properties", "required", "additionalProperties"),
    *("items", "enum", "const", "pattern", "minLength", "minItems", "maxItems", "uniqueItems"),
    *("allOf", "anyOf", "oneOf", "not", "if", "then"),
}


def accepts(value: Any, schema: dict[str, Any] = SCHEMA) -> bool:
    """As much of draft 2020-12 as the schema uses, and an error for any more."""
    assert set(schema) <= KNOWN, set(schema) - KNOWN
    if "$ref" in schema and not accepts(value, SCHEMA["$defs"][schema["$ref"].removeprefix("#/$defs/")]):
        return False
    types = schema.get("type", [])
    if types and not any(isinstance(value, TYPES[name]) for name in ([types] if isinstance(types, str) else types)):
        return False
    if ("enum" in schema and value not in schema["enum"]) or ("const" in schema and value != schema["const"]):
        return False
    if isinstance(value, str) and len(value) < schema.get("minLength", 0):
        return False
    if isinstance(value, str) and not re.search(schema.get("pattern", ""), value):
        return False
    if isinstance(value, list):
        if not schema.get("minItems", 0) <= len(value) <= schema.get("maxItems", len(value)):
            return False
        if schema.get("uniqueItems") and len(set(value)) < len(value):
            return False
        if not all(accepts(item, schema.get("items", {})) for item in value):
            return False
    if isinstance(value, dict):
        properties = schema.get("properties", {})
        if not set(schema.get("required", ())) <= set(value):
            return False
        if schema.get("additionalProperties", True) is False and not set(value) <= set(properties):
            return False
        if not all(accepts(value[name], part) for name, part in properties.items() if name in value):
            return False
    if "not" in schema and accepts(value, schema["not"]):
        return False
    if "if" in schema and accepts(value, schema["if"]) and not accepts(value, schema["then"]):
        return False
    return (
        all(accepts(value, part) for part in schema.get("allOf", ()))
        and ("anyOf" not in schema or any(accepts(value, part) for part in schema["anyOf"]))
        and ("oneOf" not in schema or sum(accepts(value, part) for part in schema["oneOf"]) == 1)
    )


def changed(*path: Any, to: Any = None, remove: bool = False) -> Any:
    document = yaml.safe_load(EXAMPLE)
    place = document
    for step in path[:-1]:
        place = place[step]
    if remove:
        del place[path[-1]]
    else:
        place[path[-1]] = to
    return document


ENTRY = ("jwt", 0)
ISSUER = (*ENTRY, "issuer")
MAPPINGS = (*ENTRY, "claimMappings")


def test_the_example_is_accepted():
    assert accepts(yaml.safe_load(EXAMPLE))


@pytest.mark.parametrize(
    "document",
    [
        {"apiVersion": "apiserver.config.k8s.io/v1beta1", "kind": "AuthenticationConfiguration"},
        changed("jwt", to=[]),
        changed("anonymous", to=None),
        changed("anonymous", to={"enabled": False, "conditions": []}),
        changed("anonymous", to={"enabled": False}),
        changed(*ISSUER, "discoveryURL", to=None),
        changed(*ISSUER, "discoveryURL", to=""),
        changed(*MAPPINGS, "extra", 0, "key", to="notk8s.io/k8s.io/x"),
        changed(*ISSUER, "egressSelectorType", to=None),
        changed(*MAPPINGS, "groups", to={}),
        changed(*MAPPINGS, "groups", to=None),
        changed(*MAPPINGS, "username", to={"claim": "sub", "prefix": "-"}),
        changed(*ENTRY, "claimValidationRules", 0, to={"claim": "hd"}),
    ],
)
def test_what_kubernetes_accepts_is_accepted(document: Any):
    assert accepts(document)


@pytest.mark.parametrize(
    "document",
    [
        changed("kind", to="Pod"),
        changed("apiVersion", to="apiserver.config.k8s.io/v2"),
        changed("kind", remove=True),
        changed("jwts", to=[]),
        changed("jwt", to=[{}] * 65),
        changed(*ISSUER, "url", to="http://example.com"),
        changed(*ISSUER, "url", remove=True),
        changed(*ISSUER, "url", to="https://me@example.com"),
        changed(*ISSUER, "discoveryURL", to="http://elsewhere.example"),
        changed(*ISSUER, "discoveryURL", to="https://elsewhere.example/?tenant=1"),
        changed("anonymous", to={"enabled": False, "conditions": [{"path": "/livez"}]}),
        changed("anonymous", to={"conditions": [{"path": "/livez"}]}),
        changed(*MAPPINGS, "extra", 0, "key", to="kubernetes.io/team"),
        changed(*MAPPINGS, "extra", 0, "key", to="authentication.k8s.io/team"),
        changed(*ISSUER, "audiences", to=[]),
        changed(*ISSUER, "audiences", to=["a", "a"]),
        changed(*ISSUER, "audiences", to=[""]),
        changed(*ISSUER, "audienceMatchPolicy", remove=True),
        changed(*ISSUER, "egressSelectorType", to="etcd"),
        changed(*ISSUER, "discoveryUrl", to="https://example.com"),
        changed(*MAPPINGS, "username", to={"claim": "sub"}),
        changed(*MAPPINGS, "username", to={}),
        changed(*MAPPINGS, "username", to={"claim": "sub", "prefix": "", "expression": "claims.sub"}),
        changed(*MAPPINGS, "username", to={"expression": "claims.sub", "prefix": ""}),
        changed(*MAPPINGS, "uid", to={"claim": "sub", "expression": "claims.sub"}),
        changed(*MAPPINGS, "extra", 0, "key", to="client"),
        changed(*MAPPINGS, "extra", 0, "key", to="example.com/Client"),
        changed(*ENTRY, "claimValidationRules", 0, "message", to="no"),
        changed(*ENTRY, "claimValidationRules", 1, "requiredValue", to="x"),
        changed(*ENTRY, "claimValidationRules", 1, to={}),
        changed(*ENTRY, "userValidationRules", 0, "expression", to=""),
    ],
)
def test_what_an_editor_should_underline_is_refused(document: Any):
    assert not accepts(document)


def test_no_field_is_forgotten():
    definitions = {**SCHEMA["$defs"], "AuthenticationConfiguration": SCHEMA}
    assert {name: list(part["properties"]) for name, part in definitions.items()} == {
        name: list(fields) for name, fields in STRUCTS.items()
    }


UNDERLINED_ALL_THE_SAME = {
    "decode/aud-date",  # values that YAML has and JSON has not
    "decode/aud-binary",
    "issuer-url/13",  # addresses without a host, or with a question mark and nothing after it
    "issuer-url/23",
}


def test_whatever_kube_apiserver_took_is_accepted():
    refused = set()
    accepted = 0
    for line in RECORDED.read_text().splitlines():
        case = json.loads(line)
        if case["expect"].get("configErrors") or case["expect"].get("strictDecodeError"):
            continue
        try:
            document = yaml.safe_load(case["config"])
        except yaml.YAMLError:
            continue  # read by Kubernetes' parser, not by this one
        if accepts(document):
            accepted += 1
        else:
            refused.add(case["name"])
    assert refused <= UNDERLINED_ALL_THE_SAME
    assert accepted > 500


BEYOND_A_SCHEMA = (
    # expressions, certificates, texts in two places that differ or do not
    "compilation failed", "must evaluate to", "claims.email_verified must be used",
    "certificateAuthority: Invalid value",
    "Duplicate value", "duplicate field", "already set in map", "must be different from URL", "must not overlap",
    # details of an address, of a domain and of a path
    ': parse "', "a lowercase RFC 1123 subdomain", "regex used for validation",
)  # fmt: skip
READ_OTHERWISE = {"decode/aud-exp", "decode/aud-y", "cvr/claim-number"}
"""By the YAML reader of this test: y and 1e3 are texts to it."""


def test_whatever_kube_apiserver_refused_is_underlined_unless_a_schema_cannot_tell():
    accepted, underlined = set(), 0
    for line in RECORDED.read_text().splitlines():
        case = json.loads(line)
        told = case["expect"].get("configErrors") or [case["expect"].get("strictDecodeError")]
        if not all(told) or any(part in fault for part in BEYOND_A_SCHEMA for fault in told):
            continue
        try:
            document = yaml.safe_load(case["config"])
        except yaml.YAMLError:
            continue
        if accepts(document):
            accepted.add(case["name"])
        else:
            underlined += 1
    assert accepted == READ_OTHERWISE
    assert underlined > 60


def test_the_command_prints_it():
    out = io.StringIO()
    assert main(["schema"], World(stdin=io.StringIO(), stdout=out, stderr=io.StringIO(), environ={})) == 0
    assert json.loads(out.getvalue()) == SCHEMA
