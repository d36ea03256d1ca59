"""lightkube, authenticated by kubeauthn.

    from kubeauthn.client import lightkube as kube
    with kube.client(context="prod") as api:
        for namespace in api.list(Namespace): ...

lightkube's own reading of kubeconfigs, its exec code and its TLS settings are not used.
"""

from __future__ import annotations

from typing import Any

from kubeauthn.client._httpx_family import refuse_decided
from kubeauthn.client.access import Access, access_and_rest
from kubeauthn.client.httpx2 import AsyncTransport, Transport
from kubeauthn.errors import MissingExtra

try:
    import lightkube
    from lightkube.config.kubeconfig import SingleConfig
    from lightkube.config.models import Cluster, Context, User
except ImportError:
    raise MissingExtra("lightkube", "lightkube") from None

__all__ = ["async_client", "client"]

DECIDED = ("config", "transport", "proxy", "trust_env")


def client(context: str | None = None, **options: Any) -> lightkube.Client:
    """Options are those of `open_access`, `access=` for one that is open, and those of `lightkube.Client`."""
    access, mine, transport = _split(context, options)
    return lightkube.Client(transport=Transport(access, **transport), **mine)


def async_client(context: str | None = None, **options: Any) -> lightkube.AsyncClient:
    """The same for an event loop. The kubeconfig is read here, the plugin runs at the first request."""
    access, mine, transport = _split(context, options)
    return lightkube.AsyncClient(transport=AsyncTransport(access, **transport), **mine)


def _split(context: str | None, options: dict[str, Any]) -> tuple[Access, dict[str, Any], dict[str, Any]]:
    access, rest = access_and_rest(context, options)
    refuse_decided(rest, DECIDED)
    transport = {"http2": rest.pop("http2")} if "http2" in rest else {}
    return access, {**rest, "config": _config(access), "trust_env": False}, transport


def _config(access: Access) -> SingleConfig:
    """Where the server is, and nothing to authenticate with: the transport does that."""
    target = access.target
    return SingleConfig(
        context_name=target.context_name if target else "",
        context=Context(cluster=target.cluster_name if target else "", namespace=access.namespace),
        cluster=Cluster(server=access.server),
        user=User(),
    )
