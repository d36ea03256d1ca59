"""What stands before some managed clusters: it checks a request's signature, and tells the API server whose it is."""

from __future__ import annotations

import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Self

from kubeauthn.testing import CertificateAuthority
from tests.e2e.cluster import Cluster
from tests.integration.test_proxy_references import verify

__all__ = ["SignatureFront"]

_OWN = ("host", "authorization", "connection", "content-length", "transfer-encoding", "accept-encoding")


class SignatureFront:
    """Only requests whose signature is right go on, as the user `user`."""

    def __init__(self, cluster: Cluster, user: str) -> None:
        self.ca = CertificateAuthority("front CA")
        self.refused = 0
        front = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_GET(self) -> None:
                body = self.rfile.read(int(self.headers.get("Content-Length", "0")))
                headers = {name.lower(): value for name, value in self.headers.items()}
                if not front.believes(self.command, self.path, headers, body):
                    front.refused += 1
                    self.send_error(403)
                    return
                kept = {name: value for name, value in headers.items() if name not in _OWN and name[:6] != "x-amz-"}
                server = cluster.connection()
                server.request(self.command, self.path, body, {**kept, "Impersonate-User": user})
                answer = server.getresponse()
                content = answer.read()
                self.send_response(answer.status)
                self.send_header("Content-Type", answer.headers["Content-Type"])
                self.send_header("Content-Length", str(len(content)))
                self.end_headers()
                self.wfile.write(content)
                server.close()

            do_POST = do_PUT = do_DELETE = do_GET

            def log_message(self, *_: object) -> None: ...

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.socket = self.ca.server_context().wrap_socket(self._server.socket, server_side=True)
        self._thread = threading.Thread(target=self._server.serve_forever)

    @staticmethod
    def believes(method: str, target: str, headers: dict[str, str], body: bytes) -> bool:
        try:
            return verify(method, target, headers, body)
        except (AssertionError, KeyError, ValueError):
            return False

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
