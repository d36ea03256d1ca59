"""kubernetes_asyncio, authenticated.

    from kubernetes_asyncio import client
    from kubeauthn.client.kubernetes_asyncio import load_kube_config

    await load_kube_config(context="prod")        # then existing code goes on as it is
    async with client.ApiClient() as api:
        namespaces = await client.CoreV1Api(api).list_namespace()

Or, for one client without touching the default: `async with api_client(context="prod") as api: …`.
"""

from __future__ import annotations

import os
from functools import wraps
from typing import Any

from kubeauthn.client.access import Access, access_and_rest
from kubeauthn.errors import MissingExtra, UsageError

try:
    import aiohttp
    from kubernetes_asyncio import client
    from kubernetes_asyncio.client import rest
except ImportError:
    raise MissingExtra("kubernetes_asyncio", "kubernetes-asyncio") from None

from kubeauthn.client._aiohttp_family import Authentication, session_options
from kubeauthn.client._kubernetes_family import fill_or_set_default, open_named

__all__ = ["api_client", "load_kube_config"]

_MARK = "kubeauthn_authentication"
"""The attribute by which a configuration, and every copy of it, says that its sessions are ours."""
_READ_BYTES = 2**21
"""The library's own choice: an event with a large object must fit into the buffer."""


def api_client(context: str | None = None, **options: Any) -> client.ApiClient:
    """A client of its own, to be made in a running event loop. Options are those of `open_access`, `access=` for
    one that is open, and those of `kubernetes_asyncio.client.Configuration`."""
    access, left = access_and_rest(context, options)
    configuration = client.Configuration(**left)
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
    """Every client made from this configuration, or from a copy, is one for this access."""
    session_options(access)  # what the session would refuse is refused here, where the caller sees why
    _watch_over_new_clients()
    setattr(configuration, _MARK, Authentication(access))
    configuration.host = access.server
    # Said by the session now, for websockets too, which the library would send past its proxy and server name.
    configuration.proxy = None
    configuration.tls_server_name = None


def _watch_over_new_clients() -> None:
    """The library makes its session in the constructor of its REST client and offers no say in it: so that
    constructor is extended, once. For configurations that do not carry our mark it does what it did."""
    original = rest.RESTClientObject.__init__
    if getattr(original, _MARK, False):
        return

    @wraps(original)
    def with_our_session(self: Any, configuration: Any, *args: Any, **kwargs: Any) -> None:
        original(self, configuration, *args, **kwargs)
        authentication = getattr(configuration, _MARK, None)
        if authentication is not None:
            _exchange_session(self, authentication)

    setattr(with_our_session, _MARK, True)
    rest.RESTClientObject.__init__ = with_our_session  # type: ignore[method-assign]


def _exchange_session(rest_client: Any, authentication: Authentication) -> None:
    limit = rest_client.pool_manager.connector.limit
    rest_client.pool_manager.detach()  # nothing was sent on it yet
    rest_client.pool_manager = aiohttp.ClientSession(
        connector=aiohttp.TCPConnector(limit=limit),
        read_bufsize=_READ_BYTES,
        **session_options(authentication.access, authentication),
    )
