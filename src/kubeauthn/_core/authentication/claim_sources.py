"""Claims that a token does not hold but says where to get (OpenID Connect Core 5.6.2; KEP-3331, distributed claims).

`_claim_names` says for each such claim which source has it, `_claim_sources` says what a source is: an `endpoint`, with
perhaps an `access_token` for it (distributed), or a `JWT` right there (aggregated).
"""

from __future__ import annotations

from ipaddress import IPv6Address, ip_address
from typing import Any

from kubeauthn._core.jose.go_json import kind
from kubeauthn._core.record import field, record
from kubeauthn._secret import Secret
from kubeauthn.errors import ClaimUnavailable

NAMES = "_claim_names"
SOURCES = "_claim_sources"

OWN_CLAIMS = frozenset((NAMES, SOURCES, "iss", "sub", "aud", "exp", "nbf", "iat", "jti"))
"""What a token says itself or not at all: who made it, about whom, for whom, when, and where its claims are."""


@record(frozen=True, slots=True)
class Distributed:
    """A claim to be fetched. The access token is for this endpoint alone."""

    endpoint: str
    access_token: Secret | None = None


@record(frozen=True, slots=True)
class Aggregated:
    """A claim in a token inside the token, with an issuer and a signature of its own."""

    token: Secret = field(repr=False)


ClaimSource = Distributed | Aggregated


def source_of(claims: dict[str, Any], name: str) -> ClaimSource | None:
    """Where this claim is, in verified claims whose types were checked. None if it has no source.

    A claim that the token holds is taken from the token. A source that is neither an endpoint nor a token is none.
    """
    if name in OWN_CLAIMS or dict.__contains__(claims, name):  # not `in`: that may ask for the claim, which we just do
        return None
    names, sources = _as_written(claims, NAMES), _as_written(claims, SOURCES)
    if not isinstance(names, dict) or not isinstance(sources, dict):
        return None
    source_name = names.get(name)
    source = sources.get(source_name) if isinstance(source_name, str) else None
    if not isinstance(source, dict):
        return None
    if endpoint := _text(source, "endpoint"):
        token = _text(source, "access_token")
        return Distributed(endpoint, Secret(token) if token else None)
    inner = _text(source, "JWT")
    return Aggregated(Secret(inner)) if inner else None


def check_groups_source(claims: dict[str, Any], groups_claim: str) -> None:
    """That the sources can be read, where the groups are mapped from a claim that the token does not hold.

    Their types were checked, but for what kube-apiserver looks at only then. Raises ClaimUnavailable.
    """
    if NAMES not in claims or not groups_claim or dict.__contains__(claims, groups_claim):
        return
    if SOURCES not in claims:
        raise ClaimUnavailable("oidc: could not expand distributed claims: oidc: no claim sources")
    check_inner_tokens(claims)


def check_inner_tokens(claims: dict[str, Any]) -> None:
    """That every `JWT` of a source is a text: one that is not spoils all of them. Raises ClaimUnavailable."""
    sources = _as_written(claims, SOURCES) or {}
    tokens = [source.get("JWT") for source in sources.values() if source is not None]
    wrong = next((token for token in tokens if token is not None and type(token) is not str), None)
    if wrong is not None:
        raise ClaimUnavailable(
            "oidc: could not expand distributed claims: oidc: could not parse claim sources: "
            f"json: cannot unmarshal {kind(wrong)} into Go struct field endpoint.JWT of type string"
        )


def local_kind(address: str) -> str:
    """What kind of address near this machine it is, in words; "" for one that is out in the network."""
    ip = ip_address(address.partition("%")[0])
    if isinstance(ip, IPv6Address):
        ip = ip.ipv4_mapped or ip.sixtofour or ip
    if ip.is_loopback or ip.is_unspecified:
        return "loopback"
    # The second is where a cloud hands out the machine's own credentials: link-local in all but its prefix.
    if ip.is_link_local or ip == _METADATA_IPV6:
        return "link-local"
    return "multicast or reserved" if ip.is_multicast or ip.is_reserved else ""


_METADATA_IPV6 = IPv6Address("fd00:ec2::254")


def names_of(claims: dict[str, Any]) -> dict[str, Any]:
    """The claims that are elsewhere, as their types were checked: the name of the source of each."""
    return _as_written(claims, NAMES) or {}


def _as_written(claims: dict[str, Any], name: str) -> Any:
    """Also with a number in it that no double holds, which is nobody's business here."""
    return dict.get(claims, name)


def _text(source: dict[str, Any], part: str) -> str:
    value = source.get(part)
    return value if type(value) is str else ""
