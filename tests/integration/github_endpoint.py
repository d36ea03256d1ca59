"""The address at which a job of GitHub Actions asks for its id token."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, urlsplit

from kubeauthn.testing import Issuer

__all__ = ["AUDIENCE", "PERMIT", "Endpoint", "serving_endpoint"]

AUDIENCE = "my-cluster"
PERMIT = "s3cret-permit"


class Endpoint:
    """Gives the job's token to who brings the permit; `answers` come first, each once."""

    def __init__(self, issuer: Issuer) -> None:
        self.issuer = issuer
        self.address = ""
        self.answers: list[tuple[int, bytes]] = []
        self.asked: list[dict[str, list[str]]] = []
        self.given: list[str] = []
        self.times: dict[str, Any] = {"expires_in": 300}
        self.location = ""

    @property
    def variables(self) -> dict[str, str]:
        """What a job has in its environment."""
        return {"ACTIONS_ID_TOKEN_REQUEST_URL": self.address, "ACTIONS_ID_TOKEN_REQUEST_TOKEN": PERMIT}

    def answer(self, path: str, authorization: str | None) -> tuple[int, bytes]:
        self.asked.append(parse_qs(urlsplit(path).query))
        if authorization != f"Bearer {PERMIT}":
            return 401, b"{}"
        if self.answers:
            return self.answers.pop(0)
        token = self.issuer.token("repo:octo/shop:ref:refs/heads/main", audience=AUDIENCE, **self.times)
        self.given.append(token)
        return 200, json.dumps({"count": len(token), "value": token}).encode()


@contextmanager
def serving_endpoint() -> Iterator[Endpoint]:
    with Issuer() as issuer:
        endpoint = Endpoint(issuer)

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                status, body = endpoint.answer(self.path, self.headers.get("Authorization"))
                self.send_response(status)
                self.send_header("Content-Length", str(len(body)))
                if endpoint.location:
                    self.send_header("Location", endpoint.location)
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *args: object) -> None:
                """Nothing to say."""

        with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
            thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
            thread.start()
            endpoint.address = f"http://127.0.0.1:{server.server_address[1]}/_apis/token?api-version=2.0"
            yield endpoint
            server.shutdown()
            thread.join(5)
