"""`/healthz`, `/livez`, `/readyz`: is the process there, and can it decide about tokens of its issuers."""

from __future__ import annotations

from typing import TYPE_CHECKING
from urllib.parse import parse_qs

from kubeauthn.server.failures import wrong_method
from kubeauthn.server.http_message import TEXT, Response

if TYPE_CHECKING:
    from collections.abc import Mapping

    from kubeauthn.server.context import Context
    from kubeauthn.server.http_message import Handler, Request

_NO_STORE = ("cache-control", "no-store")


def routes(context: Context) -> Mapping[str, Handler]:
    readiness = Readiness(context)
    return {"/healthz": alive, "/livez": alive, "/readyz": readiness}


def alive(request: Request) -> Response:
    """The process answers. An issuer that is down is no reason to start it again."""
    if request.method not in ("GET", "HEAD"):
        return wrong_method("GET", "HEAD")
    if _verbose(request):
        return Response(200, [TEXT, _NO_STORE], f"[+]ping ok\n{request.path[1:]} check passed\n".encode())
    return Response(200, [TEXT, _NO_STORE], b"ok")


class Readiness:
    """Per issuer: has it keys? With policy `all` each of them must, with `any` one is enough."""

    def __init__(self, context: Context) -> None:
        self._runtime = context.runtime
        self._policy = context.options.ready_policy

    def __call__(self, request: Request) -> Response:
        if request.method not in ("GET", "HEAD"):
            return wrong_method("GET", "HEAD")
        ready, lines = self._state()
        if _verbose(request) or not ready:
            lines.append(f"readyz check {'passed' if ready else 'failed'}")
            body = "\n".join(lines) + "\n"
        else:
            body = "ok"
        return Response(200 if ready else 503, [TEXT, _NO_STORE], body.encode())

    def _state(self) -> tuple[bool, list[str]]:
        generation = self._runtime.current
        if generation is None:
            return False, ["[-]configuration failed: none is in force yet"]
        lines = [f"[+]configuration ok: {generation.configuration.source}"]
        healthy = []
        for url, keys in generation.keys.items():
            has_keys = keys.keys_at_hand() is not None
            healthy.append(has_keys)
            if not has_keys:
                lines.append(f"[-]issuer {url} failed: {keys.status.failure or 'no answer yet'}")
            elif keys.from_store:
                lines.append(f"[+]issuer {url} ok, with kept keys: {keys.status.failure or 'no answer yet'}")
            elif keys.status.failure:
                lines.append(f"[+]issuer {url} ok, with earlier keys: {keys.status.failure}")
            else:
                lines.append(f"[+]issuer {url} ok")
        enough = all if self._policy == "all" else any
        return not healthy or enough(healthy), lines


def _verbose(request: Request) -> bool:
    return "verbose" in parse_qs(request.query, keep_blank_values=True)
