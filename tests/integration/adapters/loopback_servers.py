"""Two small servers that the fake API server does not cover: one that redirects, one that speaks websocket."""

from __future__ import annotations

import socket
import ssl
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from wsproto import ConnectionType, WSConnection
from wsproto.connection import ConnectionState
from wsproto.events import AcceptConnection, BytesMessage, CloseConnection, RejectConnection, Request

from kubeauthn.testing import CertificateAuthority

SECONDS = 10.0


class QuietServer(ThreadingHTTPServer):
    daemon_threads = True

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A client that hangs up in the handshake is part of the tests."""


@contextmanager
def redirecting_server(ca: CertificateAuthority, locations: dict[str, str]) -> Iterator[tuple[str, list[str]]]:
    """Answers 302 where `locations` says so, else an empty list. Gives its URL and the paths it was asked for."""
    asked: list[str] = []

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            asked.append(self.path)
            location = locations.get(self.path)
            body = b"" if location else b'{"items":[]}'
            self.send_response(302 if location else 200)
            if location:
                self.send_header("Location", location)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *args: object) -> None:
            """Nothing to say."""

    server = QuietServer(("127.0.0.1", 0), Handler)
    context = ca.server_context()
    server.socket = context.wrap_socket(server.socket, server_side=True)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
    thread.start()
    try:
        yield f"https://127.0.0.1:{server.server_port}", asked
    finally:
        server.shutdown()
        server.server_close()
        thread.join(5)


@dataclass(frozen=True)
class Handshake:
    """What a client sent, and the serial of the certificate it showed."""

    target: str
    headers: tuple[tuple[str, str], ...]
    serial: int | None

    def values(self, name: str) -> list[str]:
        return [value for key, value in self.headers if key.lower() == name.lower()]


class WebsocketServer:
    """Takes websockets as an API server does for exec: `greeting` arrives on the channel of standard output.

    `tokens` are those it takes; everything else is a 401. A port-forward gets its first two frames too.
    """

    greeting = b"hello from the pod"

    def __init__(self, ca: CertificateAuthority) -> None:
        self.tokens: set[str] = set()
        self.handshakes: list[Handshake] = []
        self.connections = 0
        self._context = ca.server_context()
        self._context.verify_mode = ssl.CERT_OPTIONAL
        self._context.load_verify_locations(cadata=ca.certificate_pem.decode())
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.url = f"https://127.0.0.1:{self._listener.getsockname()[1]}"
        self._thread = threading.Thread(target=self._serve, daemon=True)

    def __enter__(self) -> WebsocketServer:
        self._thread.start()
        return self

    def __exit__(self, *args: object) -> None:
        with suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        self._thread.join(SECONDS)

    def _serve(self) -> None:
        while True:
            try:
                plain, _ = self._listener.accept()
            except OSError:
                return
            self.connections += 1
            plain.settimeout(SECONDS)
            with plain, suppress(OSError), self._context.wrap_socket(plain, server_side=True) as connection:
                self._talk(connection)

    def _talk(self, connection: ssl.SSLSocket) -> None:
        certificate = connection.getpeercert()
        serial = int(str(certificate["serialNumber"]), 16) if certificate else None
        websocket = WSConnection(ConnectionType.SERVER)
        while data := connection.recv(65536):
            websocket.receive_data(data)
            for event in websocket.events():
                if isinstance(event, CloseConnection):
                    if websocket.state is ConnectionState.REMOTE_CLOSING:
                        connection.sendall(websocket.send(event.response()))
                    return
                if isinstance(event, Request):
                    self._note(event, serial)
                    if not self._is_known(self.handshakes[-1]):
                        refusal = RejectConnection(status_code=401, headers=[(b"content-length", b"0")])
                        connection.sendall(websocket.send(refusal))
                        return
                    for answer in self._answers(event):
                        connection.sendall(websocket.send(answer))

    def _note(self, request: Request, serial: int | None) -> None:
        headers = tuple((name.decode(), value.decode()) for name, value in request.extra_headers)
        self.handshakes.append(Handshake(request.target, headers, serial))

    def _is_known(self, handshake: Handshake) -> bool:
        return handshake.values("authorization") in [[f"Bearer {token}"] for token in self.tokens]

    def _answers(self, request: Request) -> Iterator[Any]:
        yield AcceptConnection(subprotocol="v4.channel.k8s.io")
        if "portforward" in request.target:
            port = (80).to_bytes(2, "little")
            yield BytesMessage(b"\0" + port)
            yield BytesMessage(b"\1" + port)
            yield BytesMessage(b"\0" + self.greeting)
        else:
            yield BytesMessage(b"\1" + self.greeting)
            yield CloseConnection(1000)
