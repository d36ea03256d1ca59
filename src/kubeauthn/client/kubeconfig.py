"""kubeconfig for programs: read it, find out what a context means, change it.

    from kubeauthn.client import kubeconfig

    config = kubeconfig.load()                       # KUBECONFIG, ~/.kube/config, or the pod's service account
    target = kubeconfig.resolve("prod")              # one cluster, one user, every file they name read
    with kubeconfig.edit() as edit:                  # comments, order and unknown fields stay
        edit.set_context("prod", {"namespace": "shop"})

Every fault of a kubeconfig is reported at once: `KubeconfigError.faults`, each a `Fault`
with file, line, field and message.
"""

from __future__ import annotations

import os

from kubeauthn._core.kubeconfig.faults import Fault, locate
from kubeauthn._core.kubeconfig.model import (
    AuthProvider,
    Cluster,
    ClusterEntry,
    ContextEntry,
    ExecConfig,
    Impersonation,
    Kubeconfig,
    Origin,
    Target,
    User,
    UserEntry,
)
from kubeauthn._core.kubeconfig.resolve import Overrides
from kubeauthn._io import kubeconfig as _shell
from kubeauthn._secret import Secret
from kubeauthn.errors import KubeconfigError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from kubeauthn._io.kubeconfig_edit import KubeconfigEdit

__all__ = [
    "AuthProvider",
    "Cluster",
    "ClusterEntry",
    "ContextEntry",
    "ExecConfig",
    "Fault",
    "Impersonation",
    "Kubeconfig",
    "Origin",
    "Target",
    "User",
    "UserEntry",
    "edit",
    "load",
    "locate",
    "resolve",
]


def load(path: str | os.PathLike[str] | None = None) -> Kubeconfig:
    """The kubeconfig that is in force: one file, or several merged.

    Without `path`: the files of `KUBECONFIG` (those that do not exist are skipped; the first
    that has an entry, or sets current-context, wins), else `~/.kube/config`, else the service
    account of the pod this runs in, as a kubeconfig with one context named `in-cluster`.

    Raises `KubeconfigError`.
    """
    return _shell.load(path)


def resolve(
    context: str | None = None,
    *,
    path: str | os.PathLike[str] | None = None,
    cluster: str | None = None,
    user: str | None = None,
    namespace: str | None = None,
    server: str | None = None,
    tls_server_name: str | None = None,
    token: str | None = None,
    impersonate_user: str | None = None,
    impersonate_uid: str | None = None,
    impersonate_groups: Sequence[str] = (),
    impersonate_extra: Mapping[str, Sequence[str]] | None = None,
    kubeconfig: Kubeconfig | None = None,
) -> Target:
    """Which cluster, as whom: the context (or the current one) with its cluster and user.

    The other arguments stand in for what the context, cluster or user entry says, like kubectl's
    options of these names. `kubeconfig` is one that was loaded before, in place of `path`.
    Certificate files are read here; a token file is not, because it is read again and again.

    Raises `KubeconfigError` with all faults of the entries in use. Nothing runs and nothing is sent.
    """
    overrides = Overrides(
        context=context or "",
        cluster=cluster or "",
        user=user or "",
        namespace=namespace or "",
        server=server or "",
        tls_server_name=tls_server_name or "",
        token=Secret(token or ""),
        impersonation=Impersonation(
            user=impersonate_user or "",
            uid=impersonate_uid or "",
            groups=tuple(impersonate_groups),
            extra=tuple((key, tuple(values)) for key, values in (impersonate_extra or {}).items()),
        ),
    )
    return _shell.resolve(kubeconfig if kubeconfig is not None else _shell.load(path), overrides)


def edit(path: str | os.PathLike[str] | None = None) -> KubeconfigEdit:
    """Change kubeconfig files: a context manager that locks them, and writes them when it ends without an error.

    An entry is changed in the file it stands in; a new one goes to the file that kubectl would choose.
    Comments, order, quoting and unknown fields stay. Needs the extra `edit`, else raises `MissingExtra`.
    """
    from kubeauthn._io.kubeconfig_edit import KubeconfigEdit

    candidates = _shell.candidate_paths(path, os.environ)
    if not candidates:
        raise KubeconfigError(
            "there is no home directory with a kubeconfig", hint=f"set {_shell.VARIABLE} or name a file"
        )
    return KubeconfigEdit(candidates)
