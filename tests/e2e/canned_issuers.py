"""Many issuers behind one loopback address: each document is at a path, and says what a test put there."""

from __future__ import annotations

import json
import socket
from types import TracebackType
from typing import Any, Self

from kubeauthn.testing import CertificateAuthority
from kubeauthn.testing._http import BadRequest, HttpConnection, Response
from kubeauthn.testing._listener import Listener, handshake

__all__ = ["CannedIssuers"]


class CannedIssuers:
    """Serves documents over TLS. `put` may be called at any time."""

    def __init__(self) -> None:
        self.ca = CertificateAuthority("canned issuers CA")
        self._documents: dict[str, Response] = {}
        self._listener: Listener | None = None

    def __enter__(self) -> Self:
        self._listener = Listener(self._serve, name="canned issuers", context=self.ca.server_context())
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        assert self._listener is not None
        self._listener.stop()

    @property
    def url(self) -> str:
        assert self._listener is not None
        return f"https://127.0.0.1:{self._listener.port}"

    def put(self, path: str, body: str, content_type: str = "application/json", status: int = 200) -> str:
        """The address of the document."""
        self._documents[path] = Response(status, body.encode(), content_type)
        return f"{self.url}{path}"

    def put_issuer(self, path: str, issuer: str, jwks: Any) -> str:
        """Keys and a discovery document for an issuer of any name; the address of the latter."""
        keys = self.put(f"{path}/keys", json.dumps(jwks))
        discovery = {
            "issuer": issuer,
            "jwks_uri": keys,
            "response_types_supported": ["id_token"],
            "subject_types_supported": ["public"],
            "id_token_signing_alg_values_supported": ["RS256"],
        }
        return self.put(f"{path}/discovery", json.dumps(discovery))

    def _serve(self, connection: socket.socket) -> None:
        try:
            http = HttpConnection(handshake(connection))
            while (request := http.read_request()) is not None:
                answer = self._documents.get(request.path, Response(404))
                http.write_response(answer, keep_alive=request.keep_alive)
                if not request.keep_alive:
                    return
        except (OSError, BadRequest):
            pass  # the peer is gone, or does not speak HTTP: either ends the connection
