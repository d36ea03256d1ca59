"""The token of a claim source: verified like any other, by the keys of the issuer that it names itself."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from kubeauthn._core.authentication.verify import check_audience, check_signature, check_times, check_types
from kubeauthn._core.authentication.written_times import written_times

if TYPE_CHECKING:
    from kubeauthn._core.authentication.model import Issuer
    from kubeauthn._core.authentication.token import UntrustedToken
    from kubeauthn._core.jose.keys import KeySet


def claims_of_source_token(token: UntrustedToken, keys: KeySet, issuer: Issuer, now: float) -> dict[str, Any]:
    """Its claims. `keys` are those of the issuer in the token; `issuer` is the configured one, for the audiences.

    Raises TokenError.
    """
    check_signature(token, keys)
    claims = token.untrusted_claims
    check_types(claims)
    check_audience(claims, issuer)
    check_times(written_times(token), now)
    return claims
