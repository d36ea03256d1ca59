"""What an issuer says of itself (OpenID Connect Discovery 1.0, 3 and 4.3), as far as a login needs it."""

from __future__ import annotations

from typing import Any
from urllib.parse import urlsplit

from kubeauthn._core.oidc import limits
from kubeauthn._core.record import record
from kubeauthn.errors import LoginFailed, UsageError

WELL_KNOWN = "/.well-known/openid-configuration"
_LOOPBACK = ("127.0.0.1", "localhost", "::1")


@record(frozen=True, slots=True)
class Provider:
    """Addresses are checked: https, or http on this machine."""

    issuer: str
    token_endpoint: str
    jwks_uri: str
    authorization_endpoint: str = ""
    device_authorization_endpoint: str = ""
    revocation_endpoint: str = ""
    names_itself: bool = False
    """It says who it is in the redirect (RFC 9207), so a redirect without that is not its own."""
    secret_in_form: bool = False
    """The client's secret goes into the form, because the issuer does not take it in a header."""


def discovery_address(issuer_url: str) -> str:
    return issuer_url.removesuffix("/") + WELL_KNOWN


def check_issuer_url(url: str) -> str:
    """The issuer as the person named it. Raises UsageError."""
    if not is_safe_address(url) or "?" in url or "#" in url:
        raise UsageError("--issuer-url takes an https address without query or fragment")
    return url


def read_provider(document: dict[str, Any], issuer_url: str) -> Provider:
    """The document that was found under the issuer's address. Raises LoginFailed."""
    named = document.get("issuer")
    if named != issuer_url:
        shown = named if isinstance(named, str) and named.isprintable() and len(named) <= 200 else "something else"
        raise LoginFailed(
            f"the issuer {issuer_url} calls itself {shown}: it must be named exactly as it names itself",
            hint="correct --issuer-url, a slash at the end included, if you trust that other name",
        )
    methods = document.get("token_endpoint_auth_methods_supported")
    return Provider(
        issuer=issuer_url,
        token_endpoint=_address(document, "token_endpoint"),
        jwks_uri=_address(document, "jwks_uri"),
        authorization_endpoint=_address(document, "authorization_endpoint", optional=True),
        device_authorization_endpoint=_address(document, "device_authorization_endpoint", optional=True),
        revocation_endpoint=_address(document, "revocation_endpoint", optional=True),
        names_itself=document.get("authorization_response_iss_parameter_supported") is True,
        secret_in_form=isinstance(methods, list) and "client_secret_basic" not in methods,
    )


def is_safe_address(url: object) -> bool:
    """An address that secrets may go to and a browser may be sent to: nothing but https, or http on this machine."""
    if not isinstance(url, str) or not url.isascii() or not url.isprintable() or " " in url or "\\" in url:
        return False
    if len(url) > limits.URL_CHARACTERS:
        return False
    try:
        parts = urlsplit(url)
        host, _ = parts.hostname, parts.port
    except ValueError:
        return False
    if not host or "@" in parts.netloc:
        return False
    return parts.scheme == "https" or (parts.scheme == "http" and host in _LOOPBACK)


def _address(document: dict[str, Any], name: str, *, optional: bool = False) -> str:
    value = document.get(name)
    if value is None and optional:
        return ""
    if not is_safe_address(value):
        raise LoginFailed(f"the issuer's {name} is no https address: its discovery document is wrong, or not its own")
    return str(value)
