"""The application by itself: its ASGI interface, what it reads at most, and what it never tells."""

from __future__ import annotations

import asyncio
import json
import tracemalloc
from typing import Any

import pytest

from kubeauthn.server import UserInfo, limits
from kubeauthn.server.application import Application
from kubeauthn.server.context import Context, ServeOptions
from kubeauthn.server.decisions import Decision
from kubeauthn.server.http_message import GivenScope, HeaderList, Request, Response
from kubeauthn.server.metrics import Registry
from kubeauthn.server.runtime import Runtime
from kubeauthn.server.token_review import routes

JANE = Decision("authenticated", UserInfo("jane"), "", "", "https://i.test", None, 9e9, True, {})
LATER = Decision("refused", None, "the token is expired", "s3cret", "https://i.test", "TokenExpired", None, False)
V1 = "authentication.k8s.io/v1"


class Decisions:
    """Knows `jane` at once and `later` after a wait, and fails for `broken` as nobody foresaw."""

    def decide_now(self, token: str) -> Decision | None:
        if token == "broken":
            raise ZeroDivisionError(token * 3)
        return {"jane": JANE, "later": None}[token]

    async def decide(self, token: str) -> Decision:
        return LATER


def application(**options: Any) -> tuple[Application, Registry]:
    metrics = Registry()
    context = Context(Decisions(), ServeOptions(**options), metrics, Runtime())
    return Application(routes(context), metrics), metrics


def asked(
    app: Application, *parts: bytes, method: str = "POST", path: str = "/", headers: dict[str, str] | None = None
) -> tuple[int, dict[str, str], bytes]:
    """One request over ASGI, its body in `parts`; without any the client is gone."""
    messages = [{"type": "http.request", "body": part, "more_body": True} for part in parts]
    if messages:
        messages[-1]["more_body"] = False
    else:
        messages = [{"type": "http.disconnect"}]
    pairs = [(name.encode(), value.encode()) for name, value in (headers or {}).items()]
    scope = {"type": "http", "method": method, "path": path, "headers": pairs, "client": ("127.0.0.1", 5)}
    sent: list[dict[str, Any]] = []

    async def receive() -> dict[str, Any]:
        return messages.pop(0)

    async def send(message: dict[str, Any]) -> None:
        sent.append(message)

    asyncio.run(app(scope, receive, send))
    start, body = sent
    told = {name.decode(): value.decode() for name, value in start["headers"]}
    return start["status"], told, body["body"]


def review(token: str, **spec: Any) -> bytes:
    return json.dumps({"apiVersion": V1, "kind": "TokenReview", "spec": {"token": token, **spec}}).encode()


def test_a_thousand_headers_over_asgi():
    app, _ = application()
    many = {f"x-{number}": "y" for number in range(1000)}
    assert asked(app, review("jane"), headers=many)[0] == 431
    assert asked(app, review("jane"), headers=dict(list(many.items())[:100]))[0] == 200


def test_a_review_over_asgi_in_one_part_and_in_many():
    app, _ = application()
    whole = review("jane")
    for parts in ([whole], [whole[:7], b"", whole[7:]]):
        status, headers, body = asked(app, *parts)
        assert (status, headers["content-type"]) == (200, "application/json")
        assert json.loads(body)["status"] == {"authenticated": True, "user": {"username": "jane"}}


def test_a_decision_that_has_to_be_waited_for_and_its_request_id():
    app, _ = application(show_reasons=True)
    status, headers, body = asked(app, review("later"))
    assert status == 200
    assert json.loads(body)["status"] == {"authenticated": False, "error": "the token is expired"}
    assert headers["x-request-id"]
    assert b"s3cret" not in body


@pytest.mark.parametrize(
    ("parts", "headers", "status"),
    [
        ([b"{}"], {"content-length": "five"}, 400),
        ([b"{}"], {"content-length": "9" * 40}, 400),
        ([b"{}"], {"content-length": "٣"}, 400),
        ([b"{}"], {"content-length": str(limits.BODY_BYTES + 1)}, 413),
        ([b" " * limits.BODY_BYTES, b" "], {}, 413),
        ([], {}, 400),
        ([b"{}"], {"content-type": "text/plain"}, 415),
    ],
)
def test_bodies_that_are_not_read(parts: list[bytes], headers: dict[str, str], status: int):
    app, _ = application()
    if any(not value.isascii() for value in headers.values()):
        headers = {name: value.encode().decode("latin-1") for name, value in headers.items()}
    assert asked(app, *parts, headers=headers)[0] == status


def test_of_a_body_of_100_megabytes_no_more_is_taken_than_may_be_read():
    app, _ = application()
    taken, sent = 0, []

    async def receive() -> dict[str, Any]:
        nonlocal taken
        taken += 1
        return {"type": "http.request", "body": b"x" * 65536, "more_body": taken * 65536 < 100_000_000}

    async def send(message: dict[str, Any]) -> None:
        sent.append(message)

    headers = [(b"content-type", b"application/json")]
    scope = {"type": "http", "method": "POST", "path": "/", "headers": headers, "client": ("127.0.0.1", 5)}
    tracemalloc.start()
    try:
        asyncio.run(app(scope, receive, send))
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert sent[0]["status"] == 413
    assert taken * 65536 == limits.BODY_BYTES + 65536
    assert peak < 2 * limits.BODY_BYTES


def test_an_error_that_nobody_foresaw_tells_nothing(caplog: pytest.LogCaptureFixture):
    app, _ = application()
    status, _, body = asked(app, review("broken"))
    assert status == 500
    assert b"broken" not in body
    assert "brokenbroken" not in caplog.text
    assert "ZeroDivisionError" in caplog.text


def test_paths_and_methods_that_are_made_up_make_no_series():
    app, metrics = application()
    for number in range(50):
        assert asked(app, b"", path=f"/made-up-{number}", method=f"M{number}")[0] == 404
    assert asked(app, b"", method="BREW")[0] == 405
    text = metrics.text()
    assert 'kubeauthn_http_requests_total{path="other",code="404"} 50' in text
    assert "made-up" not in text
    assert "BREW" not in text


def test_head_has_no_body_and_a_websocket_is_closed():
    app, _ = application()
    assert asked(app, b"", method="HEAD")[2] == b""
    sent: list[dict[str, Any]] = []

    async def send(message: dict[str, Any]) -> None:
        sent.append(message)

    asyncio.run(app({"type": "websocket"}, None, send))
    assert sent == [{"type": "websocket.close", "code": 1000}]


def test_the_lifespan_is_answered():
    app, _ = application()
    messages = [{"type": "lifespan.startup"}, {"type": "lifespan.shutdown"}]
    sent: list[str] = []

    async def receive() -> dict[str, str]:
        return messages.pop(0)

    async def send(message: dict[str, str]) -> None:
        sent.append(message["type"])

    asyncio.run(app({"type": "lifespan"}, receive, send))
    assert sent == ["lifespan.startup.complete", "lifespan.shutdown.complete"]


def test_answers_that_are_kept_are_few_however_many_audiences_are_asked_for():
    audiences = tuple(f"a{number}" for number in range(10))
    app, _ = application(api_audiences=audiences)
    for number in range(200):
        chosen = [audience for bit, audience in enumerate(audiences) if number >> bit & 1] or ["a0"]
        assert json.loads(asked(app, review("jane", audiences=chosen))[2])["status"]["audiences"] == chosen
    assert JANE.answers is not None
    assert 0 < len(JANE.answers) <= 4


def test_what_is_printed_of_a_request_holds_no_token():
    request = Request("POST", "/", HeaderList([("authorization", "Bearer s3cret")]), b"s3cret", GivenScope("s3cret"))
    assert "s3cret" not in repr(request)
    assert Response(200, []).body == b""
