"""The fake issuer's part of a login is a real one: PKCE, redirect addresses, codes that are good once, device codes."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Iterator
from urllib.parse import parse_qs, urlsplit

import httpx2
import pytest

from kubeauthn._core.jwt_peek import untrusted_claims
from kubeauthn.errors import UsageError
from kubeauthn.testing import FakeClock, Issuer

VERIFIER = "v" * 43
CHALLENGE = base64.urlsafe_b64encode(hashlib.sha256(VERIFIER.encode()).digest()).rstrip(b"=").decode()
REDIRECT = "http://127.0.0.1:4711/callback"
ASKED = {
    "response_type": "code", "client_id": "kubernetes", "redirect_uri": REDIRECT, "scope": "openid offline_access",
    "state": "the state", "nonce": "the nonce", "code_challenge": CHALLENGE, "code_challenge_method": "S256",
}  # fmt: skip
DEVICE_GRANT = "urn:ietf:params:oauth:grant-type:device_code"


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


@pytest.fixture
def issuer(clock: FakeClock) -> Iterator[Issuer]:
    with Issuer(clock=clock) as running:
        running.log_in_as("jane", groups=["dev"])
        yield running


@pytest.fixture
def http(issuer: Issuer) -> Iterator[httpx2.Client]:
    with httpx2.Client(base_url=issuer.url, verify=issuer.ca.client_context(), trust_env=False) as client:
        yield client


def brought_back(http: httpx2.Client, **changes: str | None) -> dict[str, str]:
    query = {name: value for name, value in {**ASKED, **changes}.items() if value is not None}
    answer = http.get("/authorize", params=query)
    assert answer.status_code == 302
    place = urlsplit(answer.headers["location"])
    assert f"{place.scheme}://{place.netloc}{place.path}" == REDIRECT
    return {name: values[0] for name, values in parse_qs(place.query).items()}


def redeem(http: httpx2.Client, **changes: str) -> httpx2.Response:
    form = {"grant_type": "authorization_code", "client_id": "kubernetes", "redirect_uri": REDIRECT,
            "code_verifier": VERIFIER}  # fmt: skip
    return http.post("/token", data={**form, **changes})


def test_a_code_becomes_tokens_once(issuer: Issuer, http: httpx2.Client):
    answer = brought_back(http)
    assert (answer["state"], answer["iss"]) == ("the state", issuer.url)
    tokens = redeem(http, code=answer["code"]).json()
    claims = untrusted_claims(tokens["id_token"])
    assert claims is not None
    assert (claims["sub"], claims["nonce"], claims["groups"]) == ("jane", "the nonce", ["dev"])
    assert redeem(http, code=answer["code"]).json() == {"error": "invalid_grant"}
    form = {"grant_type": "refresh_token", "client_id": "kubernetes", "refresh_token": tokens["refresh_token"]}
    refreshed = untrusted_claims(http.post("/token", data=form).json()["id_token"])
    assert refreshed is not None
    assert (refreshed["sub"], "nonce" in refreshed) == ("jane", False)


@pytest.mark.parametrize("change", [{"code_verifier": "w" * 43}, {"code_verifier": ""}, {"redirect_uri": "http://x/"}])
def test_who_cannot_prove_that_they_asked_gets_nothing(http: httpx2.Client, change: dict[str, str]):
    refused = redeem(http, code=brought_back(http)["code"], **change)
    assert (refused.status_code, refused.json()) == (400, {"error": "invalid_grant"})


def test_a_code_ends(http: httpx2.Client, clock: FakeClock):
    code = brought_back(http)["code"]
    clock.advance(61)
    assert redeem(http, code=code).json() == {"error": "invalid_grant"}


@pytest.mark.parametrize(
    ("change", "error"),
    [
        ({"code_challenge": None}, "invalid_request"),
        ({"code_challenge_method": "plain"}, "invalid_request"),
        ({"scope": "profile"}, "invalid_scope"),
        ({"response_type": "token"}, "unsupported_response_type"),
    ],
)
def test_what_is_refused_through_the_browser(http: httpx2.Client, change: dict[str, str | None], error: str):
    assert brought_back(http, **change)["error"] == error


def test_a_person_who_cancels(issuer: Issuer, http: httpx2.Client):
    issuer.log_in_as(None)
    assert brought_back(http)["error"] == "access_denied"


@pytest.mark.parametrize("change", [{"redirect_uri": "https://evil.example/"}, {"client_id": "other"}])
def test_nothing_is_sent_to_an_address_that_is_not_the_clients(http: httpx2.Client, change: dict[str, str]):
    answer = http.get("/authorize", params={**ASKED, **change})
    assert (answer.status_code, "location" in answer.headers) == (400, False)


def test_a_device_waits_is_slowed_down_and_gets_its_tokens(issuer: Issuer, http: httpx2.Client, clock: FakeClock):
    begun = http.post("/device_authorization", data={"client_id": "kubernetes", "scope": "openid"}).json()
    form = {"grant_type": DEVICE_GRANT, "client_id": "kubernetes", "device_code": begun["device_code"]}
    assert issuer.user_codes == [begun["user_code"]]
    assert http.post("/token", data=form).json() == {"error": "authorization_pending"}
    assert http.post("/token", data=form).json() == {"error": "slow_down"}
    issuer.approve_device(begun["user_code"], "joe")
    clock.advance(5)  # no longer enough
    assert http.post("/token", data=form).json() == {"error": "slow_down"}
    clock.advance(30)
    tokens = http.post("/token", data=form).json()
    claims = untrusted_claims(tokens["id_token"])
    assert claims is not None
    assert claims["sub"] == "joe"
    assert "refresh_token" not in tokens
    assert http.post("/token", data=form).json() == {"error": "invalid_grant"}


def test_a_device_that_is_denied_or_too_late(issuer: Issuer, http: httpx2.Client, clock: FakeClock):
    first, second = (http.post("/device_authorization", data={"client_id": "kubernetes"}).json() for _ in range(2))
    issuer.deny_device(first["user_code"])
    form = {"grant_type": DEVICE_GRANT, "client_id": "kubernetes"}
    assert http.post("/token", data={**form, "device_code": first["device_code"]}).json() == {"error": "access_denied"}
    clock.advance(601)
    late = http.post("/token", data={**form, "device_code": second["device_code"]})
    assert late.json() == {"error": "expired_token"}
    with pytest.raises(UsageError, match="no device waits"):
        issuer.approve_device("XXXX", "jane")


def test_a_refresh_token_is_revoked(http: httpx2.Client):
    tokens = redeem(http, code=brought_back(http)["code"]).json()
    form = {"client_id": "kubernetes", "token": tokens["refresh_token"]}
    assert [http.post("/revoke", data=form).status_code for _ in range(2)] == [200, 200]
    again = {"grant_type": "refresh_token", "client_id": "kubernetes", "refresh_token": tokens["refresh_token"]}
    assert http.post("/token", data=again).json() == {"error": "invalid_grant"}
