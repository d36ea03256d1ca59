"""The live oracle's cases about claims that are elsewhere, and the proofs of what is meant there; no Go needed.

Kubernetes is played by ourselves, asked about a token that holds nothing but what Kubernetes would fetch.
"""

from __future__ import annotations

import base64
import json
import random
from collections.abc import Callable
from itertools import islice
from typing import Any

import pytest

from kubeauthn.testing import recorded_authn
from kubeauthn.testing._signing import SigningKey
from tests.oracle.claim_sources import source_cases
from tests.oracle.meant import meant
from tests.oracle.source_proofs import with_status_number
from tests.oracle.token_texts import signed

Case = dict[str, Any]
NOW = 1_800_000_000
KEY = SigningKey.new("k1", "ES256")
CLAIMS = {"iss": "https://a.example", "aud": "one", "exp": NOW + 60, "sub": "u"}
ENDPOINT = "https://s.example/claims"
answer: Callable[[Case], Case] = recorded_authn.Judge({"keys": []}).answer


def token(claims: Case) -> str:
    return signed(KEY, json.dumps(claims), {"alg": "ES256", "kid": "k1"})


def case(source: Case, *names: str, reply: Case | None = None, **mappings: Case) -> Case:
    claims = {**CLAIMS, "_claim_names": dict.fromkeys(names, "s"), "_claim_sources": {"s": source}}
    entry = {
        "issuer": {"url": "https://a.example", "audiences": ["one"]},
        "claimMappings": {"username": {"claim": "sub", "prefix": ""}, **mappings},
    }
    config = {
        "apiVersion": "apiserver.config.k8s.io/v1",
        "kind": "AuthenticationConfiguration",
        "jwt": [entry],
    }
    text = json.dumps(claims)
    return {
        "config": json.dumps(config),
        "claims": text,
        "token": token(claims),
        "now": NOW,
        "jwks": {"keys": [KEY.jwk()]},
        "http": {ENDPOINT: reply or {"body": token({**CLAIMS, "groups": ["g"], "name": "n", "jti": "j"})}},
    }


def kubernetes(one: Case) -> Case:
    """What it says: all but the groups' claim is not there, if the token does not hold it. It takes endpoints alone,
    and has no claims of its own to keep."""
    groups = json.loads(one["config"])["jwt"][0]["claimMappings"].get("groups", {}).get("claim")
    claims = json.loads(one["claims"])
    source = claims["_claim_sources"]["s"]
    endpoint = source.get("endpoint") or source.get("Endpoint")
    if groups in claims["_claim_names"] and groups not in claims and endpoint:
        reply = one["http"][endpoint]
        if reply.get("status"):
            return refused(FAILED)
        inner = json.loads(_payload("".join(reply["body"].split())))
        claims[groups] = inner[groups]
    claims["_claim_names"] = {}
    fresh = {**one, "claims": json.dumps(claims), "token": token(claims), "http": {}}
    return answer({**fresh, "jwks": {"keys": [KEY.jwk()]}})


def _payload(text: str) -> bytes:
    return base64.urlsafe_b64decode(text.split(".")[1] + "==")


def refused(error: str) -> Case:
    return {"authenticated": False, "error": error}


FAILED = (
    "oidc: could not expand distributed claims: while getting distributed claim "
    '"name": error while getting distributed claim JWT: 404 Not Found'
)
BY_CLAIM = {"groups": {"claim": "groups", "prefix": ""}}
DISTRIBUTED = case({"endpoint": ENDPOINT}, "name", uid={"claim": "name"})


def why(one: Case, theirs: Callable[[Case], Case] = kubernetes) -> str:
    found = recorded_authn._compare(theirs(one), answer(one))
    assert found, "there is no difference"
    return meant(one, theirs(one), answer(one), found[0][0], theirs, answer)


def test_cases_are_accepted_and_refused_for_many_reasons() -> None:
    found = [answer(one) for one in islice(source_cases(random.Random(7)), 250)]
    assert sum(one["authenticated"] for one in found) > 50
    assert len({one.get("error") for one in found}) > 50
    again = [one["config"] for one in islice(source_cases(random.Random(7)), 50)]
    assert again == [one["config"] for one in islice(source_cases(random.Random(7)), 50)]


@pytest.mark.parametrize(
    ("one", "reason"),
    [
        (DISTRIBUTED, "claim sources"),
        (case({"JWT": token({**CLAIMS, "groups": ["g"]})}, "groups", **BY_CLAIM), "claim sources"),
        (case({"endpoint": ENDPOINT}, "jti", groups={"claim": "jti", "prefix": ""}), "claim sources"),
        (case({"Endpoint": ENDPOINT}, "groups", **BY_CLAIM), "exact claims"),
        (
            case(
                {"endpoint": ENDPOINT},
                "groups",
                reply={"body": "\x0b" + token({**CLAIMS, "groups": ["g"]})},
                **BY_CLAIM,
            ),
            "canonical",
        ),
        (
            case(
                {"endpoint": ENDPOINT},
                "groups",
                reply={"body": token({**CLAIMS, "exp": NOW, "groups": ["g"]})},
                **BY_CLAIM,
            ),
            "exact claims",
        ),
        (case({"endpoint": ENDPOINT}, "name", reply={"status": 404}, uid={"claim": "name"}), "claim sources"),
    ],
    ids=["any claim", "in the token", "own claim", "other letters", "white space", "at its end", "not to be had"],
)
def test_a_difference_that_is_meant_is_proven(one: Case, reason: str) -> None:
    assert why(one) == reason


def test_no_difference_is_excused_because_there_are_sources() -> None:
    def forgetful(one: Case) -> Case:
        found = kubernetes(one)
        return {**found, "user": {**found["user"], "uid": "x"}} if found["authenticated"] else found

    def slow(one: Case) -> Case:
        return refused("too late")

    assert why(DISTRIBUTED, forgetful) == ""
    assert why(DISTRIBUTED, slow) == ""
    unavailable = case({"endpoint": ENDPOINT}, "name", reply={"status": 404}, uid={"claim": "name"})
    assert why(unavailable, lambda one: refused("oidc: could not expand distributed claims: otherwise")) == ""


def test_a_status_is_told_with_its_number() -> None:
    words = FAILED.replace("404 ", "")
    one = {"http": {ENDPOINT: {"status": 404}, "https://t.example": {"status": 500}}}
    assert with_status_number(one, refused(words)) == refused(FAILED)
    assert with_status_number(one, refused(FAILED)) == refused(FAILED)
    assert with_status_number({"http": {}}, refused(words)) == refused(words)
    assert with_status_number(one, refused("oidc: Not Found")) == refused("oidc: Not Found")
