"""Generates configurations and tokens: right for the most part, with one thing or another wrong."""

from __future__ import annotations

import json
import random
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from kubeauthn._core.authentication.load import load_configuration
from kubeauthn.errors import AuthenticationConfigError
from kubeauthn.testing import CertificateAuthority
from kubeauthn.testing._signing import SigningKey
from tests.oracle.configuration_texts import (
    BAD_ISSUERS,
    CLAIM_NAMES,
    GROUP_EXPRESSIONS,
    ISSUERS,
    KEYS,
    NAME_EXPRESSIONS,
    RULE_EXPRESSIONS,
    USER_EXPRESSIONS,
)
from tests.oracle.documents import changed
from tests.oracle.expressions import Grower
from tests.oracle.key_sets import odd_key_set
from tests.oracle.token_texts import odd_json, odd_token, signed
from tests.oracle.yaml_texts import written

__all__ = ["configuration_cases"]

RECORDED = Path(__file__).resolve().parents[1] / "recorded"
NOW = 1_800_000_000
DRAWS = 20
Case = dict[str, Any]


class _Draw:
    """One configuration and its token, drawn from a random source."""

    def __init__(self, source: random.Random, keys: dict[str, SigningKey]) -> None:
        self.random = source
        self.keys = keys
        self.grower = Grower(source)
        pem = CertificateAuthority().certificate_pem.decode()
        self.bundles = (
            pem,
            pem * 2,
            "# ours\n" + pem,
            pem + "junk",
            pem.strip(),
            pem.replace("\n", "\r\n"),
            pem.replace("\n", "") + "\n",
            pem.replace("M", "N", 1),
            pem.replace("CERTIFICATE", "PUBLIC KEY"),
            pem[:-20],
            " " + pem,
            pem + pem[:100],
            "\n".join(line + " " for line in pem.splitlines()),
        )

    def chance(self, probability: float) -> bool:
        return self.random.random() < probability

    def config(self) -> dict[str, Any]:
        version = "v1" if self.chance(0.7) else self.random.choice(("v1beta1", "v1alpha1", "v1", "v2"))
        count = self.random.choices((0, 1, 2, 3), (2, 80, 15, 3))[0]
        document: dict[str, Any] = {
            "apiVersion": f"apiserver.config.k8s.io/{version}",
            "kind": "AuthenticationConfiguration",
            "jwt": [self.entry() for _ in range(count)],
        }
        if self.chance(0.05):
            document["anonymous"] = self.random.choice(
                (
                    {"enabled": True},
                    {"enabled": False, "conditions": [{"path": "/healthz"}]},
                    {"enabled": True, "conditions": [{"path": "/a"}, {"path": ""}]},
                    {},
                    None,
                )
            )
        return document

    def entry(self) -> dict[str, Any]:
        entry: dict[str, Any] = {"issuer": self.issuer(), "claimMappings": self.mappings()}
        if self.chance(0.4):
            entry["claimValidationRules"] = [self.rule() for _ in range(self.random.randint(1, 3))]
        if self.chance(0.3):
            entry["userValidationRules"] = [
                self.with_message({"expression": self.random.choice(USER_EXPRESSIONS)})
                for _ in range(self.random.randint(1, 2))
            ]
        return entry

    def issuer(self) -> dict[str, Any]:
        issuer: dict[str, Any] = {"url": self.random.choice(ISSUERS if self.chance(0.93) else BAD_ISSUERS)}
        issuer["audiences"] = self.random.choices(
            (["one"], ["one", "two"], [], ["one", "one"], [""], ["two"]), (70, 18, 1, 2, 2, 7)
        )[0]
        if len(issuer["audiences"]) > 1 or self.chance(0.05):
            issuer["audienceMatchPolicy"] = self.random.choices(("MatchAny", "", "MatchAll"), (90, 5, 5))[0]
        if self.chance(0.06):
            issuer["discoveryURL"] = self.random.choice(
                ("https://d.example/x", "https://a.example", "http://d.example", "https://d.example/?q")
            )
        if self.chance(0.05):
            issuer["certificateAuthority"] = self.random.choice(("", "junk", "/etc/ca.pem", *self.bundles))
        if self.chance(0.03):
            issuer["egressSelectorType"] = self.random.choice(("cluster", "controlplane", "etcd", ""))
        return issuer

    def mappings(self) -> dict[str, Any]:
        mappings: dict[str, Any] = {"username": self.claim_or_expression(NAME_EXPRESSIONS, "string")}
        if self.chance(0.6):
            mappings["groups"] = self.claim_or_expression(GROUP_EXPRESSIONS, "list(string)")
        if self.chance(0.3):
            mappings["uid"] = (
                {"claim": self.random.choice(CLAIM_NAMES)}
                if self.chance(0.5)
                else {"expression": self.random.choice(NAME_EXPRESSIONS)}
            )
        if self.chance(0.35):
            mappings["extra"] = [
                {
                    "key": self.random.choice(KEYS[:2] if self.chance(0.8) else KEYS),
                    "valueExpression": self.extra_value(),
                }
                for _ in range(self.random.randint(1, 2))
            ]
        return mappings

    def extra_value(self) -> str:
        return self.random.choice(GROUP_EXPRESSIONS + NAME_EXPRESSIONS)

    def claim_or_expression(self, expressions: tuple[str, ...], wanted: str) -> dict[str, Any]:
        made: dict[str, Any] = {}
        if self.chance(0.5):
            made["claim"] = self.random.choice(CLAIM_NAMES)
            if self.chance(0.96):
                made["prefix"] = self.random.choice(("", "p:", "-", "system:"))
        else:
            made["expression"] = self.random.choice(expressions) if self.chance(0.85) else self.grower.grow(wanted, 2)
        if self.chance(0.03):
            made.update(
                self.random.choice(
                    ({"prefix": "x"}, {"claim": "sub"}, {"expression": "claims.sub"}, {"foo": 1}, {"claim": None})
                )
            )
        return made

    def rule(self) -> dict[str, Any]:
        if self.chance(0.4):
            rule: dict[str, Any] = {"claim": self.random.choice(CLAIM_NAMES)}
            if self.chance(0.9):
                rule["requiredValue"] = self.random.choice(("u-1", "jane", "", "1", "a"))
            return self.with_message(rule) if self.chance(0.03) else rule
        return self.with_message({"expression": self.random.choice(RULE_EXPRESSIONS)})

    def with_message(self, rule: dict[str, Any]) -> dict[str, Any]:
        return {**rule, "message": "not so"} if self.chance(0.4) else rule

    def claims(self, config: dict[str, Any]) -> dict[str, Any]:
        issuers = [entry["issuer"]["url"] for entry in config["jwt"]] or ["https://a.example"]
        claims: dict[str, Any] = {
            "iss": self.random.choice(issuers) if self.chance(0.95) else "https://elsewhere.example",
            "aud": self.random.choices(
                ("one", ["one"], ["two", "one"], "three", [], None, ["three"]), (50, 25, 10, 5, 3, 2, 5)
            )[0],
            "exp": self.random.choices((NOW + 3600, NOW + 0.5, NOW - 1, 1e300, None, 0), (88, 3, 3, 2, 2, 2))[0],
        }
        # Not both times at their edge: whether a difference is of the one or of the other could not be told.
        if claims["exp"] != NOW + 0.5 and self.chance(0.2):
            claims["nbf"] = NOW + self.random.choice((-1, 0, 59, 60, 61, 3600))
        values = (
            None,
            "",
            "u-1",
            "jane",
            1,
            -0.0,
            1.5,
            1e21,
            True,
            [],
            ["a"],
            ["a", 1],
            {"a": "b"},
            "ü👑",
            ["", "a"],
            "a,b",
            2**53,
            [None],
        )
        for name, usual in (
            ("sub", "u-1"),
            ("email", "jane@example.com"),
            ("name", "jane"),
            ("groups", ["dev", "ops"]),
            ("roles", "a,b"),
            ("n", 7),
            ("email_verified", True),
            ("nul", None),
            ("empty", ""),
            ("obj", {"a": "b"}),
            ("mixed", ["a", 1]),
            ("foo.bar", "x"),
            ("jti", "j1"),
        ):
            if self.chance(0.85):
                claims[name] = usual if self.chance(0.85) else self.random.choice(values)
        return {
            name: value for name, value in claims.items() if value is not None or name in ("nul",) or self.chance(0.5)
        }

    def case(self) -> Case:
        config, text = self.good_config() if self.chance(0.6) else self.any_config()
        claims = self.claims(config)
        payload = odd_json(self.random, claims) if self.chance(0.25) else json.dumps(claims)
        kid, key = self.random.choice(list(self.keys.items()))
        headers = {"kid": kid} if self.chance(0.95) else self.random.choice(({}, {"kid": "other"}, {"kid": ""}))
        header = {"alg": key.alg, "typ": "JWT", **headers}
        token = odd_token(self.random, key, payload, header) if self.chance(0.3) else signed(key, payload, header)
        case = {"config": text, "claims": payload, "token": token, "now": NOW, "jwks": self.key_set()}
        if self.chance(0.03):
            case["disallowedIssuers"] = self.random.choice(
                (["https://a.example"], [""], ["https://b.example/tenant", "x"])
            )
        if len(config["jwt"]) > 1 and self.chance(0.3):
            case["jwksByIssuer"] = {self.random.choice(config["jwt"])["issuer"]["url"]: self.key_set()}
        return case

    def any_config(self) -> tuple[dict[str, Any], str]:
        config = self.config()
        return config, self.text(config)

    def good_config(self) -> tuple[dict[str, Any], str]:
        """One that we take, so that a token is looked at too; of a bad one nothing but its faults is compared."""
        for _ in range(DRAWS):
            config, text = self.any_config()
            try:
                load_configuration(text)
            except AuthenticationConfigError:
                continue
            break
        return config, text

    def text(self, config: dict[str, Any]) -> str:
        draw = self.random.random()
        if draw < 0.1:
            return json.dumps(config)
        if draw < 0.5:
            return _yaml(config)
        return written(self.random, changed(self.random, config) if self.chance(0.5) else config)

    def key_set(self) -> dict[str, Any]:
        if self.chance(0.12):
            return odd_key_set(self.random, list(self.keys.values()))
        return {"keys": [one.jwk() for one in self.keys.values()]}


def _yaml(document: object) -> str:
    import yaml

    return str(yaml.safe_dump(document, sort_keys=False, allow_unicode=True))


def configuration_cases(source: random.Random) -> Iterator[Case]:
    """Endless cases: drawn, and recorded ones with lines of their configuration moved about."""
    keys = {
        "k1": SigningKey.new("k1", "ES256"),
        "k2": SigningKey.new("k2", "RS256"),
        "k3": SigningKey.new("k3", "ES384"),
    }
    recorded = [
        json.loads(line) for line in (RECORDED / "authn.jsonl").read_text(encoding="utf-8").splitlines() if line.strip()
    ]
    known = tomllib.loads((RECORDED / "known.toml").read_text(encoding="utf-8"))["authn"]
    recorded = [
        case
        for case in recorded
        if "ours" not in case and case["name"] not in known and not case.get("http") and len(case["config"]) < 5000
    ]
    draw = _Draw(source, keys)
    while True:
        if source.random() < 0.7:
            yield draw.case()
        else:
            yield _shuffled(source, source.choice(recorded), recorded)


def _shuffled(source: random.Random, start: Case, others: list[Case]) -> Case:
    case = {
        key: start[key]
        for key in ("config", "claims", "token", "now", "jwks", "jwksByIssuer", "disallowedIssuers")
        if key in start
    }
    lines = case["config"].splitlines(keepends=True)
    for _ in range(source.randint(1, 2)):
        if not lines:
            break
        place = source.randrange(len(lines))
        action = source.random()
        if action < 0.25:
            del lines[place]
        elif action < 0.4:
            lines.insert(place, lines[source.randrange(len(lines))])
        elif action < 0.7:
            other = source.choice(others)["config"].splitlines(keepends=True)
            lines[place] = source.choice(other)
        elif action < 0.85:
            lines[place] = lines[place].replace(
                source.choice(("claim", "expression", ":", "'", " ", "-", "a")),
                source.choice(("", " ", "x", "null", '"', "&a ", "*a ", "!!str ")),
                1,
            )
        else:
            text = lines[place]
            at = source.randrange(len(text) + 1)
            lines[place] = (
                text[:at]
                + source.choice(("\t", "#", "é", '"', "'", "{", "[", "1", "~", "\\", "%", "@", "|", ">", "? ", ", "))
                + text[at:]
            )
    case["config"] = "".join(lines)
    return case
