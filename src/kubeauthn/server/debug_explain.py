"""`POST /debug/explain`: every step of a token's way, as `kubeauthn explain` shows it.

It tells what a token holds and what the rules are. So it is there only where it was switched on, and only for peers on
loopback that did not come through a proxy. A browser's page is none: it may be anybody's, under a name that leads here.
"""

from __future__ import annotations

import json
from ipaddress import ip_address
from typing import TYPE_CHECKING

from kubeauthn.server.failures import failure, wrong_method
from kubeauthn.server.http_message import JSON, Response

if TYPE_CHECKING:
    from collections.abc import Mapping

    from kubeauthn.server.context import Context
    from kubeauthn.server.http_message import Handler, Request

_PROXIED = ("forwarded", "x-forwarded-for", "x-forwarded-host", "x-forwarded-proto", "x-real-ip", "via")
_FROM_A_PAGE = ("origin", "referer", "sec-fetch-site")


def routes(context: Context) -> Mapping[str, Handler]:
    if not context.options.debug_explain:
        return {}

    def explain(request: Request) -> Response:
        if not _is_local(request):
            return failure(404, "there is nothing at this path")
        if request.method != "POST":
            return wrong_method("POST")
        generation = context.runtime.current
        if generation is None:
            return failure(503, "no configuration is in force yet")
        token = request.body.decode("utf-8", "replace").strip()
        if not token:
            return failure(400, "expected a token as the body")
        trace = generation.authenticator.explain(token)
        shown = json.dumps(trace.as_dict(), default=str, ensure_ascii=False)
        return Response(200, [JSON, ("cache-control", "no-store")], shown.encode("utf-8", "backslashreplace"))

    return {"/debug/explain": explain}


def _is_local(request: Request) -> bool:
    if any(name in request.headers for name in (*_PROXIED, *_FROM_A_PAGE)):
        return False
    host = request.client.rpartition(":")[0].strip("[]")
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return False
