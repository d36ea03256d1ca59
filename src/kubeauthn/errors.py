"""Every error that kubeauthn raises (CEL has a tree of its own).

The class says who must act::

    KubeauthnError
    ├── UsageError                the caller: arguments that do not fit together
    ├── EnvironmentFailure        the machine: a file that cannot be read, a part that is missing
    │   └── MissingExtra          … an optional dependency: the hint says what to install
    ├── KubeconfigError           the owner of the kubeconfig: every fault, with file, line and field
    │   └── KubercError           … of the kuberc with the plugin policy
    ├── CredentialError           no credential, so nothing was sent
    │   ├── StaticCredentialError the owner of a token file, certificate or key named in the kubeconfig
    │   ├── AuthProviderError     the owner of an `auth-provider` entry: gone, unknown, or refused
    │   ├── InteractionRequired   the person: the plugin needs a terminal and there is none
    │   ├── PluginDenied          the person or administrator who wrote the plugin policy
    │   ├── PluginNotFound        the person: the plugin is not installed
    │   ├── PluginFailed          the plugin: it ended with an exit code, by a signal, or not in time
    │   │   └── PluginTimeout
    │   ├── PluginReplyError      the plugin's author: what it printed is not a credential
    │   └── CredentialWaiting     time: the last attempt failed, the next one is not due yet
    ├── ExecInfoError             the plugin's caller: KUBERNETES_EXEC_INFO is missing or not readable
    └── RequestRefused            the server: it answered 401 or 403 (command line only)

Texts are lower case, without a full stop and without secrets. `hint` is what a person
could do about it; only the command line prints it.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence


class KubeauthnError(Exception):
    """The root of them all."""

    hint: str | None = None

    def __init__(self, message: str, *, hint: str | None = None) -> None:
        super().__init__(message)
        if hint is not None:
            self.hint = hint


class UsageError(KubeauthnError):
    """Arguments that do not fit together."""


class EnvironmentFailure(KubeauthnError):
    """A file that cannot be read, a system part that is missing."""


class MissingExtra(EnvironmentFailure):
    """An optional dependency is not installed."""

    def __init__(self, package: str, extra: str) -> None:
        super().__init__(
            f"{package} is not installed",
            hint=f"it comes with an extra: pip install 'kubeauthn[{extra}]'",
        )
        self.package = package
        self.extra = extra

    def __reduce__(self) -> tuple[type[MissingExtra], tuple[str, str]]:
        # An error that another process cannot read leaves a pool of processes waiting for ever.
        return type(self), (self.package, self.extra)


class KubeconfigError(KubeauthnError):
    """A kubeconfig is not right. `faults` lists all that was found, each with its place."""

    def __init__(self, message: str, *, faults: Sequence[object] = (), hint: str | None = None) -> None:
        super().__init__(message, hint=hint)
        self.faults = tuple(faults)


class KubercError(KubeconfigError):
    """The kuberc, which carries the plugin policy, is not right."""


class CredentialError(KubeauthnError):
    """There is no credential, so no request was sent."""


class StaticCredentialError(CredentialError):
    """A token file, certificate or key that the kubeconfig names cannot be used."""


class AuthProviderError(CredentialError):
    """An `auth-provider` that is gone, unknown, or gave no token."""


class InteractionRequired(CredentialError):
    """The plugin must talk to a person, and there is no terminal."""


class PluginDenied(CredentialError):
    """The plugin policy does not allow this plugin."""


class PluginNotFound(CredentialError):
    """The plugin's executable is not there, or may not be executed."""


class PluginFailed(CredentialError):
    """The plugin ended without a credential. `exit_code` is negative for a signal, None if it never ended."""

    def __init__(self, message: str, *, exit_code: int | None = None, hint: str | None = None) -> None:
        super().__init__(message, hint=hint)
        self.exit_code = exit_code


class PluginTimeout(PluginFailed):
    """The plugin did not answer in time; it and what it had started were ended."""


class PluginReplyError(CredentialError):
    """The plugin answered something that is not a usable credential."""


class CredentialWaiting(CredentialError):
    """An attempt failed a moment ago; the next one is not due yet. `retry_after` is in seconds."""

    def __init__(self, message: str, *, retry_after: float = 0.0) -> None:
        super().__init__(message)
        self.retry_after = retry_after


class ExecInfoError(KubeauthnError):
    """KUBERNETES_EXEC_INFO is missing, or is not an ExecCredential."""


class RequestRefused(KubeauthnError):
    """The server answered 401 or 403."""

    def __init__(self, message: str, *, status: int = 0, hint: str | None = None) -> None:
        super().__init__(message, hint=hint)
        self.status = status
