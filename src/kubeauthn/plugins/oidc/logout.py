"""Forget a login: the kept tokens here, and the refresh token at the issuer where that can be told."""

from __future__ import annotations

from kubeauthn._io.single_flight import SingleFlight
from kubeauthn.errors import KubeauthnError
from kubeauthn.plugins.oidc.checks import check
from kubeauthn.plugins.oidc.storage import Storage

TYPE_CHECKING = False
if TYPE_CHECKING:
    from kubeauthn.plugins.oidc.settings import Settings

_PATIENCE_SECONDS = 10.0


def log_out(settings: Settings) -> list[str]:
    """What to tell the person. The tokens here are gone whatever the issuer says."""
    check(settings)
    storage = Storage(settings)
    with SingleFlight(storage.directory, storage.name, seconds=_PATIENCE_SECONDS) as flight:
        session = storage.read()
        found = storage.forget()
        flight.remove()
    if not found:
        return ["nobody was logged in here with these settings"]
    lines = [f"forgot the login at {settings.issuer_url}"]
    if session is None or not session.refresh_token:
        return lines
    try:
        from kubeauthn.plugins.oidc.issuer import Issuer

        revoked = Issuer(settings).revoke(session.refresh_token)
    except KubeauthnError:
        revoked = False
    word = "the issuer was told to forget it too"
    return [*lines, word if revoked else "the issuer could not be told: its own session may go on"]
