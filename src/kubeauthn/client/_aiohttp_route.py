"""The way to a local proxy for aiohttp: a session's own connector learns to dial it.

Sessions are made by many (kopf, the Kubernetes clients, the user), each with a connector of its own. So the one that is
there is taught, when a request first leads through a proxy; for every other request it does what it did.
"""

from __future__ import annotations

import asyncio
import ssl
from typing import Any

from kubeauthn._core.execproxy import LOOPBACK, TLS_NAME, ProxyRoute
from kubeauthn._io.dialing import nobody_listens, not_the_proxy, socket_address

_MARK = "_kubeauthn_routes"


def dial_routes(connector: Any) -> None:
    if connector is None or getattr(connector, _MARK, False):
        return
    original = connector._create_connection

    async def create_connection(request: Any, traces: Any, timeout: Any) -> Any:
        connections = getattr(request, "connections", None)
        if connections is None or connections.route is None:
            return await original(request, traces, timeout)
        async with asyncio.timeout(timeout.sock_connect):
            return await _dial(connector._factory, connections.route, connections.context)

    connector._create_connection = create_connection
    setattr(connector, _MARK, True)


async def _dial(factory: Any, route: ProxyRoute, context: ssl.SSLContext) -> Any:
    loop = asyncio.get_running_loop()
    try:
        if route.socket_path:
            with socket_address(route.socket_path) as path:
                _, protocol = await loop.create_unix_connection(factory, path, ssl=context, server_hostname=TLS_NAME)
        else:
            _, protocol = await loop.create_connection(
                factory, LOOPBACK, route.port, ssl=context, server_hostname=TLS_NAME
            )
    except TimeoutError:
        raise
    except (ConnectionRefusedError, FileNotFoundError) as error:
        raise nobody_listens(route, error) from None
    except (ssl.SSLError, OSError) as error:
        raise not_the_proxy(route, error) from None
    return protocol
