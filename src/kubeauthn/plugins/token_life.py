"""How long a token that somebody else has just made may be handed out, whatever this machine's clock is like."""

from __future__ import annotations

from kubeauthn._core.jwt_peek import untrusted_claims
from kubeauthn.errors import CredentialError
from kubeauthn.plugins.cache.entry import MARGIN_SECONDS, kept_until


def handed_out_until(token: str, ends: float, now: float) -> float:
    """A little before its end. Raises CredentialError for one that has ended: nobody makes such, so a clock is wrong.

    The token is not verified: what it says of its own times can only shorten its life.
    """
    begins = (untrusted_claims(token) or {}).get("iat")
    if isinstance(begins, int | float) and begins > now:
        # This clock is behind that of whoever made it, and would use the token after its end.
        ends -= begins - now
    if ends <= now:
        raise CredentialError(
            "the token that was made just now has ended by this machine's clock",
            hint="is the clock of this machine right? else it is that of the server",
        )
    return kept_until(now, ends, MARGIN_SECONDS)
