"""A configuration, an issuer's keys, and tokens of it."""

from __future__ import annotations

import base64
import json

import pytest
import yaml

from kubeauthn.server import Authenticator, load_configuration
from kubeauthn.testing._signing import SigningKey

URL = "https://issuer.example"
NOW = 1_700_000_000


def part(data) -> str:
    raw = data if isinstance(data, bytes) else data.encode() if isinstance(data, str) else json.dumps(data).encode()
    return base64.urlsafe_b64encode(raw).rstrip(b"=").decode()


class Bench:
    """Signs tokens, and makes authenticators that trust its key."""

    url, now = URL, NOW
    key = SigningKey.new("k1", "RS256")
    ec_key = SigningKey.new("e1", "ES256")

    @property
    def jwks(self):
        return {"keys": [self.key.jwk(), self.ec_key.jwk()]}

    def claims(self, **changes):
        claims = {"iss": URL, "aud": "app", "exp": NOW + 600, "username": "jane", **changes}
        return {name: value for name, value in claims.items() if value is not ...}

    def token(self, headers=None, key=None, **changes):
        return (key or self.key).sign(self.claims(**changes), headers or {})

    def raw_token(self, payload, header=None):
        """Signed over exactly these bytes."""
        head = header if header is not None else {"alg": "RS256", "kid": "k1"}
        signed = f"{part(head)}.{part(payload)}"
        return f"{signed}.{part(self.key._signature(signed.encode()))}"

    def authenticator(self, *, rules=(), user_rules=(), audiences=("app",), **mappings):
        mappings.setdefault("username", {"claim": "username", "prefix": ""})
        issuer = {"url": URL, "audiences": list(audiences)}
        if len(audiences) > 1:
            issuer["audienceMatchPolicy"] = "MatchAny"
        document = {
            "apiVersion": "apiserver.config.k8s.io/v1",
            "kind": "AuthenticationConfiguration",
            "jwt": [
                {
                    "issuer": issuer,
                    "claimValidationRules": list(rules),
                    "claimMappings": mappings,
                    "userValidationRules": list(user_rules),
                }
            ],
        }
        config = load_configuration(yaml.safe_dump(document))
        return Authenticator(config, keys={URL: self.jwks}, clock=lambda: NOW)


@pytest.fixture
def bench():
    return Bench()
