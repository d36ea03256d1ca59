"""The token of a claim source: verified like any other, by the keys of the issuer that it names itself."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from kubeauthn._core.authentication.verify import check_audience, check_signature, check_times, check_types
from kubeauthn._core.authentication.written_times import written_times
from kubeauthn._core.jose.compact import decode_part, split_compact
from kubeauthn._core.jose.exact_json import decode_exactly
from kubeauthn._core.jose.go_json import kind, syntax_fault

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


def payload_fault(text: str) -> str:
    """What Go says of the payload of a token in three parts, if it is no JSON object; else ""."""
    try:
        payload = decode_part(split_compact(text)[2])
    except ValueError:
        return ""
    fault = syntax_fault(payload)
    if not fault:
        try:
            value = decode_exactly(payload.decode("utf-8", "surrogateescape"))
        except ValueError as error:
            fault = str(error)
        else:
            if value is None or isinstance(value, dict):
                return ""
            fault = f"json: cannot unmarshal {kind(value)} into Go value of type {_GO_TYPE}"
    return f"while unmarshaling token: {fault}"


_GO_TYPE = r'struct { Issuer string "json:\"iss\"" }'
