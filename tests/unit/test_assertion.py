"""The signed JWT of a user: what is believed, and everything that is not."""

from __future__ import annotations

import json
from base64 import urlsafe_b64decode, urlsafe_b64encode
from pathlib import Path
from typing import Any

import pytest

from kubeauthn._core.assertion import TYPE, sign_assertion
from kubeauthn.errors import (
    AudienceRefused,
    EnvironmentFailure,
    MalformedToken,
    SignatureRefused,
    TokenError,
    TokenExpired,
    TokenNotYetValid,
    UsageError,
)
from kubeauthn.server import UserInfo
from kubeauthn.server.assertion import AssertionKeys, AssertionSigner, AssertionVerifier, KeyFile, new_key_pem
from kubeauthn.server.http_message import GivenScope, HeaderList, Request
from kubeauthn.testing import FakeClock
from kubeauthn.testing._signing import SigningKey

JANE = UserInfo("jäne, \n", "7", ("dev", "a,b"), {"example.com/team": ("x", "y")})
KEYS = AssertionKeys.from_pem(new_key_pem().encode())


def signer(clock: FakeClock, keys: AssertionKeys = KEYS, **options: Any) -> AssertionSigner:
    return AssertionSigner(lambda: keys, clock=clock, **options)


def verifier(clock: FakeClock, keys: AssertionKeys = KEYS, **options: Any) -> AssertionVerifier:
    return AssertionVerifier(keys.jwks, clock=clock, **options)


def segment(document: Any) -> str:
    return urlsafe_b64encode(json.dumps(document).encode()).rstrip(b"=").decode()


def test_a_user_comes_back_whole():
    clock = FakeClock()
    assert verifier(clock).verify(signer(clock).sign(JANE, None)) == JANE
    assert verifier(clock).verify(signer(clock).sign(UserInfo("jane"), None)) == UserInfo("jane")


def test_it_holds_for_a_minute_and_never_longer_than_the_token():
    clock = FakeClock()
    for_a_minute = signer(clock).sign(JANE, clock() + 3600)
    for_ten_seconds = signer(clock).sign(JANE, clock() + 10)
    clock.advance(9)
    verifier(clock).verify(for_ten_seconds)
    clock.advance(1)
    with pytest.raises(TokenExpired):
        verifier(clock).verify(for_ten_seconds)
    verifier(clock).verify(for_a_minute)
    clock.advance(50)
    with pytest.raises(TokenExpired):
        verifier(clock).verify(for_a_minute)


def test_one_from_the_future_is_refused():
    ahead, here = FakeClock(), FakeClock()
    ahead.advance(20)
    verifier(here).verify(signer(ahead).sign(JANE, None))
    ahead.advance(20)
    with pytest.raises(TokenNotYetValid):
        verifier(here).verify(signer(ahead).sign(JANE, None))


def test_another_audience_issuer_or_key_is_refused():
    clock = FakeClock()
    text = signer(clock, audiences=("billing", "shop")).sign(JANE, None, "shop")
    assert verifier(clock, audience="shop").verify(text) == JANE
    with pytest.raises(AudienceRefused, match="audience"):
        verifier(clock, audience="billing").verify(text)
    with pytest.raises(AudienceRefused, match="issuer"):
        verifier(clock, audience="shop", issuer="other").verify(text)
    with pytest.raises(SignatureRefused):
        verifier(clock, AssertionKeys.from_pem(new_key_pem().encode()), audience="shop").verify(text)


@pytest.mark.parametrize(
    "header",
    [
        {"alg": "none"},
        {"alg": "HS256"},
        {"alg": "ES384"},
        {"typ": "JWT"},
        {"typ": None},
        {"crit": ["b64"]},
        {"kid": ""},
        {"kid": "other"},
    ],
    ids=str,
)
def test_a_header_that_is_not_ours_is_refused(header: dict[str, Any]):
    clock = FakeClock()
    _, claims, signature = signer(clock).sign(JANE, None).split(".")
    changed = segment({"alg": "ES256", "kid": KEYS.kid, "typ": TYPE, **header})
    with pytest.raises(TokenError):
        verifier(clock).verify(f"{changed}.{claims}.{signature}")


def test_changed_claims_are_refused():
    clock = FakeClock()
    head, claims, signature = signer(clock).sign(JANE, None).split(".")
    read = json.loads(urlsafe_b64decode(claims + "=="))
    with pytest.raises(SignatureRefused):
        verifier(clock).verify(f"{head}.{segment({**read, 'sub': 'admin'})}.{signature}")


@pytest.mark.parametrize("text", ["", "a.b", "..", "a.b.c", "é.b.c", "e30.e30.", "bnVsbA.e30.AA", "W10.e30.AA"])
def test_what_is_no_assertion_is_malformed(text: str):
    with pytest.raises(MalformedToken):
        verifier(FakeClock()).verify(text)


@pytest.mark.parametrize(
    "claims",
    [
        {"sub": ""},
        {"sub": 7},
        {"groups": "admins"},
        {"groups": [1]},
        {"uid": 7},
        {"extra": []},
        {"extra": {"a": "b"}},
        {"exp": True},
        {"exp": "9999999999"},
        {"exp": 1e300},
        {"iat": None},
        {"aud": ["kubeauthn-upstream"]},
    ],
    ids=str,
)
def test_claims_of_another_form_are_refused_even_if_signed(claims: dict[str, Any]):
    clock = FakeClock()
    key = SigningKey.new("x", "ES256").private
    keys = AssertionKeys([key])  # type: ignore[list-item]
    good = {
        "iss": "kubeauthn",
        "aud": "kubeauthn-upstream",
        "iat": int(clock()),
        "exp": int(clock()) + 60,
        "sub": "jane",
    }
    assert verifier(clock, keys).verify(sign_assertion(good, key, keys.kid)) == UserInfo("jane")  # type: ignore[arg-type]
    with pytest.raises(TokenError):
        verifier(clock, keys).verify(sign_assertion({**good, **claims}, key, keys.kid))  # type: ignore[arg-type]


def test_keys_are_fetched_again_for_a_key_that_is_new():
    clock = FakeClock()
    first, second = (AssertionKeys.from_pem(new_key_pem().encode()) for _ in range(2))
    published = [first.jwks]
    fetches = []

    def fetch() -> dict[str, Any]:
        fetches.append(clock())
        return published[-1]

    reader = AssertionVerifier(fetch, clock=clock)
    published.append(second.jwks)
    clock.advance(11)
    assert reader.verify(signer(clock, second).sign(JANE, None)) == JANE
    with pytest.raises(SignatureRefused):
        reader.verify(signer(clock, first).sign(JANE, None))
    assert len(fetches) == 2  # a stranger's key ids do not make it ask again and again


def test_a_key_file_is_rotated_and_a_bad_one_changes_nothing(tmp_path: Path):
    clock = FakeClock()
    first, second = new_key_pem(), new_key_pem()
    path = tmp_path / "keys.pem"
    path.write_text(first)
    keys = KeyFile(str(path), clock=clock)
    before = keys()
    path.write_text(second + first)
    assert keys() is before
    clock.advance(11)
    after = keys()
    assert after.kid == AssertionKeys.from_pem(second.encode()).kid
    assert before.kid in [key["kid"] for key in after.jwks["keys"]]
    path.write_text("nonsense")
    clock.advance(11)
    assert keys() is after
    path.unlink()
    clock.advance(11)
    assert keys() is after


def test_keys_that_cannot_sign_are_refused_and_not_quoted(tmp_path: Path):
    path = tmp_path / "key.pem"
    with pytest.raises(EnvironmentFailure):
        KeyFile(str(path))
    path.write_bytes(b"x" * 70_000)
    with pytest.raises(EnvironmentFailure, match="key.pem"):
        KeyFile(str(path))
    for text in ("", "s3cret", "-----BEGIN PRIVATE KEY-----\ns3cret\n-----END PRIVATE KEY-----\n"):
        with pytest.raises(UsageError) as raised:
            AssertionKeys.from_pem(text.encode())
        assert "s3cret" not in str(raised.value)


def test_only_public_parts_are_published_or_shown():
    keys = AssertionKeys.from_pem(new_key_pem().encode())
    response = signer(FakeClock(), keys).keys_response(Request("GET", "/", HeaderList([]), b"", GivenScope()))
    (key,) = json.loads(response.body)["keys"]
    assert set(key) == {"kty", "crv", "x", "y", "kid", "alg", "use"}
    assert "PRIVATE" not in repr(keys)
    assert signer(FakeClock()).keys_response(Request("POST", "/", HeaderList([]), b"", GivenScope())).status == 405
