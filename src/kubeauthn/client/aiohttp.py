"""aiohttp, pointed at an API server and authenticated.

    from kubeauthn.client.aiohttp import session
    async with session(context="prod") as api:
        async with api.get("/api/v1/namespaces") as response:
            print(await response.json())

For a session of your own: `aiohttp.ClientSession(**session_options(access), …)`.
"""

from __future__ import annotations

from typing import Any
from urllib.parse import urlsplit

from kubeauthn.client._aiohttp_family import Authentication, session_options
from kubeauthn.client.access import access_and_rest
from kubeauthn.errors import MissingExtra, UsageError

try:
    import aiohttp
except ImportError:
    raise MissingExtra("aiohttp", "aiohttp") from None

__all__ = ["session", "session_options"]

SECONDS = 30.0
"""Default time limit of connecting, and of each wait for data. A watch wants `timeout=aiohttp.ClientTimeout()`."""


def session(context: str | None = None, **options: Any) -> aiohttp.ClientSession:
    """To be called in a running event loop, and closed there: best by `async with`.

    Options are those of `open_access`, `access=` for one that is open, and those of `aiohttp.ClientSession`.
    A path in a request is taken below the server's address, also where that has a path itself.
    """
    access, rest = access_and_rest(context, options)
    mine = session_options(access, Authentication(access, base_path=urlsplit(access.server).path))
    # Ours comes last, nearest to the wire: no other middleware sees the token.
    mine["middlewares"] = (*rest.pop("middlewares", ()), *mine["middlewares"])
    if clash := sorted(rest.keys() & {"request_class", "trust_env", "auth"}):
        raise UsageError(f"{clash[0]} of the session is not free: the credential depends on it")
    defaults = {
        "base_url": f"{access.server}/",
        "timeout": aiohttp.ClientTimeout(total=None, sock_connect=SECONDS, sock_read=SECONDS),
    }
    return aiohttp.ClientSession(**{**defaults, **mine, **rest})
