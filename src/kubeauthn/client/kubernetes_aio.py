"""`kubernetes.aio`, the async side of the official client, authenticated.

    from kubernetes.aio import client
    from kubeauthn.client.kubernetes_aio import load_kube_config

    await load_kube_config(context="prod")        # then existing code goes on as it is
    async with client.ApiClient() as api:
        namespaces = await client.CoreV1Api(api).list_namespace()

Or, for one client without touching the default: `async with api_client(context="prod") as api: …`.
"""

from __future__ import annotations

import os
from typing import Any

from kubeauthn.client.access import Access, access_and_rest
from kubeauthn.errors import MissingExtra, UsageError

try:
    from kubernetes.aio import client
except ImportError:  # not there, or older than its async side
    raise MissingExtra("kubernetes 37 or newer", "kubernetes") from None

from kubeauthn.client._aiohttp_family import session_options
from kubeauthn.client._kubernetes_family import fill_or_set_default, open_named

__all__ = ["api_client", "load_kube_config"]


def api_client(context: str | None = None, **options: Any) -> client.ApiClient:
    """A client of its own. Options are those of `open_access`, `access=` for one that is open,
    and those of `kubernetes.aio.client.Configuration`."""
    access, rest = access_and_rest(context, options)
    configuration = client.Configuration(**rest)
    configure(configuration, access)
    return client.ApiClient(configuration)


async def load_kube_config(
    context: str | None = None,
    *,
    config_file: str | os.PathLike[str] | None = None,
    client_configuration: client.Configuration | None = None,
    **options: Any,
) -> None:
    """Set the default configuration, or the one that is given, in the place of the library's own function.

    The kubeconfig is read here, a plugin runs at the first request. Options are those of `open_access`;
    `config_file` is the library's name for `kubeconfig`.
    """
    access, unknown = open_named(context, config_file, options)
    if unknown:
        raise UsageError(f"load_kube_config has no option {sorted(unknown)[0]!r}")
    fill_or_set_default(client.Configuration, client_configuration, access, configure)


def configure(configuration: client.Configuration, access: Access) -> None:
    """Every session that the library makes from this configuration, or from a copy, is one for this access.

    No connector is given: each session makes its own, in its own event loop, and closes it.
    """
    own = dict(configuration.client_session_kwargs or {})
    mine = session_options(access)
    mine["middlewares"] = (*own.pop("middlewares", ()), *mine["middlewares"])
    configuration.client_session_kwargs = {**own, **mine}
    configuration.host = access.server
    # Said by the session now, for websockets too, which the library would send past its proxy and server name.
    configuration.proxy = None
    configuration.tls_server_name = None
