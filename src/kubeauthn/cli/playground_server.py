"""The playground's own small server: loopback only, one page, one question.

A page of another site may not use it: requests must name this very server as their host (no other name that leads to
loopback will do) and, where a browser says whose page sent them, it must be ours. Nothing is logged: what is asked
holds tokens.
"""

from __future__ import annotations

import json
import time
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import BoundedSemaphore
from typing import Any

from kubeauthn.cli.playground_judge import judge
from kubeauthn.cli.playground_pages import documents, setting
from kubeauthn.errors import KubeauthnError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

ADDRESS = "127.0.0.1"
MOST_BYTES = 2 << 20
MOST_AT_ONCE = 4
MOST_CONNECTIONS = 64
SLOW_SECONDS = 10.0
_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self'; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
_HEADERS = {
    "Content-Security-Policy": _POLICY,
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cache-Control": "no-store",
}


class PlaygroundServer(ThreadingHTTPServer):
    """Listens on loopback; `serve_forever` until `shutdown`. `start` is what the page begins with."""

    daemon_threads = True
    request_queue_size = 64
    allow_reuse_port = False  # newer Pythons would let two share a port, and then neither is the one that is asked

    def __init__(
        self,
        port: int,
        clock: Callable[[], float],
        start: dict[str, str] | None = None,
        slow_seconds: float = SLOW_SECONDS,
    ) -> None:
        self.clock = clock
        self.start = start or {}
        self.slow_seconds = slow_seconds
        self.judging = BoundedSemaphore(MOST_AT_ONCE)
        self.connections = BoundedSemaphore(MOST_CONNECTIONS)
        self.documents = documents()
        super().__init__((ADDRESS, port), _Handler)
        port = self.server_address[1]
        self.hosts = {f"{name}:{port}" for name in (ADDRESS, "localhost")}
        self.origins = {f"http://{host}" for host in self.hosts}

    @property
    def url(self) -> str:
        return f"http://{ADDRESS}:{self.server_address[1]}/"

    def document(self, path: str) -> tuple[str, bytes] | None:
        """Media type and content."""
        if path == "/setting.json":
            return "application/json", setting(self.start, self.clock())
        return self.documents.get(path)

    def process_request_thread(self, request: Any, client_address: Any) -> None:
        if not self.connections.acquire(blocking=False):
            self.shutdown_request(request)
            return
        try:
            super().process_request_thread(request, client_address)
        finally:
            self.connections.release()

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A client that went away is nobody's fault, and what it sent is nobody's business."""


class _Handler(BaseHTTPRequestHandler):
    server: PlaygroundServer
    protocol_version = "HTTP/1.1"
    server_version = "kubeauthn"
    sys_version = ""

    def setup(self) -> None:
        super().setup()
        self.connection.settimeout(self.server.slow_seconds)

    def do_GET(self) -> None:
        if not self._is_ours():
            return
        document = self.server.document(self.path.partition("?")[0])
        if document is None:
            self._refuse(HTTPStatus.NOT_FOUND, "there is no such page")
        else:
            self._answer(HTTPStatus.OK, *document)

    def do_POST(self) -> None:
        if not self._is_ours():
            return
        length = self.headers.get("Content-Length", "")
        if self.path != "/judge":
            self._refuse(HTTPStatus.NOT_FOUND, "there is no such page")
        elif not (length.isascii() and length.isdecimal()) or self.headers.get("Transfer-Encoding"):
            self._refuse(HTTPStatus.LENGTH_REQUIRED, "a Content-Length is needed")
        elif len(length) > len(str(MOST_BYTES)) or int(length) > MOST_BYTES:
            self._refuse(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, f"at most {MOST_BYTES} bytes are read")
        elif self.headers.get_content_type() != "application/json":
            # no form of another page can say this
            self._refuse(HTTPStatus.UNSUPPORTED_MEDIA_TYPE, "application/json is expected")
        else:
            self._judge(self._body(int(length)))

    def _body(self, length: int) -> bytes:
        """Raises TimeoutError if it takes too long altogether, however often something comes."""
        ends = time.monotonic() + self.server.slow_seconds
        parts = []
        while length > 0:
            part = self.rfile.read1(length)
            if not part or time.monotonic() > ends:
                raise TimeoutError
            parts.append(part)
            length -= len(part)
        return b"".join(parts)

    def _judge(self, body: bytes) -> None:
        try:
            asked = json.loads(body)
            if not isinstance(asked, dict) or not all(isinstance(text, str) for text in asked.values()):
                raise ValueError
        except (ValueError, RecursionError):
            self._refuse(HTTPStatus.BAD_REQUEST, "a JSON object of texts is expected")
            return
        try:
            with self.server.judging:
                answer = json.dumps(judge(asked, self.server.clock()), default=str)
        except KubeauthnError as error:
            self._refuse(HTTPStatus.BAD_REQUEST, str(error))
        except RecursionError:
            self._refuse(HTTPStatus.BAD_REQUEST, "nested too deeply to be shown")
        else:
            self._answer(HTTPStatus.OK, "application/json", answer.encode())

    def _is_ours(self) -> bool:
        """Whether the browser was led here by this server's own page, its address bar or a link to the page."""
        origin = self.headers.get("Origin")
        asked_by = self.headers.get("Sec-Fetch-Site", "none")
        followed_a_link = (
            self.command == "GET"
            and self.headers.get("Sec-Fetch-Mode") == "navigate"
            and self.headers.get("Sec-Fetch-Dest") == "document"
        )
        by_us = asked_by in ("none", "same-origin") or followed_a_link
        if self.headers.get_all("Host", []) not in [[host] for host in self.server.hosts]:
            self._refuse(HTTPStatus.MISDIRECTED_REQUEST, f"this is {self.server.url}")
        elif not by_us or (origin is not None and origin not in self.server.origins):
            self._refuse(HTTPStatus.FORBIDDEN, "pages of other origins may not ask")
        else:
            return True
        return False

    def _refuse(self, status: HTTPStatus, text: str) -> None:
        self.close_connection = True  # what is left of the body is not read
        self._answer(status, "application/json", json.dumps({"error": text}).encode())

    def send_error(self, code: int, message: str | None = None, explain: str | None = None) -> None:
        """What the base class says about requests that it cannot read would repeat them."""
        status = HTTPStatus(code)
        self._refuse(status, status.phrase.lower())

    def _answer(self, status: HTTPStatus, kind: str, body: bytes) -> None:
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        for name, value in _HEADERS.items():
            self.send_header(name, value)
        if self.close_connection:
            self.send_header("Connection", "close")
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: Any) -> None:
        """Never: see above."""
