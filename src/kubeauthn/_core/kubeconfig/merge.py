"""Several kubeconfigs as one, and the one that a pod has without any file."""

from __future__ import annotations

from kubeauthn._core.kubeconfig.model import ClusterEntry, ContextEntry, Kubeconfig, Origin, UserEntry

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

IN_CLUSTER = "in-cluster"
"""The name of the one context, cluster and user that a pod has."""


def merge(kubeconfigs: Sequence[Kubeconfig]) -> Kubeconfig:
    """The first that has an entry of a name gives it whole; the first that sets current-context wins."""
    clusters: dict[str, ClusterEntry] = {}
    users: dict[str, UserEntry] = {}
    contexts: dict[str, ContextEntry] = {}
    current, origin = "", Origin()
    for kubeconfig in reversed(kubeconfigs):
        clusters.update(kubeconfig.clusters)
        users.update(kubeconfig.users)
        contexts.update(kubeconfig.contexts)
        if kubeconfig.current_context:
            current, origin = kubeconfig.current_context, kubeconfig.current_context_origin
    sources = tuple(source for kubeconfig in kubeconfigs for source in kubeconfig.sources)
    return Kubeconfig(clusters, users, contexts, current, origin, sources)


def is_empty(kubeconfig: Kubeconfig) -> bool:
    """True for files that say nothing, such as /dev/null."""
    return not (kubeconfig.clusters or kubeconfig.users or kubeconfig.contexts or kubeconfig.current_context)


def in_cluster(host: str, port: str, *, token_file: str, ca_file: str, namespace: str) -> Kubeconfig:
    """What a pod's service account amounts to. The token stays a file: the kubelet replaces it."""
    address = f"[{host}]" if ":" in host and not host.startswith("[") else host
    return Kubeconfig(
        clusters={IN_CLUSTER: ClusterEntry(server=f"https://{address}:{port}", certificate_authority=ca_file)},
        users={IN_CLUSTER: UserEntry(token_file=token_file)},
        contexts={IN_CLUSTER: ContextEntry(cluster=IN_CLUSTER, user=IN_CLUSTER, namespace=namespace)},
        current_context=IN_CLUSTER,
        sources=("the service account of this pod",),
    )
