"""Which of the credentials in a user entry counts, and which are there in vain."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from kubeauthn._core.kubeconfig.model import User

TOKEN_FILE = "tokenFile"  # noqa: S105  the name of a kubeconfig field
TOKEN = "token"  # noqa: S105
BASIC = "basic"
CERTIFICATE = "clientCertificate"
EXEC = "exec"
AUTH_PROVIDER = "authProvider"
NONE = "none"

IN_WORDS = {
    TOKEN_FILE: "the token in a file",
    TOKEN: "the token in the kubeconfig",
    BASIC: "the user name and password in the kubeconfig",
    CERTIFICATE: "the client certificate of the kubeconfig",
    EXEC: "what the exec plugin returns",
    AUTH_PROVIDER: "what the auth-provider gives",
    NONE: "nothing",
}


def kinds_present(user: User) -> list[str]:
    """In the order of `kubeauthn.client.sources.source_for`: the first one wins.

    A client certificate is shown in the TLS handshake also when a token wins; it stands in the list for itself.
    """
    present = {
        TOKEN_FILE: user.token_file,
        TOKEN: user.token,
        BASIC: user.username or user.password,
        CERTIFICATE: user.client_certificate or user.client_key,
        EXEC: user.exec,
        AUTH_PROVIDER: user.auth_provider,
    }
    return [kind for kind, value in present.items() if value] or [NONE]
