"""Kubernetes' `Status` object: how the API server says no."""

from __future__ import annotations

from typing import Any

from kubeauthn.testing._http import Response

_REASONS = {
    400: "BadRequest",
    401: "Unauthorized",
    403: "Forbidden",
    404: "NotFound",
    405: "MethodNotAllowed",
    409: "Conflict",
    410: "Expired",
    415: "UnsupportedMediaType",
    422: "Invalid",
    429: "TooManyRequests",
    500: "InternalError",
    503: "ServiceUnavailable",
    504: "Timeout",
}


class ApiError(Exception):
    """A refusal that becomes a `Status` response."""

    def __init__(
        self, code: int, message: str, *, reason: str | None = None, details: dict[str, Any] | None = None
    ) -> None:
        super().__init__(message)
        self.code = code
        self.reason = reason or _REASONS.get(code, "")
        self.details = details

    def status(self) -> dict[str, Any]:
        document: dict[str, Any] = {
            "kind": "Status",
            "apiVersion": "v1",
            "metadata": {},
            "status": "Failure",
            "message": str(self),
            "code": self.code,
        }
        if self.reason:
            document["reason"] = self.reason
        if self.details is not None:
            document["details"] = self.details
        return document

    def response(self) -> Response:
        return Response.of_json(self.status(), self.code)


def unauthorized() -> ApiError:
    return ApiError(401, "Unauthorized")


def unknown_path() -> ApiError:
    return ApiError(404, "the server could not find the requested resource", details={})


def not_found(plural: str, name: str) -> ApiError:
    return ApiError(404, f'{plural} "{name}" not found', details={"name": name, "kind": plural})


def method_not_allowed() -> ApiError:
    return ApiError(405, "the server does not allow this method on the requested resource", details={})
