"""httpx2, pointed at an API server and authenticated.

    from kubeauthn.client import httpx2 as kube
    with kube.client(context="prod") as api:
        api.get("/api/v1/namespaces").json()

For a client of your own: `httpx2.Client(transport=Transport(access), base_url=access.server)`,
or, where the credential is a token alone, `httpx2.Client(auth=Auth(access), …)`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import httpx2

from kubeauthn.client._httpx_family import client_and_transport_options, family
from kubeauthn.client.access import Access, access_and_rest

__all__ = ["AsyncTransport", "Auth", "Transport", "async_client", "client"]

_classes = family(httpx2)
if TYPE_CHECKING:

    class Auth(httpx2.Auth):
        def __init__(self, access: Access) -> None: ...

    class Transport(httpx2.BaseTransport):
        def __init__(self, access: Access, **options: Any) -> None: ...

    class AsyncTransport(httpx2.AsyncBaseTransport):
        def __init__(self, access: Access, **options: Any) -> None: ...
else:
    Auth = _classes.Auth
    Transport = _classes.Transport
    AsyncTransport = _classes.AsyncTransport


def client(context: str | None = None, **options: Any) -> httpx2.Client:
    """Options are those of `open_access`, `access=` for one that is open, and those of `httpx2.Client`."""
    access, rest = access_and_rest(context, options)
    mine, transport = client_and_transport_options(access, rest)
    return httpx2.Client(transport=Transport(access, **transport), **mine)


def async_client(context: str | None = None, **options: Any) -> httpx2.AsyncClient:
    """The same for an event loop. The kubeconfig is read here, the plugin runs at the first request."""
    access, rest = access_and_rest(context, options)
    mine, transport = client_and_transport_options(access, rest)
    return httpx2.AsyncClient(transport=AsyncTransport(access, **transport), **mine)
