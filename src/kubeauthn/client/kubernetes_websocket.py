"""exec, attach and port-forward of the official client: websockets, which do not go through its connection pool."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from urllib3 import PoolManager
from urllib3.util.proxy import connection_requires_http_tunnel
from websocket import WebSocket, WebSocketBadStatusException, WebSocketTimeoutException, enableTrace

from kubeauthn._core.credential import Credential
from kubeauthn.client._urllib3_family import CredentialPool, Headers, with_credential
from kubeauthn.client.access import Access
from kubeauthn.client.routed import send_routed

PLACEHOLDER = "Bearer replaced-by-kubeauthn"
"""What the library is given as the token; our connections put the real one in its place."""

_ATTRIBUTE = "_kubeauthn"
_CHANNEL_PROTOCOLS = "v5.channel.k8s.io,v4.channel.k8s.io"


class ConfiguredAccess:
    """An `Access` as an attribute of a `Configuration`. Copies of the configuration share it."""

    def __init__(self, access: Access) -> None:
        self.access = access
        self.sockets = CredentialPool(access, placeholder=PLACEHOLDER)

    def put_into(self, configuration: Any) -> None:
        setattr(configuration, _ATTRIBUTE, self)

    def __deepcopy__(self, memo: dict[int, Any]) -> ConfiguredAccess:
        return self


def configured_access(configuration: Any) -> ConfiguredAccess | None:
    found = getattr(configuration, _ATTRIBUTE, None)
    return found if isinstance(found, ConfiguredAccess) else None


def open_websocket(sockets: CredentialPool, url: str, given: Mapping[str, str]) -> WebSocket:
    """A websocket to `url`, with the credential and the impersonation that every other request has."""
    enableTrace(False)  # it would print the token
    access = sockets.access
    server_url = "http" + url.removeprefix("ws")
    access.check_destination(server_url)
    headers, brings_its_own = sockets.outgoing(_of_the_handshake(given), sockets.access.headers)
    if brings_its_own:
        return _connect(sockets.pool_for(None), url, server_url, headers)
    credential = access.credential()
    try:
        if credential.route is None:
            return _connect_as(credential, sockets, url, server_url, headers)
        credential, websocket = send_routed(
            access,
            credential,
            lambda chosen: _connect_as(chosen, sockets, url, server_url, headers),
            may_repeat=lambda: False,
        )
        return websocket
    except WebSocketBadStatusException as refusal:
        if refusal.status_code != 401:
            raise
        # Refused before anything was started in the pod, so it may be tried again like any GET.
        renewed = access.renew(credential)
        if renewed is None or not access.may_repeat("GET"):
            raise
    try:
        return _connect_as(renewed, sockets, url, server_url, headers)
    except WebSocketBadStatusException as refusal:
        access.answered(renewed, refusal.status_code)
        raise


def _of_the_handshake(given: Mapping[str, str]) -> dict[str, str]:
    """Of the headers that the generated code makes, those that mean something here."""
    wanted = {
        name: value for name, value in given.items() if name.lower() in ("authorization", "sec-websocket-protocol")
    }
    if not any(name.lower() == "sec-websocket-protocol" for name in wanted):
        wanted["Sec-WebSocket-Protocol"] = _CHANNEL_PROTOCOLS
    return wanted


def _connect_as(
    credential: Credential, sockets: CredentialPool, url: str, server_url: str, headers: Headers
) -> WebSocket:
    try:
        websocket = _connect(sockets.pool_for(credential), url, server_url, with_credential(headers, credential))
    except WebSocketBadStatusException as answer:
        if answer.status_code != 401:
            sockets.access.accepted(credential)
        raise
    sockets.access.accepted(credential)
    return websocket


class _ClosesItself(WebSocket):
    """The official client does not always do it.

    After a failure to read nothing can come any more, and its `PortForward` leaves it at that: the thread ends.
    `stream` reads to the end, and lets go of it.
    """

    def recv_frame(self) -> Any:
        try:
            return super().recv_frame()  # type: ignore[no-untyped-call]
        except WebSocketTimeoutException:
            raise
        except Exception:
            self.shutdown()  # type: ignore[no-untyped-call]
            raise

    def __del__(self) -> None:
        self.shutdown()  # type: ignore[no-untyped-call]


def _connect(pool: PoolManager, url: str, server_url: str, headers: Headers) -> WebSocket:
    websocket = _ClosesItself(skip_utf8_validation=False)
    websocket.connect(  # type: ignore[no-untyped-call]
        url,
        socket=_open_socket(pool, server_url),
        header=[f"{name}: {value}" for name, value in headers.items()],
        redirect_limit=0,
    )
    return websocket


def _open_socket(pool: PoolManager, server_url: str) -> Any:
    """A new connection as urllib3 makes it, proxy and TLS included: one way to the server for everything."""
    connections = pool.connection_from_url(server_url)
    connection: Any = connections._new_conn()
    try:
        if connections.proxy and connection_requires_http_tunnel(
            connections.proxy, connections.proxy_config, connections.scheme
        ):
            connections._prepare_proxy(connection)
        else:
            connection.connect()
        opened, connection.sock = connection.sock, None
        return opened
    finally:
        connection.close()
