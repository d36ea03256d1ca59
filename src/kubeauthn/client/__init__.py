"""Call an API server with the credentials of a kubeconfig.

    from kubeauthn.client import connect

    with connect(context="prod") as api:
        print(api.get("/api/v1/namespaces").json())

`connect` gives an `httpx2.Client` that already points at the server; `connect_async` an `httpx2.AsyncClient`.
For the library you already use there is a module of its name: `kubeauthn.client.kubernetes`, `.requests`,
`.aiohttp`, `.lightkube` and others. What they all stand on is `open_access`.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from kubeauthn._core.policy import PluginPolicy
    from kubeauthn.client.access import Access, AccessOptions, open_access
    from kubeauthn.client.httpx2 import async_client as connect_async
    from kubeauthn.client.httpx2 import client as connect
    from kubeauthn.client.signing import signing_context

__all__ = ["Access", "AccessOptions", "PluginPolicy", "connect", "connect_async", "open_access", "signing_context"]

_WHERE = {
    "Access": ("kubeauthn.client.access", "Access"),
    "AccessOptions": ("kubeauthn.client.access", "AccessOptions"),
    "PluginPolicy": ("kubeauthn._core.policy", "PluginPolicy"),
    "connect": ("kubeauthn.client.httpx2", "client"),
    "connect_async": ("kubeauthn.client.httpx2", "async_client"),
    "open_access": ("kubeauthn.client.access", "open_access"),
    "signing_context": ("kubeauthn.client.signing", "signing_context"),
}


def __getattr__(name: str) -> object:
    # Late, because importing this package must not load an HTTP library.
    from importlib import import_module

    try:
        module, attribute = _WHERE[name]
    except KeyError:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}") from None
    return getattr(import_module(module), attribute)
