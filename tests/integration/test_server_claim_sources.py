"""Distributed and aggregated claims against real loopback servers, hostile ones among them."""

from __future__ import annotations

import asyncio
import base64
import json
import time
from collections.abc import Iterator
from typing import Any

import pytest

from kubeauthn._core.authentication import fetch_limits
from kubeauthn._core.authentication.model import Issuer as IssuerConfig
from kubeauthn.errors import ClaimUnavailable
from kubeauthn.server.distributed import ClaimSourceResolver, source_documents
from kubeauthn.server.keysets import DiscoveredKeys
from kubeauthn.testing import CertificateAuthority, FakeClock
from kubeauthn.testing.issuer import DISCOVERY_PATH, Issuer
from tests.integration.rough_servers import RoughServer, json_reply, redirect, reply

PREFIX = "oidc: could not expand distributed claims: "


class Scene:
    """A configured issuer, the server of a claim source, and another issuer that signs what the source answers."""

    def __init__(self, ca: CertificateAuthority, issuer: Issuer, source: RoughServer, signer: Issuer) -> None:
        self.ca, self.issuer, self.source, self.signer = ca, issuer, source, signer
        self.clock = FakeClock()
        self.config = IssuerConfig(
            issuer.url, certificate_authority=ca.certificate_pem.decode(), audiences=("kubernetes",)
        )
        self.resolver = self.resolver_for(self.config)

    def resolver_for(self, config: IssuerConfig) -> ClaimSourceResolver:
        return ClaimSourceResolver(config, DiscoveredKeys(config, clock=self.clock), clock=self.clock)

    def serve(self, token: str, path: str = "/groups") -> None:
        self.source.routes[path] = reply(token.encode(), content_type="application/jwt")

    def serve_claims(self, path: str = "/groups", **claims: Any) -> None:
        self.serve(self.signer.token("somebody", **claims), path)

    def value(self, claims: dict[str, Any] | None = None, *names: str) -> Any:
        async def fetch() -> Any:
            sources = self.resolver.for_token(claims or self.pointer(), time.time())
            found = [await sources.value(name) for name in names or ("groups",)]
            return found if names else found[0]

        return asyncio.run(fetch())

    def refusal(self, claims: dict[str, Any] | None = None, *names: str) -> str:
        with pytest.raises(ClaimUnavailable) as caught:
            self.value(claims, *names)
        assert str(caught.value).startswith(PREFIX)
        assert "SECRET" not in str(caught.value)
        return str(caught.value).removeprefix(PREFIX)

    def pointer(self, endpoint: str | None = None, **source: Any) -> dict[str, Any]:
        return pointer(endpoint=endpoint or f"{self.source.url}/groups", **source)


def pointer(**source: Any) -> dict[str, Any]:
    return {"_claim_names": {"groups": "src1"}, "_claim_sources": {"src1": source}}


@pytest.fixture(scope="module")
def ca() -> CertificateAuthority:
    return CertificateAuthority("claims CA")


@pytest.fixture(autouse=True)
def patience(monkeypatch: pytest.MonkeyPatch) -> None:
    """On a busy machine three servers and their handshakes may take the seconds that a request would not wait for."""
    monkeypatch.setattr(fetch_limits, "SOURCE_SECONDS", 40.0)


@pytest.fixture
def scene(ca: CertificateAuthority) -> Iterator[Scene]:
    with Issuer(ca=ca) as issuer, RoughServer(ca) as source, Issuer(ca=ca) as signer:
        yield Scene(ca, issuer, source, signer)


# -- what works -----------------------------------------------------------------------------------


def test_a_claim_is_fetched_and_verified_by_its_own_issuer(scene: Scene) -> None:
    scene.serve_claims(groups=["a", "b"])
    assert scene.value(scene.pointer(access_token="SECRET")) == ["a", "b"]
    assert scene.source.requests[0].header("authorization") == "Bearer SECRET"
    assert [request.path for request in scene.signer.requests] == [DISCOVERY_PATH, "/keys"]
    assert scene.issuer.requests == []


def test_without_an_access_token_none_is_sent(scene: Scene) -> None:
    scene.serve_claims(groups=["a"])
    scene.value()
    assert scene.source.requests[0].header("authorization") is None


def test_the_configured_issuer_may_be_the_signer_too(scene: Scene) -> None:
    scene.serve(scene.issuer.token("somebody", groups=["own"]))
    assert scene.value() == ["own"]


def test_an_aggregated_claim_needs_no_source_to_be_asked(scene: Scene) -> None:
    inner = scene.signer.token("somebody", groups=["inside"])
    assert scene.value(pointer(JWT=inner)) == ["inside"]
    assert scene.source.requests == []
    # Now the signer's keys are at hand, for those who must not wait as well.
    assert scene.resolver.for_token(pointer(JWT=inner), time.time()).value_at_hand("groups") == ["inside"]


def test_who_must_not_wait_is_told_that_it_has_to_be_fetched(scene: Scene) -> None:
    sources = scene.resolver.for_token(scene.pointer(), time.time())
    with pytest.raises(ClaimUnavailable, match='claim "groups" has to be fetched'):
        sources.value_at_hand("groups")
    aggregated = scene.resolver.for_token(pointer(JWT=scene.signer.token("x", groups=[])), time.time())
    with pytest.raises(ClaimUnavailable, match="verifier not initialized"):
        aggregated.value_at_hand("groups")
    assert scene.source.requests == []
    assert scene.signer.requests == []


def test_one_source_of_several_claims_is_asked_once(scene: Scene) -> None:
    scene.serve_claims(groups=["a"], team="blue")
    claims = scene.pointer() | {"_claim_names": {"groups": "src1", "team": "src1"}}
    assert scene.value(claims, "groups", "team", "groups") == [["a"], "blue", ["a"]]
    assert len(scene.source.requests) == 1


def test_a_new_key_of_the_signer_is_found(scene: Scene) -> None:
    scene.serve_claims(groups=["a"])
    scene.value()
    scene.signer.rotate()
    scene.serve_claims(groups=["b"])
    assert scene.value() == ["b"]


def test_a_key_that_the_signer_withdrew_ends(scene: Scene) -> None:
    old = scene.signer.token("somebody", expires_in=3600, groups=["a"])
    scene.serve(old)
    scene.value()
    scene.signer.withdraw(scene.signer.kids[0])
    scene.signer.rotate()
    assert scene.value() == ["a"], "nobody has asked the signer yet"
    scene.clock.advance(600)
    assert "failed to verify signature" in scene.refusal()


def test_a_line_end_after_the_token_is_no_fault(scene: Scene) -> None:
    scene.serve(scene.signer.token("somebody", groups=["a"]) + "\r\n")
    assert scene.value() == ["a"]


def test_a_name_is_looked_up_once_and_its_certificate_is_checked_for_that_name(scene: Scene) -> None:
    scene.serve_claims(groups=["a"])
    assert scene.value(scene.pointer(f"https://localhost:{scene.source.port}/groups")) == ["a"]
    assert scene.source.requests[0].header("host") == f"localhost:{scene.source.port}"


# -- access tokens --------------------------------------------------------------------------------


def test_no_source_gets_another_sources_access_token(scene: Scene) -> None:
    with RoughServer(scene.ca) as other:
        scene.serve_claims(groups=["a"])
        other.routes["/team"] = reply(scene.signer.token("somebody", team="blue").encode())
        claims = {
            "_claim_names": {"groups": "one", "team": "two"},
            "_claim_sources": {
                "one": {"endpoint": f"{scene.source.url}/groups", "access_token": "SECRET-ONE"},
                "two": {"endpoint": f"{other.url}/team", "access_token": "SECRET-TWO"},
            },
        }
        assert scene.value(claims, "groups", "team") == [["a"], "blue"]
        assert [request.header("authorization") for request in scene.source.requests] == ["Bearer SECRET-ONE"]
        assert [request.header("authorization") for request in other.requests] == ["Bearer SECRET-TWO"]
        assert not any("SECRET" in str(request.headers) for request in scene.signer.requests)


def test_two_sources_with_one_endpoint_are_two_sources(scene: Scene) -> None:
    scene.serve_claims(groups=["a"], team="blue")
    endpoint = f"{scene.source.url}/groups"
    claims = {
        "_claim_names": {"groups": "one", "team": "two"},
        "_claim_sources": {
            "one": {"endpoint": endpoint, "access_token": "SECRET-ONE"},
            "two": {"endpoint": endpoint, "access_token": "SECRET-TWO"},
        },
    }
    scene.value(claims, "groups", "team")
    sent = [request.header("authorization") for request in scene.source.requests]
    assert sent == ["Bearer SECRET-ONE", "Bearer SECRET-TWO"]


def test_a_redirect_does_not_carry_the_access_token_away(scene: Scene) -> None:
    with RoughServer(scene.ca) as other:
        scene.source.routes["/groups"] = redirect(f"{other.url}/groups")
        reason = scene.refusal(scene.pointer(access_token="SECRET"))
        assert f"redirects to {other.url}: only redirects within {scene.source.url} are followed" in reason
        assert other.requests == []


def test_an_endpoint_that_the_signer_names_gets_no_access_token(scene: Scene) -> None:
    """The keys of a foreign issuer are fetched as a stranger fetches them."""
    scene.serve_claims(groups=["a"])
    scene.value(scene.pointer(access_token="SECRET"))
    assert all(dict(request.headers).get("Authorization") is None for request in scene.signer.requests)


@pytest.mark.parametrize("token", ["SECRET\r\nX: y", "SECRET x", "SECRETé", "SECRET\x00"])
def test_an_access_token_that_fits_into_no_header_is_not_sent(scene: Scene, token: str) -> None:
    assert "holds characters that no token has" in scene.refusal(scene.pointer(access_token=token))
    assert scene.source.requests == []


def test_an_error_carries_no_access_token(scene: Scene) -> None:
    scene.source.routes["/groups"] = b"nonsense\r\n"
    with pytest.raises(ClaimUnavailable) as caught:
        scene.value(scene.pointer(access_token="SECRET"))
    error: BaseException | None = caught.value
    while error is not None:
        assert not hasattr(error, "request")
        assert "SECRET" not in repr(error)
        error = error.__context__


# -- where a source may be ------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("endpoint", "reason"),
    [
        ("http://127.0.0.1:1/groups", "http://127.0.0.1:1 is not https"),
        ("ftp://127.0.0.1/groups", "ftp://127.0.0.1 is not https"),
        ("file:///etc/passwd", "file:// is not https"),
        ("/etc/passwd", ":// is not https"),
        ("https://", "an address names no host"),
        ("https://user:SECRET@127.0.0.1/", "https://127.0.0.1 has user information in its address"),
        ("https://[::1", "an address is not a URL"),
        ("https://a\nb/", "an address is not a URL"),
    ],
)
def test_an_endpoint_that_is_no_https_address(scene: Scene, endpoint: str, reason: str) -> None:
    told = scene.refusal(scene.pointer(endpoint, access_token="SECRET"))
    assert told == f'while getting distributed claim "groups": {reason}'


@pytest.mark.parametrize("host", ["a" * 64 + ".invalid", "a..invalid"])
def test_a_host_that_nobody_can_look_up(scene: Scene, host: str) -> None:
    assert "while getting distributed claim" in scene.refusal(scene.pointer(f"https://{host}/", access_token="SECRET"))


LOCAL = [
    "https://127.0.0.1:{port}/groups",
    "https://127.9.9.9:{port}/groups",
    "https://localhost:{port}/groups",
    "https://LOCALHOST:{port}/groups",
    "https://[::1]:{port}/groups",
    "https://[::ffff:127.0.0.1]:{port}/groups",
    "https://0.0.0.0:{port}/groups",
    "https://[::]:{port}/groups",
    "https://2130706433:{port}/groups",
    "https://0x7f.1:{port}/groups",
    "https://127.1:{port}/groups",
]


@pytest.mark.parametrize("endpoint", LOCAL)
def test_no_source_on_loopback_unless_the_issuer_is_there(scene: Scene, endpoint: str) -> None:
    scene.serve_claims(groups=["a"])
    elsewhere = IssuerConfig("https://192.0.2.1", certificate_authority=scene.config.certificate_authority)
    scene.resolver = scene.resolver_for(elsewhere)
    reason = scene.refusal(scene.pointer(endpoint.format(port=scene.source.port), access_token="SECRET"))
    assert "is at a loopback address: no claim source may be there" in reason
    assert scene.source.requests == []


@pytest.mark.parametrize("host", ["169.254.169.254", "[fe80::1]", "[fd00:ec2::254]", "[::ffff:169.254.169.254]"])
def test_no_source_on_link_local_even_if_the_issuer_is_on_loopback(scene: Scene, host: str) -> None:
    reason = scene.refusal(scene.pointer(f"https://{host}/latest/meta-data", access_token="SECRET"))
    assert "is at a link-local address: no claim source may be there" in reason


def test_an_answer_whose_issuer_is_on_loopback_makes_nobody_ask_there(scene: Scene) -> None:
    """The source's own answer must not lead where the source itself may not be."""
    scene.resolver = ClaimSourceResolver(
        IssuerConfig("https://192.0.2.1", certificate_authority=scene.config.certificate_authority),
        DiscoveredKeys(scene.config),
    )
    reason = scene.refusal(pointer(JWT=scene.signer.token("somebody", groups=["a"])))
    assert "is at a loopback address: no claim source may be there" in reason
    assert scene.signer.requests == []


@pytest.mark.parametrize("named", ["http://127.0.0.1:1", "", None, 5, "nonsense", "https://"])
def test_an_answer_whose_issuer_is_no_https_address(scene: Scene, named: object) -> None:
    scene.serve(scene.signer.sign({"iss": named, "aud": "kubernetes", "exp": 4102444800, "groups": ["a"]}))
    assert scene.refusal()


def test_an_answer_whose_issuer_is_no_text(scene: Scene) -> None:
    scene.serve(scene.signer.sign({"iss": 5, "aud": "kubernetes", "exp": 4102444800, "groups": ["a"]}))
    said = "while unmarshaling token: json: cannot unmarshal number into Go struct field .iss of type string"
    assert scene.refusal().endswith(said)


def test_a_proxy_is_used_where_one_is_set_and_addresses_are_still_looked_at(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    with RoughServer(tls=False) as proxy:
        monkeypatch.setenv("HTTPS_PROXY", proxy.url)
        documents = source_documents(IssuerConfig("https://192.0.2.1"))
        scene.resolver = ClaimSourceResolver(scene.config, DiscoveredKeys(scene.config), documents=documents)
        assert "loopback" in scene.refusal()
        assert proxy.requests == []
        assert "cannot be reached: ProxyError" in scene.refusal(scene.pointer("https://source.example/groups"))
        assert [request.method for request in proxy.requests] == ["CONNECT"]


@pytest.mark.parametrize(
    "endpoint",
    [
        *LOCAL,
        "https://localhost.:{port}/groups",
        "https://a.localhost:{port}/groups",
        "https://127.0.0.1.:{port}/groups",
        "https://2852039166/latest/meta-data",
        "https://[::ffff:a9fe:a9fe]/latest/meta-data",
    ],
)
def test_no_proxy_is_led_to_its_own_machine(scene: Scene, monkeypatch: pytest.MonkeyPatch, endpoint: str) -> None:
    """It may be this one: a proxy often runs beside its clients."""
    with RoughServer(tls=False) as proxy:
        monkeypatch.setenv("HTTPS_PROXY", proxy.url)
        monkeypatch.setenv("NO_PROXY", "elsewhere.example")
        scene.resolver = scene.resolver_for(IssuerConfig("https://192.0.2.1"))
        scene.refusal(scene.pointer(endpoint.format(port=scene.source.port), access_token="SECRET"))
        assert proxy.requests == []


def test_a_stranger_s_certificate_is_not_taken(scene: Scene) -> None:
    with RoughServer() as stranger:
        reason = scene.refusal(scene.pointer(f"{stranger.url}/groups", access_token="SECRET"))
        assert "cannot be reached: ConnectError" in reason
        assert stranger.requests == []


# -- what a source may answer ---------------------------------------------------------------------


def endless(request: object) -> Iterator[bytes]:
    yield b"HTTP/1.1 200 OK\r\nContent-Type: application/jwt\r\n\r\n"
    for _ in range(100_000):
        yield b"a" * 65536


def test_a_huge_answer(scene: Scene) -> None:
    scene.source.routes["/groups"] = endless
    assert "answered more than 1048576 bytes" in scene.refusal()
    assert scene.source.sent < 64 << 20


def drip(request: object) -> Iterator[bytes]:
    yield b"HTTP/1.1 200 OK\r\nContent-Length: 100000\r\n\r\n"
    for _ in range(200):
        time.sleep(0.05)
        yield b"a"


def test_a_slow_answer(scene: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fetch_limits, "SOURCE_SECONDS", 0.4)
    scene.source.routes["/groups"] = drip
    started = time.monotonic()
    assert "within 0.4 s" in scene.refusal()
    assert time.monotonic() - started < 9


def test_many_slow_sources_share_one_limit_of_time(scene: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fetch_limits, "SOURCE_SECONDS", 0.5)
    names = [f"claim{number}" for number in range(20)]
    for name in names:
        scene.source.routes[f"/{name}"] = drip

    async def try_all() -> int:
        sources = scene.resolver.for_token(
            {
                "_claim_names": {name: name for name in names},
                "_claim_sources": {name: {"endpoint": f"{scene.source.url}/{name}"} for name in names},
            },
            time.time(),
        )
        refused = 0
        for name in names:
            with pytest.raises(ClaimUnavailable):
                await sources.value(name)
            refused += 1
        return refused

    started = time.monotonic()
    assert asyncio.run(try_all()) == len(names)
    assert time.monotonic() - started < 9


def test_a_signer_that_does_not_answer_is_waited_for_no_longer(scene: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fetch_limits, "SOURCE_SECONDS", 0.4)
    with RoughServer(scene.ca) as slow:
        slow.routes[DISCOVERY_PATH] = drip
        scene.serve(scene.signer.sign({"iss": slow.url, "aud": "kubernetes", "exp": 4102444800, "groups": []}))
        started = time.monotonic()
        assert "not done within 0.4 s" in scene.refusal()
        assert time.monotonic() - started < 9


def test_a_redirect_loop(scene: Scene) -> None:
    scene.source.routes["/groups"] = redirect("/groups")
    assert "redirects more than 5 times" in scene.refusal()


@pytest.mark.parametrize("status", ["401 Unauthorized", "404 Not Found", "500 Internal Server Error"])
def test_a_status_that_is_none_of_success(scene: Scene, status: str) -> None:
    scene.source.routes["/groups"] = reply(b"PRIVATE", status=status)
    expected = f'while getting distributed claim "groups": error while getting distributed claim JWT: {status}'
    assert scene.refusal() == expected


@pytest.mark.parametrize(
    "body",
    [b"garbage", b"", b"a.b", b"a.b.c.d", b"\xff\xfe.x.y", b'{"groups": ["admin"]}', b"..", b"." * 100_000],
)
def test_an_answer_that_is_no_token(scene: Scene, body: bytes) -> None:
    scene.source.routes["/groups"] = reply(body)
    reason = scene.refusal()
    where = f"{scene.source.url}/groups"
    assert reason.startswith(f'getting untrusted issuer from endpoint {where} failed for claim "groups": ')


def test_plain_json_is_not_believed(scene: Scene) -> None:
    scene.source.routes["/groups"] = json_reply({"groups": ["system:masters"]})
    assert scene.refusal().endswith("token is not compact JWT")


def test_a_token_for_another_audience(scene: Scene) -> None:
    scene.serve(scene.signer.token("somebody", audience="others", groups=["a"]))
    assert scene.refusal() == ('verify distributed claim token: oidc: expected audience "kubernetes" got ["others"]')


def test_an_ended_token(scene: Scene) -> None:
    scene.serve(scene.signer.token("somebody", expires_in=-10, groups=["a"]))
    assert scene.refusal().startswith("verify distributed claim token: oidc: token is expired")


def test_a_token_that_another_issuer_signed(scene: Scene) -> None:
    scene.signer.rotate()
    scene.serve(scene.issuer.sign({"iss": scene.signer.url, "aud": "kubernetes", "exp": 4102444800, "groups": ["a"]}))
    assert "failed to verify signature" in scene.refusal()


def test_an_unsigned_token(scene: Scene) -> None:
    scene.signer.rotate()
    parts = ({"alg": "none"}, {"iss": scene.signer.url, "aud": "kubernetes", "exp": 4102444800, "groups": ["a"]})
    head, body = (base64.urlsafe_b64encode(json.dumps(part).encode()).decode().rstrip("=") for part in parts)
    scene.serve(f"{head}.{body}.")
    assert "unsupported algorithm" in scene.refusal()


def test_a_token_without_the_claim(scene: Scene) -> None:
    scene.serve_claims(other=["a"])
    endpoint = f"{scene.source.url}/groups"
    assert scene.refusal() == f'jwt returned by distributed claim endpoint "{endpoint}" did not contain claim: groups'


# -- sources that name themselves -----------------------------------------------------------------


def test_a_source_whose_token_names_it_again_is_not_asked_again(scene: Scene) -> None:
    scene.serve(scene.signer.token("somebody", **scene.pointer()))
    assert "did not contain claim: groups" in scene.refusal()
    assert len(scene.source.requests) == 1


def test_a_source_whose_token_names_another_is_not_followed(scene: Scene) -> None:
    scene.serve(scene.signer.token("somebody", **scene.pointer(f"{scene.source.url}/next")))
    scene.serve_claims("/next", groups=["system:masters"])
    assert "did not contain claim: groups" in scene.refusal()
    assert scene.source.paths() == ["/groups"]


def test_a_token_inside_itself(scene: Scene) -> None:
    inner = scene.signer.token("somebody", **pointer(JWT="x"))
    assert "did not contain claim: groups" in scene.refusal(pointer(JWT=inner))


@pytest.mark.parametrize("name", ["_claim_names", "_claim_sources", "iss", "sub", "aud", "exp", "nbf", "iat", "jti"])
def test_what_a_token_says_itself_is_never_fetched(scene: Scene, name: str) -> None:
    claims = scene.pointer()
    claims["_claim_names"] = {name: "src1"}
    assert scene.refusal(claims, name) == f'claim "{name}" has no source that may hold it'
    assert scene.source.requests == []


def test_a_claim_that_the_token_holds_is_not_fetched(scene: Scene) -> None:
    assert "has no source that may hold it" in scene.refusal(scene.pointer() | {"groups": ["own"]})
    assert scene.source.requests == []


# -- what is remembered ---------------------------------------------------------------------------


def test_issuers_of_sources_are_remembered_to_a_bound(scene: Scene) -> None:
    for number in range(fetch_limits.SOURCE_ISSUERS + 20):
        scene.serve(scene.signer.sign({"iss": f"https://127.0.0.1:1/{number}", "aud": "kubernetes", "exp": 4102444800}))
        assert "verifier not initialized" in scene.refusal()
    assert len(scene.resolver._found) == fetch_limits.SOURCE_ISSUERS


def test_a_signer_that_is_down_is_not_asked_for_every_token(scene: Scene) -> None:
    scene.serve_claims(groups=["a"])
    scene.signer.fail_next(10_000)
    for _ in range(20):
        reason = scene.refusal()
    assert reason.startswith(f"verifying untrusted issuer {scene.signer.url} failed: verifier not initialized")
    assert len(scene.signer.requests) == 1


def test_a_failure_is_not_remembered_for_the_next_token(scene: Scene) -> None:
    scene.source.routes["/groups"] = reply(b"", status="500 Internal Server Error")
    scene.refusal()
    scene.serve_claims(groups=["a"])
    assert scene.value() == ["a"]


def test_an_issuer_that_is_configured_too_is_verified_with_the_keys_it_has_there(scene: Scene) -> None:
    """Its own CA and discoveryURL count, and it need not be asked again."""
    other = DiscoveredKeys(
        IssuerConfig(scene.signer.url, certificate_authority=scene.config.certificate_authority), clock=scene.clock
    )
    scene.serve_claims(groups=["a"])
    asyncio.run(other.newer_keys(None))
    seen = len(scene.signer.requests)
    own = DiscoveredKeys(scene.config, clock=scene.clock)
    scene.resolver = ClaimSourceResolver(scene.config, own, known={scene.signer.url: other}, clock=scene.clock)
    assert scene.value() == ["a"]
    assert len(scene.signer.requests) == seen
