"""What is shown of tokens, and which credential of an entry counts."""

from __future__ import annotations

import json
from base64 import urlsafe_b64encode

import pytest

from kubeauthn._core.kubeconfig.model import AuthProvider, Cluster, ExecConfig, User
from kubeauthn._secret import Secret
from kubeauthn.cli import kind
from kubeauthn.cli.raw import is_stream
from kubeauthn.cli.token_view import token_as_json
from kubeauthn.client.exec_source import ExecOptions
from kubeauthn.client.refreshed import RefreshedSource
from kubeauthn.client.sources import FixedSource, TokenFileSource, source_for
from kubeauthn.testing import CertificateAuthority


def jwt(payload: object, header: object = {"alg": "none"}) -> str:
    def part(value: object) -> str:
        return urlsafe_b64encode(json.dumps(value).encode()).decode().rstrip("=")

    return f"{part(header)}.{part(payload)}.c2ln"


def test_claims_of_a_jwt_are_marked_unverified():
    view = token_as_json(jwt({"iss": "https://i.test", "sub": "jane", "aud": "kube", "iat": 0, "exp": 3600, "x": "y"}))
    assert view["jwt"] == {
        "verified": False,
        "issuer": "https://i.test",
        "subject": "jane",
        "audiences": ["kube"],
        "issuedAt": "1970-01-01T00:00:00Z",
        "expiresAt": "1970-01-01T01:00:00Z",
    }


@pytest.mark.parametrize(
    "claims",
    [{}, {"iss": 1, "sub": [], "aud": None, "exp": "soon"}, {"exp": 1e300}, {"exp": True}, {"exp": float("nan")}],
)
def test_claims_of_the_wrong_type_are_left_out(claims: dict[str, object]):
    view = token_as_json(jwt(claims))["jwt"]
    assert view == {
        "verified": False,
        "issuer": None,
        "subject": None,
        "audiences": [],
        "issuedAt": None,
        "expiresAt": None,
    }


@pytest.mark.parametrize("token", ["opaque", "a.b.c", "..", jwt([]), jwt({}, header={}), jwt({}) + ".x", "ä.ö.ü"])
def test_other_tokens_have_only_a_length(token: str):
    assert token_as_json(token) == {"length": len(token), "jwt": None}


LEAF = CertificateAuthority().issue_client("jane")
PARTS = {
    kind.TOKEN_FILE: {"token_file": "/t"},
    kind.TOKEN: {"token": Secret("t")},
    kind.BASIC: {"username": "u", "password": Secret("p")},
    kind.CERTIFICATE: {"client_certificate": LEAF.certificate_pem, "client_key": Secret(LEAF.key_pem.decode())},
    kind.EXEC: {"exec": ExecConfig("plugin", "client.authentication.k8s.io/v1")},
    kind.AUTH_PROVIDER: {"auth_provider": AuthProvider("oidc", (("idp-issuer-url", "https://i"), ("client-id", "c")))},
}
SOURCES = {
    kind.TOKEN_FILE: TokenFileSource,
    kind.TOKEN: FixedSource,
    kind.BASIC: FixedSource,
    kind.CERTIFICATE: FixedSource,
    kind.EXEC: RefreshedSource,
    kind.AUTH_PROVIDER: RefreshedSource,
}


@pytest.mark.parametrize("first", PARTS)
def test_what_is_said_to_win_is_what_the_client_uses(first: str):
    """The entry holds this kind and all that come after it."""
    names = list(PARTS)
    present = names[names.index(first) :]
    user = User(**{key: value for name in present for key, value in PARTS[name].items()})  # type: ignore[arg-type]
    assert kind.kinds_present(user) == present
    source = source_for(user, Cluster("https://127.0.0.1:1"), ExecOptions())
    assert isinstance(source, SOURCES[first])
    if first in (kind.TOKEN, kind.BASIC, kind.CERTIFICATE):
        credential = source.get()
        authorization = credential.authorization.reveal() if credential.authorization else ""
        assert (
            authorization.partition(" ")[0] == {kind.TOKEN: "Bearer", kind.BASIC: "Basic", kind.CERTIFICATE: ""}[first]
        )


def test_an_empty_entry_holds_nothing():
    assert kind.kinds_present(User()) == [kind.NONE]


@pytest.mark.parametrize(
    ("path", "streams"),
    [
        ("/api/v1/pods?watch=true", True),
        ("/api/v1/pods?limit=1&watch=1", True),
        ("/api/v1/namespaces/a/pods/b/log?follow=true", True),
        ("/api/v1/pods?watch=false", False),
        ("/api/v1/pods?fieldSelector=watch%3Dtrue", False),
        ("/api/v1/pods", False),
    ],
)
def test_a_stream_is_known_by_its_query(path: str, streams: bool):
    assert is_stream(path) is streams
