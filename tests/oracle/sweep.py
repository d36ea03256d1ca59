"""One thing at a time: every field of a configuration, header member and claim, with every odd JSON value in it."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator
from typing import Any

from kubeauthn.testing._signing import SigningKey

__all__ = ["sweep_cases"]

NOW = 1_800_000_000
_ODD = (
    "null", '""', "0", "-0", "1", "-1", "1.5", "1e3", "1e300", "-1e300", "1e400", "1e-400", "true", "false", "[]", "{}",
    "[null]", '[""]', "[{}]", '["a"]', '["a","a"]', '["one"]', '["one",null]', '["one",1]', "[[]]", '{"a":1}', '"x"',
    '" "', '"é"', r'"\u0000"', r'"\ud800"', r'"a\nb"', '"null"', '"true"', '"1800003600"', "1800003600.9", "1800000000",
    "123456789012345678901234567890", "-62135596801", "9223371974719179008",
)  # fmt: skip
_TIMES = ("exp", "nbf", "iat")
_FULL = {
    "apiVersion": "apiserver.config.k8s.io/v1",
    "kind": "AuthenticationConfiguration",
    "anonymous": {"enabled": True, "conditions": [{"path": "/livez"}]},
    "jwt": [
        {
            "issuer": {
                "url": "https://a.example",
                "discoveryURL": "https://d.example/x",
                "certificateAuthority": "",
                "audiences": ["one", "two"],
                "audienceMatchPolicy": "MatchAny",
                "egressSelectorType": "cluster",
            },
            "claimValidationRules": [
                {"claim": "hd", "requiredValue": "x"},
                {"expression": "claims.n == 1.0", "message": "m"},
            ],
            "claimMappings": {
                "username": {"expression": "claims.sub"},
                "groups": {"claim": "groups", "prefix": "g:"},
                "uid": {"claim": "uid"},
                "extra": [{"key": "example.com/a", "valueExpression": "claims.sub"}],
            },
            "userValidationRules": [{"expression": "user.username != 'x'", "message": "u"}],
        }
    ],
}
_MAPPINGS = (
    {"username": {"claim": "V", "prefix": "p:"}},
    {"username": {"claim": "sub", "prefix": ""}, "groups": {"claim": "V", "prefix": "g:"}},
    {"username": {"claim": "sub", "prefix": ""}, "uid": {"claim": "V"}},
    {"username": {"expression": "claims.V"}},
    {"username": {"expression": "claims.sub"}, "groups": {"expression": "claims.V"}},
    {"username": {"expression": "claims.sub"}, "uid": {"expression": "claims.V"}},
    {"username": {"expression": "claims.sub"}, "extra": [{"key": "e.example/a", "valueExpression": "claims.V"}]},
    {"username": {"expression": "string(claims.V)"}},
)
_CLAIMS = {"iss": '"https://a.example"', "aud": '"one"', "exp": str(NOW + 3600), "sub": '"u-1"', "email": '"j@x"'}
_REGISTERED = ("iss", "aud", "exp", "nbf", "iat", "sub", "jti", "nonce", "at_hash", "_claim_names", "_claim_sources")
_HEADERS = ("alg", "kid", "typ", "cty", "jwk", "jku", "x5u", "x5c", "x5t", "nonce", "b64", "zip", "enc")


def sweep_cases() -> Iterator[dict[str, Any]]:
    """Some thousand cases, the same ones each time but for the key."""
    key = SigningKey.new("k1", "ES256")
    keys = {"keys": [key.jwk()]}
    for text in _configurations():
        yield {"config": text, "claims": None, "jwks": keys, "now": NOW}
    for mappings, claims, header in _tokens():
        config = {**_FULL, "jwt": [{"issuer": {"url": "https://a.example", "audiences": ["one"]}}]}
        config["jwt"] = [{**config["jwt"][0], "claimMappings": mappings}]  # type: ignore[index, dict-item]
        payload = _object(claims)
        token = _signed(key, _object({"alg": '"ES256"', "kid": '"k1"'} | header), payload)
        yield {"config": json.dumps(config), "claims": payload, "token": token, "jwks": keys, "now": NOW}


def _configurations() -> Iterator[str]:
    for path in _paths(_FULL):
        for value in _ODD:
            yield json.dumps(_with(_FULL, path, "\0")).replace(r'"\u0000"', value)
        last = path[-1]
        if isinstance(last, str):
            for other in (last.upper(), last.capitalize(), f"{last} ", f"{last}s"):
                yield json.dumps(_FULL).replace(f'"{last}":', f'"{other}":', 1)


def _tokens() -> Iterator[tuple[dict[str, Any], dict[str, str], dict[str, str]]]:
    for value in _ODD:
        for mappings in _MAPPINGS:
            yield mappings, _CLAIMS | {"V": value}, {}
        for name in _REGISTERED:
            if name not in _TIMES or not value.startswith('"'):  # times are numbers here, and texts too there
                yield _MAPPINGS[2], _CLAIMS | {name: value}, {}
        yield {"username": {"claim": "email", "prefix": ""}}, _CLAIMS | {"email_verified": value}, {}
        for name in _HEADERS:
            yield {"username": {"claim": "sub", "prefix": ""}}, _CLAIMS, {name: value}


def _paths(node: Any, path: tuple[str | int, ...] = ()) -> Iterator[tuple[str | int, ...]]:
    if path:
        yield path
    inner = node.items() if isinstance(node, dict) else enumerate(node) if isinstance(node, list) else ()
    for step, value in inner:
        yield from _paths(value, (*path, step))


def _with(node: Any, path: tuple[str | int, ...], value: object) -> Any:
    if not path:
        return value
    copy = dict(node) if isinstance(node, dict) else list(node)
    copy[path[0]] = _with(copy[path[0]], path[1:], value)
    return copy


def _object(members: dict[str, str]) -> str:
    return "{" + ",".join(f'"{name}":{value}' for name, value in members.items()) + "}"


def _signed(key: SigningKey, header: str, payload: str) -> str:
    signed = f"{_part(header.encode())}.{_part(payload.encode())}"
    return f"{signed}.{_part(key._signature(signed.encode()))}"


def _part(content: bytes) -> str:
    return base64.urlsafe_b64encode(content).decode().rstrip("=")
