"""The times of a token to the second, also those that are too large for a double.

Claims hold every number as a double, and beyond the year 285 million doubles skip seconds. Go reads times that are
written as whole numbers in 64 bits, and one second too many there turns the end of time into long ago.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from kubeauthn._core.jose.compact import decode_text
from kubeauthn._core.jose.exact_json import decode_exactly

if TYPE_CHECKING:
    from kubeauthn._core.authentication.token import UntrustedToken

TIME_CLAIMS = ("exp", "iat", "nbf")
_LARGEST_EXACT = 2.0**53
_CHARACTERS_OF_64_BITS = 20


def written_times(token: UntrustedToken) -> dict[str, float]:
    """Those times that the token has, their types checked before: as Go reads them."""
    claims = token.untrusted_claims
    times: dict[str, float] = {name: value for name in TIME_CLAIMS if (value := claims.get(name)) is not None}
    if all(-_LARGEST_EXACT < value < _LARGEST_EXACT for value in times.values()):
        return times
    payload = decode_text(token.signed.rpartition(b".")[2].decode("ascii"))
    written = decode_exactly(payload.decode("utf-8", "surrogateescape"), whole=_whole)
    return {name: written[name] for name in times}


def _whole(text: str) -> float:
    """What does not fit into 64 bits, Go reads as a double."""
    return int(text) if len(text) <= _CHARACTERS_OF_64_BITS else float(text)
