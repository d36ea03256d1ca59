"""What the kubeconfig entry, and so the command line, says about a login."""

from __future__ import annotations

from kubeauthn._core.record import record

STORES = ("file", "keyring", "none")
GRANTS = ("authorization-code", "device-code")
ID_TOKEN, ACCESS_TOKEN = "id", "access"
DEFAULT_LISTEN = ("127.0.0.1:8000", "127.0.0.1:18000")
DEFAULT_PATH = "/callback"


@record(frozen=True, slots=True)
class Settings:
    """One login: at which issuer, as which client, for what, and how."""

    issuer_url: str
    client_id: str
    scopes: tuple[str, ...] = ("openid",)
    audience: str = ""
    parameters: tuple[tuple[str, str], ...] = ()
    token: str = ID_TOKEN
    grant: str = GRANTS[0]
    listen: tuple[str, ...] = DEFAULT_LISTEN
    redirect_url: str = ""
    certificate_authority: str = ""
    secret_file: str = ""
    secret_variable: str = ""
    browser_command: str = ""
    open_browser: bool = True
    store: str = STORES[0]
    seconds: float = 180.0
    without_terminal: bool = False
    force_refresh: bool = False

    def identity(self) -> str:
        """Everything that decides which token this is: two settings with one identity share a login."""
        import json

        parts = [self.issuer_url, self.client_id, sorted(set(self.scopes)), self.audience, sorted(self.parameters)]
        return json.dumps([*parts, self.token], separators=(",", ":"))
