"""What a kubeconfig says, as data.

Two shapes: the *entries* as they stand in a file (paths not read yet, relative ones
already joined to the directory of their file), and the *resolved* cluster and user
in which every file a field names has been read. The resolved shapes are hashable:
together with the exec entry they are the key of the credential cache.
"""

from __future__ import annotations

from kubeauthn._core.record import field, record
from kubeauthn._secret import Secret

EXEC_EXTENSION = "client.authentication.k8s.io/exec"
EXEC_PROXY_EXTENSION = "client.authentication.k8s.io/exec-proxy"
EXTERNAL_SIGNER = "externalSigner"
"""The auth-provider whose `pathExec` names an executable."""


@record(frozen=True, slots=True)
class Origin:
    """The file an entry came from, and where in it. `path` is None for text that came from no file."""

    path: str | None = None
    line: int | None = None

    def __str__(self) -> str:
        """`FILE:LINE`, as far as they are known."""
        if self.path is None:
            return f"line {self.line}" if self.line else ""
        return f"{self.path}:{self.line}" if self.line else self.path


@record(frozen=True, slots=True)
class ExecConfig:
    """`users[].user.exec`.

    `command` is ready to run: a relative one with a separator is already joined to the
    directory of its file. `interactive_mode` already carries the version's default.
    """

    command: str
    api_version: str
    # Arguments and variables often carry client secrets, a proxy address a password: none is shown.
    args: tuple[str, ...] = field(default=(), repr=False)
    env: tuple[tuple[str, str], ...] = field(default=(), repr=False)
    install_hint: str = ""
    provide_cluster_info: bool = False
    interactive_mode: str = "IfAvailable"


@record(frozen=True, slots=True)
class AuthProvider:
    """`users[].user.auth-provider`: the older, built-in kind of plugin. Values may be secret."""

    name: str
    config: tuple[tuple[str, str], ...] = field(default=(), repr=False)


@record(frozen=True, slots=True)
class Impersonation:
    """`as`, `as-uid`, `as-groups`, `as-user-extra`."""

    user: str = ""
    uid: str = ""
    groups: tuple[str, ...] = ()
    extra: tuple[tuple[str, tuple[str, ...]], ...] = ()

    def __bool__(self) -> bool:
        return bool(self.user or self.uid or self.groups or self.extra)


@record(frozen=True, slots=True)
class ClusterEntry:
    server: str = ""
    tls_server_name: str = ""
    insecure_skip_tls_verify: bool = False
    certificate_authority: str = ""
    certificate_authority_data: bytes = b""
    proxy_url: str = field(default="", repr=False)
    disable_compression: bool = False
    exec_extension: str = ""
    """The reserved extension `client.authentication.k8s.io/exec`, as compact JSON; empty if there is none."""
    origin: Origin = Origin()


@record(frozen=True, slots=True)
class UserEntry:
    client_certificate: str = ""
    client_certificate_data: bytes = b""
    client_key: str = ""
    client_key_data: Secret = Secret("")
    token: Secret = Secret("")
    token_file: str = ""
    username: str = ""
    password: Secret = Secret("")
    impersonation: Impersonation = Impersonation()
    auth_provider: AuthProvider | None = None
    exec: ExecConfig | None = None
    exec_proxy: bool = False
    """The extension `client.authentication.k8s.io/exec-proxy` with `enabled: true`."""
    origin: Origin = Origin()


@record(frozen=True, slots=True)
class ContextEntry:
    cluster: str = ""
    user: str = ""
    namespace: str = ""
    origin: Origin = Origin()


@record(frozen=True, slots=True)
class Kubeconfig:
    """One file, or several merged."""

    clusters: dict[str, ClusterEntry] = field(default_factory=dict)
    users: dict[str, UserEntry] = field(default_factory=dict)
    contexts: dict[str, ContextEntry] = field(default_factory=dict)
    current_context: str = ""
    current_context_origin: Origin = Origin()
    sources: tuple[str, ...] = ()
    """The files that were read, first in force first; or one line that says where else this came from."""


@record(frozen=True, slots=True)
class Cluster:
    """A cluster with nothing left to read: what a connection needs, and what `spec.cluster` tells a plugin.

    `proxy_url` is the one in effect: the entry's, else the environment's for this server.
    """

    server: str
    tls_server_name: str = ""
    insecure_skip_tls_verify: bool = False
    certificate_authority_data: bytes = b""
    proxy_url: str = field(default="", repr=False)
    disable_compression: bool = False
    config: str = ""
    """The exec extension as compact JSON; empty if there is none."""


@record(frozen=True, slots=True)
class User:
    """A user with its certificate files read. `token_file` stays a path: it is read again and again."""

    client_certificate: bytes = b""
    client_key: Secret = Secret("")
    token: Secret = Secret("")
    token_file: str = ""
    username: str = ""
    password: Secret = Secret("")
    impersonation: Impersonation = Impersonation()
    auth_provider: AuthProvider | None = None
    exec: ExecConfig | None = None
    exec_proxy: bool = False
    """Whether `exec` may be a proxy, as far as the entry says."""


@record(frozen=True, slots=True)
class Target:
    """The answer to "which cluster, as whom": what every door starts from."""

    cluster: Cluster
    user: User
    namespace: str = ""
    context_name: str = ""
    cluster_name: str = ""
    user_name: str = ""
    sources: tuple[str, ...] = ()
    """The kubeconfig files that were read, or one line that says where else this came from."""
    files: tuple[str, ...] = ()
    """The files with certificates and keys that the entries name and that were read."""
