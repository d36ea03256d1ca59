"""Where a claim is, read from the token's own words; and which addresses are near this machine."""

from __future__ import annotations

from typing import Any

import pytest

from kubeauthn._core.authentication.claim_sources import Aggregated, Distributed, local_kind, source_of
from kubeauthn._core.authentication.model import Issuer
from kubeauthn._core.authentication.provider_document import discovery_address, key_set_address
from kubeauthn._secret import Secret


def claims(source: Any, **others: Any) -> dict[str, Any]:
    return {"_claim_names": {"groups": "src1"}, "_claim_sources": {"src1": source}, **others}


def test_an_endpoint_with_and_without_an_access_token():
    assert source_of(claims({"endpoint": "https://e"}), "groups") == Distributed("https://e")
    found = source_of(claims({"endpoint": "https://e", "access_token": "SECRET"}), "groups")
    assert found == Distributed("https://e", Secret("SECRET"))
    assert "SECRET" not in repr(found)


def test_a_token_in_the_token():
    found = source_of(claims({"JWT": "a.b.SECRET"}), "groups")
    assert found == Aggregated(Secret("a.b.SECRET"))
    assert "SECRET" not in repr(found)


def test_an_endpoint_wins_over_a_token_as_in_kubernetes():
    assert isinstance(source_of(claims({"endpoint": "https://e", "JWT": "a.b.c"}), "groups"), Distributed)


@pytest.mark.parametrize("source", [{}, None, "x", 5, [], {"endpoint": ""}, {"endpoint": None}, {"endpoint": 5}])
def test_a_source_that_leads_nowhere_is_none(source: Any):
    assert source_of(claims(source), "groups") is None


@pytest.mark.parametrize(
    "broken",
    [
        {},
        {"_claim_names": {"groups": "src1"}},
        {"_claim_sources": {"src1": {"endpoint": "https://e"}}},
        {"_claim_names": None, "_claim_sources": None},
        {"_claim_names": "x", "_claim_sources": {"x": {"endpoint": "https://e"}}},
        {"_claim_names": {"groups": ["src1"]}, "_claim_sources": {"src1": {"endpoint": "https://e"}}},
        {"_claim_names": {"groups": "other"}, "_claim_sources": {"src1": {"endpoint": "https://e"}}},
    ],
)
def test_names_and_sources_that_do_not_meet(broken: dict[str, Any]):
    assert source_of(broken, "groups") is None


@pytest.mark.parametrize("value", [["own"], "", None, []])
def test_a_claim_of_the_tokens_own_is_never_elsewhere(value: Any):
    assert source_of(claims({"endpoint": "https://e"}, groups=value), "groups") is None


@pytest.mark.parametrize("name", ["iss", "sub", "aud", "exp", "nbf", "iat", "jti", "_claim_names", "_claim_sources"])
def test_what_a_token_must_say_itself(name: str):
    told = {"_claim_names": {name: "src1"}, "_claim_sources": {"src1": {"endpoint": "https://e"}}}
    assert source_of(told, name) is None


@pytest.mark.parametrize(
    ("address", "kind"),
    [
        ("127.0.0.1", "loopback"),
        ("127.255.255.254", "loopback"),
        ("::1", "loopback"),
        ("0.0.0.0", "loopback"),
        ("::", "loopback"),
        ("::ffff:127.0.0.1", "loopback"),
        ("2002:7f00:1::", "loopback"),
        ("169.254.169.254", "link-local"),
        ("::ffff:169.254.169.254", "link-local"),
        ("fe80::1", "link-local"),
        ("fe80::1%eth0", "link-local"),
        ("fd00:ec2::254", "link-local"),
        ("224.0.0.1", "multicast or reserved"),
        ("255.255.255.255", "multicast or reserved"),
        ("ff02::1", "multicast or reserved"),
        ("10.0.0.1", ""),
        ("192.168.1.1", ""),
        ("192.0.2.1", ""),
        ("2001:db8::1", ""),
        ("::ffff:192.0.2.1", ""),
    ],
)
def test_addresses_near_this_machine(address: str, kind: str):
    assert local_kind(address) == kind


@pytest.mark.parametrize(
    ("issuer", "address"),
    [
        (Issuer("https://i.example"), "https://i.example/.well-known/openid-configuration"),
        (Issuer("https://i.example/"), "https://i.example/.well-known/openid-configuration"),
        (Issuer("https://i.example/a"), "https://i.example/a/.well-known/openid-configuration"),
        (Issuer("https://i.example", discovery_url="https://d.example/x/"), "https://d.example/x/"),
    ],
)
def test_where_discovery_is(issuer: Issuer, address: str):
    assert discovery_address(issuer) == address


def test_a_discovery_document_must_name_the_issuer_exactly():
    document = b'{"issuer": "https://i.example/", "jwks_uri": "https://i.example/keys"}'
    assert key_set_address(document, "", "https://i.example/") == "https://i.example/keys"
    with pytest.raises(ValueError, match='expected "https://i.example" got "https://i.example/"'):
        key_set_address(document, "", "https://i.example")
