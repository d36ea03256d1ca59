"""A small server with a certificate of its own, for what stands beside a cluster in a test."""

from __future__ import annotations

import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Self

from kubeauthn.testing import CertificateAuthority

__all__ = ["Handler", "LoopbackHttps"]


class Handler(BaseHTTPRequestHandler):
    """Keeps connections and says nothing of them."""

    protocol_version = "HTTP/1.1"

    def body(self) -> bytes:
        return self.rfile.read(int(self.headers.get("Content-Length", "0")))

    def answer(self, status: int, content: bytes, content_type: str) -> None:
        self.send_response(status)
        self.send_header("Content-Type", content_type)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, *_: object) -> None: ...


class LoopbackHttps:
    """Serves until the `with` block ends; `ca` signed its certificate."""

    def __init__(self, name: str, handler: type[Handler]) -> None:
        self.ca = CertificateAuthority(f"{name} CA")
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
        self._server.socket = self.ca.server_context().wrap_socket(self._server.socket, server_side=True)
        self._thread = threading.Thread(target=self._server.serve_forever)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._server.shutdown()
        self._thread.join(10)
        self._server.server_close()

    @property
    def url(self) -> str:
        return f"https://127.0.0.1:{self._server.server_port}"
