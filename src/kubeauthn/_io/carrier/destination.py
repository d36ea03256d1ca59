"""The address of a cluster's API server, with its proxy and its TLS, from what a kubeconfig or a client says."""

from __future__ import annotations

import os
import ssl
from typing import TYPE_CHECKING
from urllib.parse import quote

from kubeauthn._core.kubeconfig.proxy import check_proxy_url, in_ascii, proxy_from_environment, split_url
from kubeauthn._io.carrier.dialling import Address
from kubeauthn._io.tls import proxy_context, server_context
from kubeauthn.errors import KubeconfigError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from kubeauthn._core.kubeconfig.model import Cluster


def address_of(
    cluster: Cluster,
    context: ssl.SSLContext | None = None,
    environ: Mapping[str, str] = os.environ,
    *,
    signs_slowly: bool = False,
) -> Address:
    """`context` in place of the one that follows from the cluster's CA. Raises KubeconfigError."""
    try:
        parts = split_url(cluster.server)
        proxy = cluster.proxy_url or proxy_from_environment(cluster.server, environ)
        if cluster.proxy_url:
            check_proxy_url(cluster.proxy_url)
    except ValueError as error:
        raise KubeconfigError(f"the cluster's server or proxy-url cannot be used: {error}") from None
    if parts.scheme not in ("https", "http") or not parts.hostname:
        raise KubeconfigError("the cluster's server is not an http or https address")
    encrypted = parts.scheme == "https"
    if encrypted and context is None:
        context = server_context(cluster)
    return Address(
        parts.hostname,
        parts.port or (443 if encrypted else 80),
        context if encrypted else None,
        proxy_url=proxy,
        proxy_context=proxy_context(cluster) if proxy.startswith("https:") else None,
        tls_name=cluster.tls_server_name,
        signs_slowly=signs_slowly,
    )


def host_header(cluster: Cluster) -> bytes:
    """What `Host` says to the server: its address, as the kubeconfig spells it; in ASCII, as DNS has it."""
    host, colon, port = split_url(cluster.server).netloc.rpartition("@")[2].partition(":")
    return f"{in_ascii(host)}{colon}{port}".encode()


def path_prefix(cluster: Cluster) -> bytes:
    """A server behind a path, as some gateways have it."""
    path = split_url(cluster.server).path.rstrip("/")
    return "".join(each if each.isascii() else quote(each) for each in path).encode()
