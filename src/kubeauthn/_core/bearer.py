"""The bearer token of a request, and what a request without a good one is told (RFC 6750).

A token comes in `Authorization`, or, for a browser's WebSocket that cannot set headers, in a subprotocol as Kubernetes
has it: `base64url.bearer.authorization.k8s.io.` and the token in base64url.
"""

from __future__ import annotations

from binascii import Error as Base64Error
from binascii import a2b_base64
from typing import TYPE_CHECKING, NamedTuple

from kubeauthn._core.jose.limits import TOKEN_CHARACTERS
from kubeauthn._secret import Secret

if TYPE_CHECKING:
    from collections.abc import Sequence

SUBPROTOCOL_PREFIX = "base64url.bearer.authorization.k8s.io."
_BASE64URL = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_")
_TO_STANDARD = str.maketrans("-_", "+/")


class Bearer(NamedTuple):
    """What a request brought: a token, nothing (both empty), or something that is wrong whoever sent it (`fault`)."""

    token: Secret
    fault: str = ""


NO_TOKEN = Bearer(Secret(""))


def bearer_of(authorization: Sequence[str]) -> Bearer:
    """The token in a request's `Authorization` headers. Credentials of another scheme are neither token nor fault."""
    if not authorization:
        return NO_TOKEN
    if len(authorization) > 1:
        return Bearer(Secret(""), "expected one authorization header, got several")
    scheme, _, rest = authorization[0].strip(" \t").partition(" ")
    if scheme.lower() != "bearer":
        return NO_TOKEN
    return _checked(rest.strip(" \t"))


def bearer_of_subprotocols(offered: Sequence[str]) -> tuple[Bearer, list[str]]:
    """The token among a WebSocket's subprotocols, and the others: the application must not see it, nor choose it."""
    others = [name for name in offered if not name.startswith(SUBPROTOCOL_PREFIX)]
    carrying = [name for name in offered if name.startswith(SUBPROTOCOL_PREFIX)]
    if not carrying:
        return NO_TOKEN, others
    if len(carrying) > 1:
        return Bearer(Secret(""), "expected one subprotocol with a token, got several"), others
    if not others:
        # The server must choose one of those offered, and this one it must never send back.
        return Bearer(Secret(""), "expected another subprotocol beside the one with the token"), others
    encoded = carrying[0][len(SUBPROTOCOL_PREFIX) :]
    if not encoded or len(encoded) > 2 * TOKEN_CHARACTERS or not _BASE64URL.issuperset(encoded):
        return Bearer(Secret(""), "the subprotocol with the token is not base64url"), others
    try:
        token = a2b_base64(encoded.translate(_TO_STANDARD) + "=" * (-len(encoded) % 4)).decode("ascii")
    except (Base64Error, UnicodeDecodeError):
        return Bearer(Secret(""), "the subprotocol with the token is not base64url"), others
    return _checked(token.strip(" \t")), others


def challenge(realm: str, error: str = "", description: str = "") -> str:
    """The value of `WWW-Authenticate`. Who sent no token at all is told no error (RFC 6750, 3.1)."""
    parts = [f'realm="{_quotable(realm)}"']
    if error:
        parts.append(f'error="{error}"')
        if description:
            parts.append(f'error_description="{_quotable(description)}"')
    return "Bearer " + ", ".join(parts)


def _checked(token: str) -> Bearer:
    if not token:
        return NO_TOKEN
    if len(token) > TOKEN_CHARACTERS:
        return Bearer(Secret(""), f"expected a token of at most {TOKEN_CHARACTERS} characters")
    if not all("!" <= character <= "~" for character in token) or "," in token:
        # A comma: a server that joins repeated headers has put two into one.
        return Bearer(Secret(""), "expected one token of visible characters")
    return Bearer(Secret(token))


def _quotable(text: str) -> str:
    """What RFC 6750 allows in these values: visible ASCII and spaces, without quotes and backslashes."""
    return "".join(character if " " <= character <= "~" and character not in '"\\' else "'" for character in text)
