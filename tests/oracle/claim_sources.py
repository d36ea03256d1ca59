"""Generates tokens whose claims are elsewhere (OpenID Connect Core 5.6.2): `_claim_names` and `_claim_sources`, right
and wrong, and what the sources answer.
"""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from typing import Any

from kubeauthn.testing._signing import SigningKey
from tests.oracle.source_tokens import ISSUER, NOW, STRANGERS, VALUES, SourceTokens
from tests.oracle.token_texts import signed

__all__ = ["source_cases"]

_CLAIMS = ("groups", "groups", "groups", "groups", "roles", "name", "sub", "email_verified", "grüppen", 'a"b', "x.y/z")
_ODD_TEXTS = ("null", "1e400", '""', "5", "true", "[]", "{}", '["x"]')
_MAPPINGS = (
    {"groups": {"claim": "C", "prefix": ""}},
    {"groups": {"claim": "C", "prefix": "p:"}},
    {"groups": {"claim": "C", "prefix": ""}, "uid": {"claim": "C"}},
    {"groups": {"claim": "C", "prefix": ""}, "uid": {"claim": "D"}},
    {"groups": {"claim": "D", "prefix": "-"}},
    {"groups": {"expression": "dyn(claims['C'])"}},
    {"groups": {"expression": "claims[?'C'].orValue([])"}},
    {},
)
_NAMES = (
    {"claim": "sub", "prefix": ""},
    {"claim": "sub", "prefix": "p:"},
    {"expression": "claims.sub"},
    {"claim": "D", "prefix": "d:"},
    {"claim": "email", "prefix": ""},
)
_EXTRA = ("claims['D']", "claims['C']", "claims[?'D'].orValue('none')", "claims._claim_names[?'C'].orValue('')")
_RULES = (
    {"claim": "C", "requiredValue": "solo"},
    {"claim": "D", "requiredValue": "jane"},
    {"claim": "sub", "requiredValue": "u-1"},
    {"expression": "claims['C'] != 'x'", "message": "not x"},
    {"expression": "type(claims['D']) != int"},
    {"expression": "claims.sub == 'u-1'"},
    {"expression": "size(claims._claim_names) < 3"},
)
_USER_RULES = ("user.groups.all(g, g != 'd2')", "user.username != 'jane'", "user.groups.size() < 2")
Case = dict[str, Any]
Pairs = list[tuple[str, str]]
"""The members of an object, the values as JSON: a name may be there twice."""


class _Draw:
    def __init__(self, source: random.Random) -> None:
        self.random = source
        self.keys = [SigningKey.new("k1", "ES256"), SigningKey.new("k2", "RS256")]
        self.tokens = SourceTokens(source, self.keys)
        self.claim = self.second = ""
        self.replies: dict[str, Case] = {}

    def chance(self, probability: float) -> bool:
        return self.random.random() < probability

    def case(self) -> Case:
        self.claim, self.second = self.random.choice(_CLAIMS), self.random.choice(_CLAIMS)
        self.replies = {}
        claims = self.claims()
        key = self.random.choice(self.keys)
        header = {"alg": key.alg, "kid": key.kid}
        keys = {"keys": [one.jwk() for one in self.keys]}
        http = {**self.replies, **self.tokens.published()}
        return {"config": self.config(), "claims": claims, "token": signed(key, claims, header), "now": NOW,
                "jwks": keys, "http": http}  # fmt: skip

    # -- the configuration ------------------------------------------------------------------------------

    def config(self) -> str:
        one_audience = self.chance(0.8)
        issuer = {"url": ISSUER, "audiences": ["one"] if one_audience else ["two", "one"]}
        if not one_audience:
            issuer["audienceMatchPolicy"] = "MatchAny"
        mappings = {
            "username": self.random.choice(_NAMES[:1] * 6 + _NAMES),
            **self.random.choice(_MAPPINGS[:1] + _MAPPINGS),
        }
        if self.chance(0.15):
            mappings["extra"] = [{"key": "example.com/a", "valueExpression": self.random.choice(_EXTRA)}]
        entry: dict[str, Any] = {"issuer": issuer, "claimMappings": mappings}
        if self.chance(0.2):
            entry["claimValidationRules"] = [self.random.choice(_RULES)]
        if self.chance(0.1):
            entry["userValidationRules"] = [{"expression": self.random.choice(_USER_RULES)}]
        document = {
            "apiVersion": "apiserver.config.k8s.io/v1",
            "kind": "AuthenticationConfiguration",
            "jwt": [self.named(entry)],
        }
        return json.dumps(document, indent=1)

    def named(self, value: Any) -> Any:
        """With the names of the two claims where C and D stand."""
        if isinstance(value, dict):
            return {key: self.named(inner) for key, inner in value.items()}
        if isinstance(value, list):
            return [self.named(inner) for inner in value]
        if value in ("C", "D"):
            return self.claim if value == "C" else self.second
        if isinstance(value, str):
            return value.replace("'C'", _text(self.claim)).replace("'D'", _text(self.second))
        return value

    # -- the token --------------------------------------------------------------------------------------

    def claims(self) -> str:
        pairs: Pairs = [("iss", json.dumps(ISSUER)), ("aud", '"one"'), ("exp", str(NOW + 3600))]
        pairs += [("sub", '"u-1"')] if self.claim != "sub" or self.chance(0.3) else []
        pairs += [("email", '"jane@example.com"')] if self.chance(0.9) else []
        if self.chance(0.1):
            pairs.append((self.claim, self.random.choice(VALUES)))
        names = [(name, self.source_name()) for name in {self.claim: 0, self.second: 0} if self.chance(0.9)]
        used = list(dict.fromkeys(json.loads(name) for _, name in names))
        sources = [(name, _object(self.source(name))) for name in used]
        if self.chance(0.1):
            sources.append(("more", _object(self.source("more"))))
        shape = [("_claim_names", _object(self.odder(names))), ("_claim_sources", _object(self.odder(sources)))]
        if self.chance(0.12):
            shape = self.misshapen(shape)
        if self.chance(0.1):
            shape.reverse()
        return _object([*shape, *pairs] if self.chance(0.2) else [*pairs, *shape])

    def source_name(self) -> str:
        return json.dumps(self.random.choice(("src1", "src1", "src2", "quelle ü")))

    def misshapen(self, shape: Pairs) -> Pairs:
        place = self.random.randrange(2)
        name, value = shape[place]
        odd = (
            [],
            [(name, self.random.choice(("null", "{}", "[]", '"x"', "5", "true", '{"groups":{}}', '{"a":1e400}')))],
            [(name, self.random.choice(("null", "{}"))), (name, value)],
            [(name, value), (name, self.random.choice(("null", "{}")))],
            [(self.random.choice((name.upper(), name.title(), f"{name}s")), value)],
        )
        return [*shape[:place], *self.random.choice(odd), *shape[place + 1 :]]

    def odder(self, pairs: Pairs) -> Pairs:
        """Names, or sources: one of them of another type, twice, missing or of another name."""
        if not pairs or not self.chance(0.18):
            return pairs
        place = self.random.randrange(len(pairs))
        name, value = pairs[place]
        odd = self.random.choice(_ODD_TEXTS)
        changed = self.random.choice(
            (
                [],
                [(name, odd)],
                [(name, odd), (name, value)],
                [(name, value), (name, odd)],
                [(name, value), ("other", odd)],
                [("other", odd), (name, value)],
                [("other", value)],
            )
        )
        return [*pairs[:place], *changed, *pairs[place + 1 :]]

    # -- a source ---------------------------------------------------------------------------------------

    def source(self, name: str) -> Pairs:
        if self.chance(0.08):
            pairs = [("JWT", json.dumps("".join(self.tokens.token([self.claim, self.second]).split())))]
            if self.chance(0.3):
                pairs.append(("endpoint", self.random.choice(('""', "null", self.endpoint(name)))))
        else:
            pairs = [("endpoint", self.endpoint(name))]
            if self.chance(0.4):
                pairs.append(("access_token", '"tok"'))
        if self.chance(0.1):
            odd = self.random.choice(_ODD_TEXTS)
            member = self.random.choice(("endpoint", "access_token", "JWT", "Endpoint", "ACCESS_TOKEN", "jwt", "more"))
            pairs.insert(self.random.randint(0, len(pairs)), (member, odd))
        return pairs

    def endpoint(self, name: str) -> str:
        address = self.random.choice((ISSUER, *STRANGERS[:1])) + f"/claims/{name.partition(' ')[0]}"
        if self.chance(0.1):
            address += self.random.choice(("?q=1", "?q=%22", "/%41", "#f", "/ü"))
        # A request shows another address than the one that is written.
        reply = self.replies.setdefault(address, self.tokens.reply([self.claim, self.second]))
        self.replies.setdefault(address.replace("ü", "%C3%BC"), reply)
        return json.dumps(address)


def _object(pairs: Pairs) -> str:
    return "{" + ", ".join(f"{json.dumps(name)}: {value}" for name, value in pairs) + "}"


def _text(name: str) -> str:
    return json.dumps(name, ensure_ascii=False)


def source_cases(source: random.Random) -> Iterator[Case]:
    """Endless cases."""
    draw = _Draw(source)
    while True:
        yield draw.case()
