"""From a kubeconfig and what the caller asks for to one cluster and one user.

Two pure steps around one effect: `select` finds the entries and says which files must be
read; `complete` takes their contents and gives the `Target`. Each reports all its faults
at once, in kubectl's words where it has some.

kubectl goes to localhost:8080 when it finds no cluster, and asks for a name and password
when it finds no user. Here both are errors: a request that goes elsewhere, or as nobody,
is worse than none. Only a context that names no user at all is anonymous.
"""

from __future__ import annotations

from kubeauthn._core.kubeconfig.checks import cluster_faults, user_faults
from kubeauthn._core.kubeconfig.faults import FIELD_CHARACTERS, Fault, faults_error, printable, raise_faults
from kubeauthn._core.kubeconfig.model import (
    Cluster,
    ClusterEntry,
    ContextEntry,
    Impersonation,
    Kubeconfig,
    Origin,
    Target,
    User,
    UserEntry,
)
from kubeauthn._core.kubeconfig.proxy import proxy_from_environment, split_url
from kubeauthn._core.record import record, replace
from kubeauthn._secret import Secret
from kubeauthn.errors import KubeconfigError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

CONTEXTS_SHOWN = 20
NAMES_COMPARED = 1000
"""How many names are looked at for one that is nearly the name asked for."""


@record(frozen=True, slots=True)
class Overrides:
    """What the caller says instead of the kubeconfig. Empty means: as the kubeconfig says."""

    context: str = ""
    cluster: str = ""
    user: str = ""
    namespace: str = ""
    server: str = ""
    tls_server_name: str = ""
    token: Secret = Secret("")
    impersonation: Impersonation = Impersonation()


@record(frozen=True, slots=True)
class Selection:
    """The entries in force, overrides applied, files not read yet."""

    cluster: ClusterEntry
    user: UserEntry
    namespace: str
    context_name: str
    cluster_name: str
    user_name: str
    sources: tuple[str, ...]
    overridden: tuple[str, ...] = ()
    """Fields of the cluster that no file says."""

    @property
    def files(self) -> tuple[str, ...]:
        """What must be read. Where the data stand in the kubeconfig themselves, a file beside them is a fault."""
        cluster, user = self.cluster, self.user
        named = (cluster.certificate_authority, user.client_certificate, user.client_key)
        return tuple(path for path in named if path)


def select(kubeconfig: Kubeconfig, overrides: Overrides) -> Selection:
    """The context, cluster and user that are meant. What a name does not lead to is an error."""
    context_name = overrides.context or kubeconfig.current_context
    context = _context(kubeconfig, context_name, overrides)
    cluster_name = overrides.cluster or context.cluster
    user_name = overrides.user or context.user
    origin = context.origin
    faults: list[Fault] = []

    cluster = kubeconfig.clusters.get(cluster_name)
    if cluster is None:
        cluster = ClusterEntry()
        if overrides.cluster:
            faults.append(Fault(Origin(), (), f'cluster "{printable(cluster_name)}" does not exist'))
        elif cluster_name:
            message = f'cluster "{printable(cluster_name)}" was not found for context "{printable(context_name)}"'
            faults.append(Fault(origin, ("contexts", context_name, "context", "cluster"), message))
        elif not overrides.server:
            message = f'cluster was not specified for context "{printable(context_name)}"'
            faults.append(Fault(origin, ("contexts", context_name, "context"), message))
    user = kubeconfig.users.get(user_name)
    if user is None:
        user = UserEntry()
        if overrides.user:
            faults.append(Fault(Origin(), (), f'user "{printable(user_name)}" does not exist'))
        elif user_name:
            message = f'user "{printable(user_name)}" was not found for context "{printable(context_name)}"'
            faults.append(Fault(origin, ("contexts", context_name, "context", "user"), message))
    raise_faults(faults)

    return Selection(
        cluster=_with_server(cluster, overrides),
        user=_with_identity(user, overrides),
        namespace=overrides.namespace or context.namespace,
        context_name=context_name,
        cluster_name=cluster_name,
        user_name=user_name,
        sources=kubeconfig.sources,
        overridden=tuple(
            field
            for field, given in (("server", overrides.server), ("tls-server-name", overrides.tls_server_name))
            if given
        ),
    )


def complete(selection: Selection, contents: Mapping[str, bytes | str], environ: Mapping[str, str]) -> Target:
    """The target, with the files' contents in it. A `str` in `contents` says why a file could not be read."""
    cluster, user = selection.cluster, selection.user
    unreadable = {path: content for path, content in contents.items() if isinstance(content, str)}
    data = {path: content for path, content in contents.items() if isinstance(content, bytes)}
    faults = [
        Fault(Origin(), fault.path[-1:], fault.message) if set(fault.path[-1:]) & set(selection.overridden) else fault
        for fault in cluster_faults(cluster, selection.cluster_name, unreadable)
    ]
    faults += user_faults(user, selection.user_name, unreadable)

    proxy = cluster.proxy_url
    if not faults and not proxy:
        try:
            proxy = proxy_from_environment(_server_url(cluster), environ)
        except ValueError as fault:
            faults.append(Fault(Origin(), (), str(fault)))
    key = user.client_key_data
    if user.client_key and not faults:
        try:
            key = Secret(data[user.client_key].decode())
        except UnicodeDecodeError:
            message = f"client-key {printable(user.client_key)} is not text (PEM was expected)"
            faults.append(Fault(user.origin, ("users", selection.user_name, "user", "client-key"), message))
    raise_faults(faults)

    return Target(
        cluster=Cluster(
            server=_server_url(cluster),
            tls_server_name=cluster.tls_server_name,
            insecure_skip_tls_verify=cluster.insecure_skip_tls_verify,
            certificate_authority_data=cluster.certificate_authority_data
            or data.get(cluster.certificate_authority, b""),
            proxy_url=proxy,
            disable_compression=cluster.disable_compression,
            config=cluster.exec_extension,
        ),
        user=User(
            client_certificate=user.client_certificate_data or data.get(user.client_certificate, b""),
            client_key=key,
            token=user.token,
            token_file=user.token_file,
            username=user.username,
            password=user.password,
            impersonation=user.impersonation,
            auth_provider=user.auth_provider,
            exec=user.exec,
            exec_proxy=user.exec_proxy,
        ),
        namespace=selection.namespace,
        context_name=selection.context_name,
        cluster_name=selection.cluster_name,
        user_name=selection.user_name,
        sources=selection.sources,
        files=selection.files,
    )


def _context(kubeconfig: Kubeconfig, name: str, overrides: Overrides) -> ContextEntry:
    if not name:
        if overrides.cluster or overrides.server:
            return ContextEntry()  # the caller names what a context would
        raise KubeconfigError("no current-context is set", hint=_contexts_hint(kubeconfig.contexts))
    context = kubeconfig.contexts.get(name)
    if context is not None:
        return context
    hint = _near_context(name, kubeconfig.contexts) + _contexts_hint(kubeconfig.contexts)
    if overrides.context:
        raise faults_error([Fault(Origin(), (), f'context "{printable(name)}" does not exist')], hint=hint)
    message = f"context was not found for specified context: {printable(name)}"
    raise faults_error([Fault(kubeconfig.current_context_origin, ("current-context",), message)], hint=hint)


def _near_context(name: str, names: Iterable[str]) -> str:
    from difflib import get_close_matches  # only a mistake pays for it

    if len(name) > FIELD_CHARACTERS:
        return ""
    known = [each for each in names if len(each) <= FIELD_CHARACTERS][:NAMES_COMPARED]
    near = get_close_matches(name, known, n=1, cutoff=0.7)
    return f"did you mean {printable(near[0])}? " if near else ""


def _contexts_hint(names: Iterable[str]) -> str:
    known = sorted(names)
    if not known:
        return "the kubeconfig has no contexts"
    shown = ", ".join(printable(name) for name in known[:CONTEXTS_SHOWN])
    more = f" and {len(known) - CONTEXTS_SHOWN} more" if len(known) > CONTEXTS_SHOWN else ""
    return f"the contexts are: {shown}{more}"


def _with_server(cluster: ClusterEntry, overrides: Overrides) -> ClusterEntry:
    if overrides.server:
        # A name to check the certificate against belongs to the server that it was written for.
        cluster = replace(cluster, server=overrides.server, tls_server_name="")
    if overrides.tls_server_name:
        cluster = replace(cluster, tls_server_name=overrides.tls_server_name)
    return cluster


def _with_identity(user: UserEntry, overrides: Overrides) -> UserEntry:
    if overrides.token:
        # Else the file, which is read again and again, would soon replace the token that was asked for.
        user = replace(user, token=overrides.token, token_file="")
    if overrides.impersonation:
        user = replace(user, impersonation=overrides.impersonation)
    return user


def _server_url(cluster: ClusterEntry) -> str:
    """A server without a scheme is an https one; `cluster_faults` let that pass only where TLS is configured."""
    try:
        has_scheme = "://" in cluster.server and bool(split_url(cluster.server).scheme)
    except ValueError:
        has_scheme = True
    return cluster.server if has_scheme else f"https://{cluster.server}"
