"""A loopback server that answers as badly as a test wants, over TLS."""

from __future__ import annotations

import json
import socket
from collections.abc import Callable, Iterable
from contextlib import suppress
from threading import Lock
from typing import Any

from kubeauthn.testing import CertificateAuthority
from kubeauthn.testing._http import BadRequest, HttpConnection, Request
from kubeauthn.testing._listener import Listener, handshake

Answer = Callable[[Request], bytes | Iterable[bytes]]
"""The raw bytes of the answer, head and all, perhaps piece by piece."""


class RoughServer:
    """Answers each path with what `routes` says; notes every request."""

    def __init__(self, ca: CertificateAuthority | None = None, *, tls: bool = True) -> None:
        self.ca = ca or CertificateAuthority("rough CA")
        self.routes: dict[str, Answer | bytes] = {}
        self.requests: list[Request] = []
        self.sent = 0
        self._lock = Lock()
        self._tls = tls

    def __enter__(self) -> RoughServer:
        context = self.ca.server_context() if self._tls else None
        self._listener = Listener(self._serve, name="rough server", context=context)
        self.port = self._listener.port
        self.url = f"{'https' if self._tls else 'http'}://127.0.0.1:{self.port}"
        return self

    def __exit__(self, *_: object) -> None:
        self._listener.stop()

    def paths(self) -> list[str]:
        return [request.path for request in self.requests]

    def _serve(self, connection: socket.socket) -> None:
        with suppress(OSError, BadRequest):
            http = HttpConnection(handshake(connection) if self._tls else connection)
            request = http.read_request()
            if request is None:
                return
            self.requests.append(request)
            answer = self.routes.get(request.path, reply(b"nothing here", status="404 Not Found"))
            if callable(answer):
                answer = answer(request)
            for piece in [answer] if isinstance(answer, bytes) else answer:
                http._socket.sendall(piece)
                with self._lock:
                    self.sent += len(piece)


def reply(body: bytes, *, status: str = "200 OK", content_type: str = "application/json", **headers: str) -> bytes:
    lines = [f"HTTP/1.1 {status}", f"Content-Type: {content_type}", f"Content-Length: {len(body)}", "Connection: close"]
    lines += [f"{name.replace('_', '-')}: {value}" for name, value in headers.items()]
    return ("\r\n".join(lines) + "\r\n\r\n").encode() + body


def json_reply(document: Any, **options: Any) -> bytes:
    return reply(json.dumps(document).encode(), **options)


def redirect(location: str) -> bytes:
    return reply(b"", status="302 Found", Location=location)
