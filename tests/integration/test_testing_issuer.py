"""The OpenID Connect issuer. Signatures are checked here with `cryptography` alone."""

from __future__ import annotations

import base64
import json
import threading

import httpx2
import pytest
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec, padding, rsa
from cryptography.hazmat.primitives.asymmetric.utils import encode_dss_signature

from kubeauthn.errors import UsageError
from kubeauthn.testing import FakeClock, Issuer

CURVES = {"P-256": ec.SECP256R1(), "P-384": ec.SECP384R1(), "P-521": ec.SECP521R1()}
HASHES = {"256": hashes.SHA256(), "384": hashes.SHA384(), "512": hashes.SHA512()}


def decode(text: str) -> bytes:
    return base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))


def number(text: str) -> int:
    return int.from_bytes(decode(text), "big")


def verified(token: str, jwks: dict) -> dict:
    """The claims, if a key of this set signed them."""
    head, body, signature = token.split(".")
    header = json.loads(decode(head))
    keys = [key for key in jwks["keys"] if key["kid"] == header["kid"]]
    if not keys:
        raise LookupError(header["kid"])
    (key,) = keys
    message, alg = f"{head}.{body}".encode(), header["alg"]
    assert key["alg"] == alg
    digest = HASHES[alg[2:]]
    raw = decode(signature)
    if key["kty"] == "EC":
        public = ec.EllipticCurvePublicNumbers(number(key["x"]), number(key["y"]), CURVES[key["crv"]]).public_key()
        half = len(raw) // 2
        r, s = int.from_bytes(raw[:half], "big"), int.from_bytes(raw[half:], "big")
        public.verify(encode_dss_signature(r, s), message, ec.ECDSA(digest))
    else:
        scheme = padding.PKCS1v15()
        if alg.startswith("PS"):
            scheme = padding.PSS(padding.MGF1(digest), digest.digest_size)
        rsa.RSAPublicNumbers(number(key["e"]), number(key["n"])).public_key().verify(raw, message, scheme, digest)
    return json.loads(decode(body))


@pytest.fixture(scope="module")
def shared():
    """For tests that only sign: RSA keys take a while to make."""
    with Issuer(clock=FakeClock()) as issuer:
        yield issuer


@pytest.fixture
def issuer():
    with Issuer(clock=FakeClock()) as running:
        running.rotate("ES256")
        yield running


@pytest.fixture
def http(issuer):
    with httpx2.Client(base_url=issuer.url, verify=issuer.ca.client_context(), trust_env=False) as client:
        yield client


def test_discovery_leads_to_the_keys(issuer, http):
    document = http.get("/.well-known/openid-configuration").raise_for_status().json()
    assert document["issuer"] == issuer.url
    assert http.get(document["jwks_uri"]).json() == issuer.jwks()
    assert document["token_endpoint"].startswith(issuer.url)
    assert [(request.method, request.path, request.status) for request in issuer.requests] == [
        ("GET", "/.well-known/openid-configuration", 200),
        ("GET", "/keys", 200),
    ]
    assert http.get("/elsewhere").status_code == 404


@pytest.mark.parametrize("alg", ["RS256", "RS512", "PS256", "ES256", "ES384", "ES512"])
def test_sign(shared, alg):
    claims = {"sub": "jane", "iss": "anything"}
    token = shared.sign(claims, alg=alg, headers={"extra": 1})
    assert verified(token, shared.jwks()) == claims
    assert json.loads(decode(token.split(".")[0])) == {"alg": alg, "kid": shared.kids[-1], "typ": "JWT", "extra": 1}
    other = shared.sign({"sub": "eve"}, alg=alg)
    forged = ".".join((*other.split(".")[:2], token.split(".")[2]))
    with pytest.raises(InvalidSignature):
        verified(forged, shared.jwks())


def test_token_fills_in_issuer_audience_and_times(shared):
    claims = verified(shared.token("jane", groups=["dev"], expires_in=60), shared.jwks())
    assert claims == {
        "iss": shared.url,
        "aud": "kubernetes",
        "sub": "jane",
        "groups": ["dev"],
        "iat": 1_700_000_000,
        "exp": 1_700_000_060,
    }
    assert verified(shared.token("jane", audience="other"), shared.jwks())["aud"] == "other"


def test_without_a_key_the_set_has_one_rs256():
    with Issuer() as issuer:
        assert [key["alg"] for key in issuer.jwks()["keys"]] == ["RS256"]


def test_rotate_and_withdraw(issuer):
    first = issuer.kids[0]
    old = issuer.sign({"n": 1}, alg="ES256")
    second = issuer.rotate("ES256")
    new = issuer.sign({"n": 2}, alg="ES256")
    assert verified(old, issuer.jwks()) == {"n": 1}
    assert verified(new, issuer.jwks()) == {"n": 2}
    assert issuer.kids == [first, second]
    issuer.withdraw(first)
    with pytest.raises(LookupError):
        verified(old, issuer.jwks())
    with pytest.raises(LookupError):
        verified(issuer.sign({}, kid=first), issuer.jwks())
    assert issuer.kids == [second]
    issuer.withdraw(second)
    assert issuer.jwks() == {"keys": []}


def test_misuse(issuer):
    for wrong in (
        lambda: issuer.withdraw("nope"),
        lambda: issuer.sign({}, kid="nope"),
        lambda: issuer.sign({}, kid=issuer.kids[0], alg="RS256"),
        lambda: issuer.sign({}, alg="none"),
        lambda: issuer.accept_refresh_token("", "jane"),
        lambda: issuer.revoke_refresh_token("nope"),
        lambda: issuer.__enter__(),
        lambda: Issuer(tls=False).url,
    ):
        with pytest.raises(UsageError):
            wrong()


def test_fail_next(issuer, http):
    issuer.fail_next(2, 500)
    assert [http.get("/keys").status_code for _ in range(3)] == [500, 500, 200]
    assert [request.status for request in issuer.requests] == [500, 500, 200]


def refresh(http: httpx2.Client, token: str, **form: str) -> httpx2.Response:
    return http.post(
        "/token", data={"grant_type": "refresh_token", "refresh_token": token, "client_id": "kubernetes", **form}
    )


def test_refresh_token(issuer, http):
    issuer.accept_refresh_token("r1", "jane", groups=["dev"])
    reply = refresh(http, "r1").raise_for_status().json()
    claims = verified(reply["id_token"], issuer.jwks())
    assert (claims["sub"], claims["groups"], claims["aud"]) == ("jane", ["dev"], "kubernetes")
    assert reply["refresh_token"] == "r1"
    assert issuer.requests[0].form["refresh_token"] == "r1"
    issuer.revoke_refresh_token("r1")
    assert refresh(http, "r1").json() == {"error": "invalid_grant"}


def test_refresh_tokens_that_are_good_for_one_use():
    with Issuer(rotate_refresh_tokens=True, tls=False) as issuer, httpx2.Client(base_url=issuer.url) as http:
        assert issuer.url.startswith("http://")
        issuer.accept_refresh_token("r1", "jane")
        second = refresh(http, "r1").json()["refresh_token"]
        assert second != "r1"
        assert refresh(http, "r1").status_code == 400
        assert refresh(http, second).status_code == 200


def test_the_clients_secret():
    with Issuer(client_secret="s/cret", tls=False) as issuer, httpx2.Client(base_url=issuer.url) as http:
        issuer.accept_refresh_token("r1", "jane")
        assert refresh(http, "r1").status_code == 401
        assert refresh(http, "r1", client_secret="s/cret").status_code == 200
        form = {"grant_type": "client_credentials"}
        assert http.post("/token", data=form, auth=("kubernetes", "s%2Fcret")).status_code == 200
        assert http.post("/token", data=form, auth=("kubernetes", "wrong")).status_code == 401
        assert http.post("/token", data=form, headers={"Authorization": "Basic !"}).status_code == 401


@pytest.mark.parametrize("grant", ["password", "client_credentials", "implicit", ""])
def test_grants_that_are_off(issuer, http, grant):
    response = http.post("/token", data={"grant_type": grant, "client_id": "kubernetes"})
    assert (response.status_code, response.json()) == (400, {"error": "unsupported_grant_type"})


def test_auth_provider_entry(issuer):
    entry = issuer.auth_provider(refresh_token="r1", id_token="i1")
    assert entry["name"] == "oidc"
    assert base64.b64decode(entry["config"].pop("idp-certificate-authority-data")) == issuer.ca.certificate_pem
    assert entry["config"] == {
        "idp-issuer-url": issuer.url,
        "client-id": "kubernetes",
        "refresh-token": "r1",
        "id-token": "i1",
    }


def test_nothing_is_left_after_the_end():
    before = set(threading.enumerate())
    with Issuer() as issuer:
        client = httpx2.Client(verify=issuer.ca.client_context(), trust_env=False)
        assert client.get(f"{issuer.url}/.well-known/openid-configuration").status_code == 200
    assert set(threading.enumerate()) <= before
    client.close()
