"""`explain --jwks`: with the keys of a file, and with the claims that the token brings along in a token of its own."""

from __future__ import annotations

from typing import Any

from kubeauthn.server.authenticator import Authenticator

TYPE_CHECKING = False
if TYPE_CHECKING:
    from kubeauthn._core.authentication.model import AuthenticationConfiguration
    from kubeauthn._core.authentication.trace import Trace


def explain_offline(
    config: AuthenticationConfiguration,
    keys: dict[str, dict[str, Any]],
    token: str,
    now: float,
    version: str,
    *,
    show_claims: bool,
) -> tuple[Trace, dict[str, Any]]:
    """The trace, and the claims of aggregated sources that are in it."""
    return Authenticator(config, keys=keys, kubernetes=version).explain_sources(token, now, show_claims=show_claims)
