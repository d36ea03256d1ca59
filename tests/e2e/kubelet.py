"""A kubelet as far as kube-apiserver talks to one: logs, exec, attach and port-forward of pods that are only programs.

It is the end of the line for streams that the real kube-apiserver carries: behind a Node that says so it is asked by
WebSocket, behind any other by SPDY.
"""

from __future__ import annotations

import dataclasses
import socket
import ssl
import zlib
from types import TracebackType
from typing import Any, Self

from kubeauthn.testing import CertificateAuthority
from kubeauthn.testing._http import BadRequest, HttpConnection, Request, Response
from kubeauthn.testing._listener import Listener, handshake
from kubeauthn.testing._spdy import SpdyError
from kubeauthn.testing._status import ApiError
from kubeauthn.testing._upgrade import Upgrade
from kubeauthn.testing._websocket import WebSocketError

__all__ = ["LOG_LINES", "Kubelet"]

LOG_LINES = [f"line {number} of the log" for number in range(500)]
_KINDS = {"exec": "exec", "attach": "attach", "portForward": "portforward"}
# what the API calls stdin is input here, and so on
_NAMES = {"input": "stdin", "output": "stdout", "error": "stderr", "port": "ports"}


class Kubelet:
    """Serves whoever has a client certificate of the cluster's CA, and remembers who asked for what, and how."""

    def __init__(self, ca: CertificateAuthority) -> None:
        self._context = ca.server_context()
        self._context.verify_mode = ssl.CERT_REQUIRED
        self._context.load_verify_locations(cadata=ca.certificate_pem.decode())
        self.asked: list[tuple[str, str, str]] = []
        """Common name of the client, path, and the protocol of the upgrade."""
        self._listener: Listener | None = None

    def __enter__(self) -> Self:
        self._listener = Listener(self._serve, name="stub kubelet", context=self._context)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        assert self._listener is not None
        self._listener.stop()

    def node(self, name: str, features: list[str]) -> dict[str, Any]:
        """The Node that leads kube-apiserver here."""
        assert self._listener is not None
        status = {
            "addresses": [{"type": "InternalIP", "address": "127.0.0.1"}],
            "daemonEndpoints": {"kubeletEndpoint": {"Port": self._listener.port}},
            "declaredFeatures": features,
        }
        return {"apiVersion": "v1", "kind": "Node", "metadata": {"name": name}, "status": status}

    def _serve(self, connection: socket.socket) -> None:
        try:
            secured = handshake(connection)
            subject = (secured.getpeercert() or {}).get("subject", ())
            name = next((value for ((key, value),) in subject if key == "commonName"), "")
            http = HttpConnection(secured)
            while (request := http.read_request()) is not None:
                self.asked.append((name, request.path, (request.header("upgrade") or "").lower()))
                answer = self._answer(request)
                if isinstance(answer, Upgrade):
                    answer.serve(secured, http)
                    return
                http.write_response(answer, keep_alive=request.keep_alive)
        except (OSError, BadRequest, SpdyError, WebSocketError, zlib.error):
            pass  # the peer is gone, or speaks something else: either ends the connection

    def _answer(self, request: Request) -> Response | Upgrade:
        _, what, *_ = request.path.split("/")
        if what == "containerLogs":
            lines = LOG_LINES[-int(request.query.get("tailLines", len(LOG_LINES))) :]
            return Response(200, "".join(f"{line}\n" for line in lines).encode(), "text/plain")
        if what not in _KINDS:
            return Response(404)
        pairs = tuple((_NAMES.get(name, name), value) for name, value in request.pairs)
        try:
            return Upgrade(_KINDS[what], dataclasses.replace(request, pairs=pairs, query=dict(reversed(pairs))))
        except ApiError as error:
            return error.response()
