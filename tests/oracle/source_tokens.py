"""What the sources of claims answer: tokens of a few issuers, right and wrong, and things that are none.

The oracle's network answers for every issuer, and ours for those that a case has. So the tokens are of issuers that are
published here; of others they would show nothing but that.
"""

from __future__ import annotations

import base64
import json
import random
from typing import Any

from kubeauthn.testing._signing import SigningKey
from tests.oracle.token_texts import odd_json, odd_token, signed

__all__ = ["ISSUER", "NOW", "STRANGERS", "VALUES", "SourceTokens"]

NOW = 1_800_000_000
ISSUER = "https://a.example"
STRANGERS = ("https://s.example", "https://t.example/x/", "https://accounts.google.com")
VALUES = (
    '["d1","d2"]', '"solo"', '""', "[]", "null", "1", "true", "{}", '["a",1]', '["a",null]', '["",""]', "1e400",
    '["a","a"]', '[1e400]', r'"\ud800"', '{"a":"b"}', "false", r'["\u0000"]', '"a,b"', "-0",
)  # fmt: skip
"""Of a claim, as JSON."""
_USUAL: dict[str, Any] = {"name": "jane", "sub": "u-2", "email_verified": True}
_ODD_CLAIMS: tuple[dict[str, Any], ...] = (
    {"exp": NOW}, {"exp": NOW - 1}, {"exp": NOW + 1}, {"exp": None}, {"exp": 1e300}, {"nbf": NOW + 59},
    {"nbf": NOW + 61}, {"aud": "three"}, {"aud": ["three", "one"]}, {"aud": []}, {"aud": 5}, {"aud": None},
    {"aud": [None]}, {"sub": 5}, {"nonce": 1}, {"iss": 5}, {"jti": 7}, {"_claim_names": {"groups": "s"}},
    {"_claim_names": {"groups": "s"}, "_claim_sources": {"s": {"endpoint": ISSUER}}}, {"_claim_names": 5},
    {"_claim_sources": {"a": {"endpoint": 5}}},
)  # fmt: skip
_STATUSES = (201, 204, 226, 227, 299, 300, 302, 304, 400, 401, 403, 404, 410, 413, 414, 416, 418, 422, 429, 500, 503)
_TYPES = ("", "application/jwt", "text/html", "application/json; charset=latin-1", "nonsense")
_SPACES = (" ", "\n", "\r\n", "\t", "\x0b", "\xa0", "\ufeff")
_PAYLOADS = ("[]", '"a"', "1", "tru", '{"iss":1}', '{"iss":["a"]}', '{"iss":', '{"a":1', '{"iss":"x","a":01}', "{} {}")
_ODD_BODIES = (
    "", " ", "\n", "null", "{}", "[]", '"a.b.c"', "a", "a.b", "a.b.c", "..", "...", "<html>", '{"groups":["d1"]}',
    "e30.e30=.e30", "e30.é.e30", " {a.b.c", "e30.ey.e30", "x" * 100_000,
)  # fmt: skip
_REGISTERED = ("iss", "sub", "aud", "exp", "nbf", "iat", "nonce", "at_hash", "_claim_names", "_claim_sources")
_KNOWN = {ISSUER, *STRANGERS, "accounts.google.com"}
Case = dict[str, Any]


class SourceTokens:
    """Draws them from a random source. `keys` are those of the configured issuer."""

    def __init__(self, source: random.Random, keys: list[SigningKey]) -> None:
        self.random = source
        self.keys = keys
        self.strangers_key = SigningKey.new("k3", "ES384")
        self.nobodys_key = SigningKey.new(keys[0].kid, "ES256")

    def chance(self, probability: float) -> bool:
        return self.random.random() < probability

    def published(self) -> dict[str, Case]:
        """Discovery documents and key sets of every issuer here but the configured one."""
        replies = {}
        for issuer in STRANGERS:
            at = f"{issuer.removesuffix('/')}/keys"
            document = {"issuer": issuer, "jwks_uri": at}
            replies[issuer.removesuffix("/") + "/.well-known/openid-configuration"] = {"body": json.dumps(document)}
            replies[at] = {"body": json.dumps({"keys": [self.strangers_key.jwk()]})}
        return replies

    def reply(self, names: list[str]) -> Case:
        """Of an endpoint that has these claims."""
        reply: Case = {"body": self.body(names)}
        if self.chance(0.08):
            reply["status"] = self.random.choice(_STATUSES)
        if self.chance(0.2):
            reply["contentType"] = self.random.choice(_TYPES)
        return reply

    def body(self, names: list[str]) -> str:
        if self.chance(0.05):
            return self.random.choice(_ODD_BODIES)
        if self.chance(0.05):
            return f"e30.{_encoded(self.random.choice(_PAYLOADS))}.e30"
        token = self.token(names)
        if self.chance(0.06):
            space = self.random.choice(_SPACES)
            return self.random.choice((token + space, space + token, token.replace(".", f".{space}", 1)))
        return token

    def token(self, names: list[str]) -> str:
        """A token that holds these claims."""
        while True:
            issuer = self.random.choice((ISSUER, ISSUER, *STRANGERS))
            payload = self.payload(issuer, names)
            key, kid = self.signer(issuer)
            header = {"alg": key.alg, "kid": kid}
            token = odd_token(self.random, key, payload, header) if self.chance(0.1) else signed(key, payload, header)
            if _is_answerable(payload) and not _has_extension(token):
                return token

    def payload(self, issuer: str, names: list[str]) -> str:
        claims: dict[str, Any] = {"iss": issuer, "aud": "one", "exp": NOW + 3600}
        if issuer.endswith("google.com") and self.chance(0.5):
            claims["iss"] = "accounts.google.com"
        if self.chance(0.15):
            claims |= self.random.choice(_ODD_CLAIMS)
        held = {name: _USUAL.get(name, ["d1", "d2"]) for name in names}
        if self.chance(0.08):
            del held[self.random.choice(list(held))]
        if self.chance(0.08):
            return odd_json(self.random, {**claims, **held})
        text = json.dumps({**claims, **held})
        if names[0] in held and self.chance(0.25):
            name = json.dumps(names[0])
            text = text.replace(f"{name}: {json.dumps(held[names[0]])}", f"{name}: {self.random.choice(VALUES)}")
        return text

    def signer(self, issuer: str) -> tuple[SigningKey, str]:
        """The key that signs, and the id by which the token names it."""
        key = self.keys[0] if issuer == ISSUER else self.strangers_key
        if self.chance(0.06):
            key = self.random.choice((self.nobodys_key, *self.keys, self.strangers_key))
        return key, self.random.choice(("", "other", "k1")) if self.chance(0.06) else key.kid


def _is_answerable(payload: str) -> bool:
    """Whether its issuer is published, or nobody is asked for keys because it cannot be read.

    What is registered is there once, in its own letters, and has one fault at most: the rest is for tokens that are
    no source's.
    """
    try:
        members = json.loads(payload, object_pairs_hook=_Members)
    except ValueError:
        return True
    if not isinstance(members, _Members):
        return members is not None
    names, claims = [name for name, _ in members], dict(members)
    if any(names.count(name) > 1 for name in _REGISTERED):
        return False
    if any(name.casefold() in _REGISTERED and name not in _REGISTERED for name in names):
        return False
    if any(isinstance(claims.get(name), str) for name in ("exp", "nbf", "iat")):
        return False
    if claims.get("aud") != "one" and claims.get("exp") != NOW + 3600:
        return False
    issuer = claims.get("iss")
    return issuer in _KNOWN if isinstance(issuer, str) else issuer is not None


class _Members(list[tuple[str, Any]]):
    pass


def _has_extension(token: str) -> bool:
    """Whether its header asks for one; none is understood, which other tokens show."""
    head = token.partition(".")[0].strip()
    try:
        text = base64.urlsafe_b64decode(head + "=" * (-len(head) % 4))
    except ValueError:
        return False
    return b"crit" in text or b"b64" in text


def _encoded(text: str) -> str:
    return base64.urlsafe_b64encode(text.encode()).decode().rstrip("=")
