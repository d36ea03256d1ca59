"""Fakes for tests of programs that authenticate to Kubernetes.

Each is a real implementation of the far end: an API server that speaks TLS, an issuer
that signs tokens, a proxy that tunnels, a plugin that is executed. They listen on
127.0.0.1 only, on a port the system picks, and leave no thread or socket behind.

- `ApiServer`: an API server with switches (401, delay, revoked certificates) and records.
- `CertificateAuthority`, `Leaf`: certificates for servers and clients.
- `ScriptedPlugin`, `PluginDirectory`: executable credential plugins.
- `ProxyPlugin`: an executable plugin that is a proxy.
- `Issuer`: an OpenID Connect issuer.
- `ConnectProxy`, `Socks5Proxy`: proxies that record what they tunnelled.
- `FakeClock`: a clock that moves when it is told to.

Nothing is imported before it is used.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from kubeauthn.testing._identity import User
    from kubeauthn.testing._records import RecordedConnection, RecordedRequest
    from kubeauthn.testing.apiserver import ApiServer
    from kubeauthn.testing.clock import FakeClock
    from kubeauthn.testing.issuer import Issuer, IssuerRequest
    from kubeauthn.testing.pki import CertificateAuthority, Leaf
    from kubeauthn.testing.plugins import PluginDirectory, ScriptedPlugin
    from kubeauthn.testing.proxy import ConnectProxy, Socks5Proxy, Tunnel
    from kubeauthn.testing.proxy_plugin import ProxyPlugin

_HOMES = {
    "ApiServer": "apiserver",
    "CertificateAuthority": "pki",
    "ConnectProxy": "proxy",
    "FakeClock": "clock",
    "Issuer": "issuer",
    "IssuerRequest": "issuer",
    "Leaf": "pki",
    "PluginDirectory": "plugins",
    "ProxyPlugin": "proxy_plugin",
    "RecordedConnection": "_records",
    "RecordedRequest": "_records",
    "ScriptedPlugin": "plugins",
    "Socks5Proxy": "proxy",
    "Tunnel": "proxy",
    "User": "_identity",
}

__all__ = [
    "ApiServer",
    "CertificateAuthority",
    "ConnectProxy",
    "FakeClock",
    "Issuer",
    "IssuerRequest",
    "Leaf",
    "PluginDirectory",
    "ProxyPlugin",
    "RecordedConnection",
    "RecordedRequest",
    "ScriptedPlugin",
    "Socks5Proxy",
    "Tunnel",
    "User",
]


def __getattr__(name: str) -> object:
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    value: object = getattr(import_module(f"{__name__}.{home}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
