"""httpx, pointed at an API server and authenticated.

    from kubeauthn.client import httpx as kube
    with kube.client(context="prod") as api:
        api.get("/api/v1/namespaces").json()

For a client of your own: `httpx.Client(transport=Transport(access), base_url=access.server)`,
or, where the credential is a token alone, `httpx.Client(auth=Auth(access), …)`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from kubeauthn.client._httpx_family import client_and_transport_options, family
from kubeauthn.client.access import Access, access_and_rest
from kubeauthn.errors import MissingExtra

try:
    import httpx
except ImportError:
    raise MissingExtra("httpx", "httpx") from None

__all__ = ["AsyncTransport", "Auth", "Transport", "async_client", "client"]

_classes = family(httpx)
if TYPE_CHECKING:

    class Auth(httpx.Auth):
        def __init__(self, access: Access) -> None: ...

    class Transport(httpx.BaseTransport):
        def __init__(self, access: Access, **options: Any) -> None: ...

    class AsyncTransport(httpx.AsyncBaseTransport):
        def __init__(self, access: Access, **options: Any) -> None: ...
else:
    Auth = _classes.Auth
    Transport = _classes.Transport
    AsyncTransport = _classes.AsyncTransport


def client(context: str | None = None, **options: Any) -> httpx.Client:
    """Options are those of `open_access`, `access=` for one that is open, and those of `httpx.Client`."""
    access, rest = access_and_rest(context, options)
    mine, transport = client_and_transport_options(access, rest)
    return httpx.Client(transport=Transport(access, **transport), **mine)


def async_client(context: str | None = None, **options: Any) -> httpx.AsyncClient:
    """The same for an event loop. The kubeconfig is read here, the plugin runs at the first request."""
    access, rest = access_and_rest(context, options)
    mine, transport = client_and_transport_options(access, rest)
    return httpx.AsyncClient(transport=AsyncTransport(access, **transport), **mine)
