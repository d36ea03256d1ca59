"""What of the settings is looked at when somebody really logs in: the cached path does not pay for it."""

from __future__ import annotations

from kubeauthn._core.oidc.authorization import RESERVED
from kubeauthn._core.oidc.provider import check_issuer_url
from kubeauthn.errors import UsageError
from kubeauthn.plugins.oidc.redirect_server import check_redirect_url, checked_listen

TYPE_CHECKING = False
if TYPE_CHECKING:
    from kubeauthn.plugins.oidc.settings import Settings


def check(settings: Settings) -> None:
    """Raises UsageError."""
    check_issuer_url(settings.issuer_url)
    for address in settings.listen:
        checked_listen(address)
    if settings.redirect_url:
        check_redirect_url(settings.redirect_url)
    taken = sorted(RESERVED.intersection(name for name, _ in settings.parameters))
    if taken:
        raise UsageError(f"--parameter cannot set {', '.join(taken)}: what protects the login hangs on it")
    for scope in settings.scopes:
        if not scope.isascii() or not scope.isprintable():
            raise UsageError("--scope takes a word of ASCII")
