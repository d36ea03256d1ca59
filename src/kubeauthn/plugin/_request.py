"""What a client asks of a credential plugin."""

from __future__ import annotations

import os

from kubeauthn._core import execwire
from kubeauthn.errors import ExecInfoError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    import httpx2

    from kubeauthn._core.kubeconfig.model import Cluster


class Request:
    """One request for a credential: the content of KUBERNETES_EXEC_INFO."""

    __slots__ = ("_cluster", "_cluster_fields", "api_version", "interactive")

    def __init__(self, api_version: str, *, interactive: bool, cluster_fields: dict[str, Any] | None = None) -> None:
        self.api_version = api_version
        """The version to answer in; `run` does."""
        self.interactive = interactive
        """Whether a person is there: standard input is a terminal that the plugin may read."""
        self._cluster_fields = cluster_fields
        self._cluster: Cluster | None = None

    @property
    def cluster(self) -> Cluster | None:
        """The cluster that the credential is for, if the kubeconfig entry says `provideClusterInfo: true`."""
        if self._cluster is None and self._cluster_fields is not None:
            self._cluster = execwire.decode_cluster(self._cluster_fields)
        return self._cluster

    @property
    def cluster_fields(self) -> dict[str, Any] | None:
        """`spec.cluster` as it came: cheap to compare, for a plugin that keeps what it made for a cluster."""
        return self._cluster_fields

    @property
    def cluster_config(self) -> Any:
        """What the cluster's extension `client.authentication.k8s.io/exec` holds, as decoded JSON; None without one."""
        return None if self._cluster_fields is None else self._cluster_fields.get("config")

    def connect(self, **options: Any) -> httpx2.Client:
        """An *anonymous* client for that cluster: its address, CA, server name and proxy are set.

        The one place where anonymous is right: the plugin is asked because there is no credential yet.
        Options are those of `httpx2.Client`.
        """
        cluster = self.cluster
        if cluster is None:
            raise ExecInfoError(
                "ExecCredential does not contain cluster information",
                hint="set provideClusterInfo: true in the exec entry of the kubeconfig",
            )
        from kubeauthn._core.credential import Credential
        from kubeauthn.client.access import Access
        from kubeauthn.client.httpx2 import client
        from kubeauthn.client.sources import FixedSource

        return client(access=Access(cluster, FixedSource(Credential())), **options)

    def __repr__(self) -> str:
        server = None if self._cluster_fields is None else self._cluster_fields.get("server")
        return f"Request(api_version={self.api_version!r}, interactive={self.interactive}, server={server!r})"


def load(text: str | None = None) -> Request:
    """The request that the client left in KUBERNETES_EXEC_INFO, or the one in `text`; any known version."""
    if text is None:
        text = os.environ.get(execwire.VARIABLE, "")
        if not text:
            raise ExecInfoError(
                f"{execwire.VARIABLE} env var is unset or empty",
                hint="a client sets it; to try a plugin by hand: kubeauthn plugin check -- COMMAND",
            )
    api_version, interactive, cluster = execwire.decode_exec_info(text)
    return Request(api_version, interactive=interactive, cluster_fields=cluster)
