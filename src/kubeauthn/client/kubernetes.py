"""The official Kubernetes client, authenticated: a plugin that fails is an error, not an anonymous request.

    from kubeauthn.client.kubernetes import load_kube_config   # was: from kubernetes.config import load_kube_config
    load_kube_config()
    client.CoreV1Api().list_namespace()

`api_client(context="prod")` gives one `ApiClient` and leaves the default configuration alone.

How it is done (docs/adr/0011): the `Configuration` carries the `Access`, and a `RESTClientObject`
made from such a configuration gets connections of ours. Other configurations are not touched.
"""

from __future__ import annotations

import os
import threading
from functools import wraps
from typing import Any

from kubeauthn.client.access import Access, access_and_rest
from kubeauthn.errors import MissingExtra

try:
    from kubernetes import client
    from kubernetes.client import rest
    from kubernetes.stream import ws_client
except ImportError:
    raise MissingExtra("kubernetes", "kubernetes") from None

from kubeauthn.client._kubernetes_family import fill_or_set_default, open_named
from kubeauthn.client._urllib3_family import CredentialPool
from kubeauthn.client.kubernetes_websocket import PLACEHOLDER, ConfiguredAccess, configured_access, open_websocket

__all__ = ["api_client", "load_kube_config"]

_hook_lock = threading.Lock()
_MARK = "_kubeauthn"


def api_client(context: str | None = None, **options: Any) -> client.ApiClient:
    """Options are those of `open_access`, `access=` for one that is open, and those of `ApiClient`.

    The kubeconfig is read here, the plugin runs at the first request.
    """
    access, rest_of_options = access_and_rest(context, options)
    configuration = rest_of_options.pop("configuration", None) or client.Configuration()
    _configure(configuration, access)
    return client.ApiClient(configuration, **rest_of_options)


def load_kube_config(
    config_file: str | os.PathLike[str] | None = None,
    context: str | None = None,
    client_configuration: client.Configuration | None = None,
    persist_config: bool = True,
    temp_file_path: str | None = None,
    **options: Any,
) -> None:
    """In place of `kubernetes.config.load_kube_config`, with its parameters.

    Sets the default configuration, so that `client.CoreV1Api()` and everything else made after it is
    authenticated; or fills `client_configuration` where one is given. Without `config_file`:
    KUBECONFIG, ~/.kube/config, or in a pod its service account. Further options are those of `open_access`.

    `persist_config` and `temp_file_path` are accepted and not used: nothing is ever written.
    """
    access, unknown = open_named(context, config_file, options)
    if unknown:
        raise TypeError(f"load_kube_config got unexpected arguments: {', '.join(sorted(unknown))}")
    fill_or_set_default(client.Configuration, client_configuration, access, _configure)


def _configure(configuration: client.Configuration, access: Access) -> None:
    _install_hooks()
    configuration.host = access.server
    configuration.verify_ssl = not access.cluster.insecure_skip_tls_verify
    configuration.tls_server_name = access.cluster.tls_server_name or None
    # The proxy in effect is already known; None also keeps the library from looking into the environment.
    configuration.proxy = None
    configuration.username = configuration.password = None
    configuration.refresh_api_key_hook = None
    # A token that no server takes: should the library ever get past our connections, the answer is a 401.
    configuration.api_key = {"authorization": PLACEHOLDER}
    configuration.api_key_prefix = {}
    ConfiguredAccess(access).put_into(configuration)


def _install_hooks() -> None:
    """Once in a process, and only when an adapter is used. Both look for our mark in the configuration first."""
    with _hook_lock:
        if not hasattr(rest.RESTClientObject.__init__, _MARK):
            hooked = _with_our_connections(rest.RESTClientObject.__init__)
            rest.RESTClientObject.__init__ = hooked  # type: ignore[method-assign]
        if not hasattr(ws_client.create_websocket, _MARK):
            ws_client.create_websocket = _with_our_websocket(ws_client.create_websocket)


def _with_our_connections(original: Any) -> Any:
    @wraps(original)
    def init(self: rest.RESTClientObject, configuration: client.Configuration) -> None:
        original(self, configuration)
        if (ours := configured_access(configuration)) is not None:
            self.pool_manager = CredentialPool(
                ours.access, placeholder=PLACEHOLDER, **_pool_options(self.pool_manager.connection_pool_kw)
            )

    setattr(init, _MARK, True)
    return init


def _with_our_websocket(original: Any) -> Any:
    @wraps(original)
    def create_websocket(configuration: client.Configuration, url: str, headers: Any = None) -> Any:
        if (ours := configured_access(configuration)) is not None:
            return open_websocket(ours.sockets, url, headers or {})
        return original(configuration, url, headers)

    setattr(create_websocket, _MARK, True)
    return create_websocket


def _pool_options(options: dict[str, Any]) -> dict[str, Any]:
    """What the user's configuration says of connections, less TLS, which the kubeconfig decides."""
    return {name: options[name] for name in ("maxsize", "retries", "socket_options") if name in options}
