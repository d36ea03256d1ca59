"""Claims that a token does not hold but says where to get (OpenID Connect Core 5.6.2; KEP-3331, distributed claims).

`_claim_names` says for each such claim which source has it, `_claim_sources` says what a source is: an `endpoint`, with
perhaps an `access_token` for it (distributed), or a `JWT` right there (aggregated).
"""

from __future__ import annotations

from ipaddress import IPv6Address, ip_address
from typing import Any

from kubeauthn._core.record import field, record
from kubeauthn._secret import Secret

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
    names, sources = claims.get(NAMES), claims.get(SOURCES)
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


def _text(source: dict[str, Any], part: str) -> str:
    value = source.get(part)
    return value if type(value) is str else ""
