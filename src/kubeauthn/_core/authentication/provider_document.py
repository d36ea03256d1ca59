"""The discovery document of an issuer: where it is, and what it must say (KEP-3331, issuer.url and discoveryURL)."""

from __future__ import annotations

import json
from typing import Any

from kubeauthn._core.authentication.model import Issuer

WELL_KNOWN = "/.well-known/openid-configuration"


def discovery_address(issuer: Issuer) -> str:
    """discoveryURL exactly as it is, or the well-known place under the issuer, without a double slash."""
    return issuer.discovery_url or issuer.url.removesuffix("/") + WELL_KNOWN


def key_set_address(document: bytes, content_type: str, issuer_url: str) -> str:
    """`jwks_uri`, if the document is this issuer's. A ValueError says what is wrong, as Kubernetes says it."""
    found = json_object(document, content_type, "provider discovery object")
    named = found.get("issuer")
    if named != issuer_url or not isinstance(named, str):
        shown = named[:200] if isinstance(named, str) else ""
        raise ValueError(
            f"oidc: issuer did not match the issuer returned by provider, "
            f"expected {json.dumps(issuer_url)} got {json.dumps(shown, ensure_ascii=True)}"
        )
    address = found.get("jwks_uri")
    if not isinstance(address, str) or not address:
        raise ValueError("provider did not return JWKS URL")
    return address


def json_object(document: bytes, content_type: str, what: str) -> dict[str, Any]:
    """JSON is taken under any content type; where it is none, the type often says why (a page for people)."""
    try:
        found = json.loads(document)
    except (ValueError, RecursionError):
        found = None
    if isinstance(found, dict):
        return found
    shown = json.dumps(content_type[:100]) if content_type else "none"
    raise ValueError(f"oidc: failed to decode {what}: expected a JSON object, got something else, content type {shown}")
