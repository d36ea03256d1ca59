"""What a request is told that cannot be answered, in the form of a Kubernetes Status."""

from __future__ import annotations

import json

from kubeauthn.server import limits
from kubeauthn.server.http_message import JSON, Response

_REASONS = {400: "BadRequest", 404: "NotFound", 405: "MethodNotAllowed", 408: "Timeout", 413: "RequestEntityTooLarge"}
_REASONS |= {415: "UnsupportedMediaType", 429: "TooManyRequests", 431: "RequestHeaderFieldsTooLarge"}
_REASONS |= {500: "InternalError", 503: "ServiceUnavailable"}


def failure(status: int, message: str, *headers: tuple[str, str]) -> Response:
    body = {
        "kind": "Status",
        "apiVersion": "v1",
        "metadata": {},
        "status": "Failure",
        "message": message,
        "reason": _REASONS.get(status, ""),
        "code": status,
    }
    return Response(status, [JSON, *headers], json.dumps(body).encode())


def too_many_headers() -> Response:
    return failure(431, f"expected at most {limits.HEADERS} headers")


def wrong_method(*allowed: str) -> Response:
    return failure(405, f"expected {' or '.join(allowed)}", ("allow", ", ".join(allowed)))
