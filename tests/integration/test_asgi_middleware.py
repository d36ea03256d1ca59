"""The middleware in Starlette and FastAPI, WebSockets among them, with an issuer that is asked for its keys."""

from __future__ import annotations

import asyncio
import importlib.util
import json
import os
import socket
import subprocess
import sys
import textwrap
from base64 import urlsafe_b64encode
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx2
import pytest
from starlette.applications import Starlette
from starlette.authentication import requires
from starlette.requests import Request
from starlette.responses import JSONResponse
from starlette.routing import Route, WebSocketRoute
from starlette.testclient import TestClient, WebSocketDenialResponse
from starlette.websockets import WebSocket, WebSocketDisconnect

from kubeauthn.errors import AuthenticationConfigError, EnvironmentFailure, UsageError
from kubeauthn.server import Authenticator, load_configuration
from kubeauthn.server.asgi import AuthenticationMiddleware
from kubeauthn.server.websocket_expiry import UNAUTHORIZED
from kubeauthn.testing import Issuer
from tests.integration.serve_process import until

ROOT = Path(__file__).resolve().parents[2]
PREFIX = "base64url.bearer.authorization.k8s.io."


@pytest.fixture(scope="module")
def issuer() -> Iterator[Issuer]:
    with Issuer() as issuer:
        yield issuer


def configuration(issuer: Issuer, anonymous: str = "{enabled: true, conditions: [{path: /healthz}]}") -> str:
    return "\n".join(
        [
            "apiVersion: apiserver.config.k8s.io/v1",
            "kind: AuthenticationConfiguration",
            f"anonymous: {anonymous}",
            "jwt:",
            "- issuer:",
            f"    url: {issuer.url}",
            "    audiences: [kubernetes]",
            "    certificateAuthority: |",
            textwrap.indent(issuer.ca.certificate_pem.decode(), " " * 6),
            "  claimMappings:",
            '    username: {claim: sub, prefix: ""}',
            '    groups: {claim: groups, prefix: ""}',
        ]
    )


async def who(request: Request) -> JSONResponse:
    user = request.user
    return JSONResponse({"name": user.display_name, "in": user.is_authenticated, "groups": list(user.groups)})


@requires("group:admins", status_code=403)
async def admin(request: Request) -> JSONResponse:
    return JSONResponse({})


@requires("authenticated", status_code=403)
async def inside(request: Request) -> JSONResponse:
    return JSONResponse({})


async def echo(websocket: WebSocket) -> None:
    await websocket.accept(subprotocol=next(iter(websocket.scope["subprotocols"]), None))
    headers = [[name, value] for name, value in websocket.headers.items()]
    await websocket.send_json({"name": websocket.user.username, "headers": headers})
    async for text in websocket.iter_text():
        await websocket.send_text(text)


ROUTES = [Route("/who", who), Route("/healthz", who), Route("/admin", admin), Route("/inside", inside)]


def client(issuer: Issuer, **options: Any) -> TestClient:
    app = Starlette(routes=[*ROUTES, WebSocketRoute("/echo", echo)])
    if "authenticator" not in options:
        options.setdefault("config", configuration(issuer))
        options.setdefault("keys", {issuer.url: issuer.jwks()})
    app.add_middleware(AuthenticationMiddleware, **options)
    return TestClient(app)


def bearer(token: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {token}"}


def test_the_user_is_in_the_request(issuer: Issuer):
    answer = client(issuer).get("/who", headers=bearer(issuer.token("jane", groups=["dev"])))
    assert answer.json() == {"name": "jane", "in": True, "groups": ["dev"]}


def test_requires_sees_groups(issuer: Issuer):
    api = client(issuer)
    assert api.get("/admin", headers=bearer(issuer.token("jane", groups=["dev", "authenticated"]))).status_code == 403
    assert api.get("/admin", headers=bearer(issuer.token("jane", groups=["admins"]))).status_code == 200


def test_who_has_no_good_token_is_told_so(issuer: Issuer):
    api = client(issuer)
    answer = api.get("/who")
    assert (answer.status_code, answer.headers["www-authenticate"]) == (401, 'Bearer realm="kubeauthn"')
    expired = api.get("/who", headers=bearer(issuer.token("jane", expires_in=-60)))
    assert expired.status_code == 401
    assert 'error_description="the token is expired"' in expired.headers["www-authenticate"]
    assert api.get("/who", headers=bearer("opaque")).status_code == 401
    twice = api.get("/who", headers=[("authorization", "Bearer a"), ("authorization", "Bearer b")])
    assert 'error="invalid_request"' in twice.headers["www-authenticate"]


def test_anonymous_paths(issuer: Issuer):
    api = client(issuer)
    answer = api.get("/healthz")
    assert answer.json() == {"name": "system:anonymous", "in": False, "groups": ["system:unauthenticated"]}
    assert api.get("/healthz/").status_code == 401
    assert api.get("/healthz", headers=bearer("bad")).status_code == 401
    everywhere = client(issuer, config=configuration(issuer, "{enabled: true}"))
    assert everywhere.get("/who").json()["name"] == "system:anonymous"
    assert everywhere.get("/inside").status_code == 403
    assert client(issuer, config=configuration(issuer, "{enabled: false}")).get("/healthz").status_code == 401


def test_without_required_nobody_is_nobody_and_a_bad_token_is_still_refused(issuer: Issuer):
    api = client(issuer, required=False)
    assert api.get("/who").json() == {"name": "", "in": False, "groups": []}
    assert api.get("/inside").status_code == 403
    assert api.get("/inside", headers=bearer(issuer.token("jane"))).status_code == 200
    assert api.get("/who", headers=bearer("bad")).status_code == 401


def test_a_file_a_loaded_configuration_and_an_authenticator_are_taken(issuer: Issuer, tmp_path: Path):
    path = tmp_path / "authn.yaml"
    path.write_text(configuration(issuer))
    keys = {issuer.url: issuer.jwks()}
    loaded = load_configuration(configuration(issuer))
    headers = bearer(issuer.token("jane"))
    assert client(issuer, config=path).get("/who", headers=headers).status_code == 200
    assert client(issuer, config=loaded).get("/who", headers=headers).status_code == 200
    assert client(issuer, authenticator=Authenticator(loaded, keys)).get("/who", headers=headers).status_code == 200


def test_what_does_not_fit_together_is_refused(issuer: Issuer, tmp_path: Path):
    async def app(*parts: Any) -> None: ...

    authenticator = Authenticator(load_configuration(configuration(issuer)), keys={})
    with pytest.raises(UsageError):
        AuthenticationMiddleware(app)
    with pytest.raises(UsageError):
        AuthenticationMiddleware(app, configuration(issuer), authenticator=authenticator)
    with pytest.raises(UsageError):
        AuthenticationMiddleware(app, authenticator=authenticator, keys={})
    with pytest.raises(EnvironmentFailure):
        AuthenticationMiddleware(app, tmp_path / "none.yaml")
    with pytest.raises(AuthenticationConfigError):
        AuthenticationMiddleware(app, "kind: Nothing")
    with pytest.raises(UsageError, match="scope"):
        asyncio.run(AuthenticationMiddleware(app, authenticator=authenticator)({"type": "other"}, app, app))


# -- keys -----------------------------------------------------------------------------------------


def test_the_lifespan_fetches_the_keys_and_a_token_without_it_does_too():
    with Issuer() as fresh:
        api = client(fresh, keys=None)
        token = fresh.token("jane")
        with api:
            for _ in range(200):
                if any(request.path == "/keys" for request in fresh.requests):
                    break
                api.get("/healthz")
            assert [request.path for request in fresh.requests][-1:] == ["/keys"]
            assert api.get("/who", headers=bearer(token)).status_code == 200
        fresh.requests.clear()
        assert client(fresh, keys=None).get("/who", headers=bearer(token)).status_code == 200
        assert fresh.requests


def test_an_issuer_that_cannot_be_asked_is_503():
    with Issuer() as gone:
        text, token = configuration(gone), gone.token("jane")
    app = Starlette(routes=ROUTES)
    app.add_middleware(AuthenticationMiddleware, config=text)
    answer = TestClient(app).get("/who", headers=bearer(token))
    assert answer.status_code == 503
    assert answer.headers["retry-after"] == "5"


# -- websockets -----------------------------------------------------------------------------------


def in_protocol(token: str) -> str:
    return PREFIX + urlsafe_b64encode(token.encode()).rstrip(b"=").decode()


def test_a_websocket_with_a_header(issuer: Issuer):
    with client(issuer).websocket_connect("/echo", headers=bearer(issuer.token("jane"))) as chat:
        assert chat.receive_json()["name"] == "jane"
        chat.send_text("hello")
        assert chat.receive_text() == "hello"


def test_a_websocket_with_the_token_in_a_subprotocol_which_the_application_does_not_see(issuer: Issuer):
    token = issuer.token("jane")
    offered = ["chat", in_protocol(token)]
    with client(issuer).websocket_connect("/echo", subprotocols=offered) as chat:
        assert chat.accepted_subprotocol == "chat"
        said = chat.receive_json()
        assert said["name"] == "jane"
        assert PREFIX not in json.dumps(said)


@pytest.mark.parametrize(
    ("subprotocols", "headers"),
    [
        ([], {}),
        (["chat"], {"Authorization": "Bearer bad"}),
        (["chat", PREFIX + "YmFk"], {}),
        (["chat", PREFIX + "*"], {}),
        (["GOOD"], {}),
        (["chat", "GOOD"], {"Authorization": "Bearer GOOD"}),
    ],
    ids=["no token", "bad header", "bad token", "no base64url", "no other protocol", "two tokens"],
)
def test_a_websocket_is_refused_before_it_is_accepted(issuer: Issuer, subprotocols: list[str], headers: dict[str, str]):
    token = issuer.token("jane")
    offered = [in_protocol(token) if name == "GOOD" else name for name in subprotocols]
    sent = {name: value.replace("GOOD", token) for name, value in headers.items()}
    with pytest.raises(WebSocketDenialResponse) as refused:
        with client(issuer).websocket_connect("/echo", subprotocols=offered, headers=sent):
            pytest.fail("it was accepted")
    assert refused.value.status_code == 401
    assert refused.value.headers["www-authenticate"].startswith("Bearer ")


def test_a_server_without_denial_responses_is_sent_a_close(issuer: Issuer):
    sent: list[Any] = []

    async def app(*parts: Any) -> None:
        pytest.fail("the application was reached")

    async def receive() -> dict[str, Any]:
        return {"type": "websocket.connect"}

    async def send(message: Any) -> None:
        sent.append(message)

    middleware = AuthenticationMiddleware(app, configuration(issuer), keys={})
    asyncio.run(middleware({"type": "websocket", "path": "/echo", "headers": []}, receive, send))
    assert [message["type"] for message in sent] == ["websocket.close"]
    assert sent[0]["code"] == 1008


def test_a_websocket_ends_with_its_token(issuer: Issuer):
    token = issuer.token("jane", expires_in=2)
    with client(issuer).websocket_connect("/echo", headers=bearer(token)) as chat:
        assert chat.receive_json()["name"] == "jane"
        with pytest.raises(WebSocketDisconnect) as ended:
            chat.receive_text()
        assert ended.value.code == UNAUTHORIZED


# -- a real server --------------------------------------------------------------------------------


def handshake(port: int, *headers: str) -> str:
    """The first line of the answer to a WebSocket's opening."""
    lines = [
        "GET /updates HTTP/1.1",
        "Host: 127.0.0.1",
        "Connection: Upgrade",
        "Upgrade: websocket",
        "Sec-WebSocket-Version: 13",
        "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==",
        *headers,
    ]
    with socket.create_connection(("127.0.0.1", port), timeout=20) as connection:
        connection.sendall("\r\n".join([*lines, "", ""]).encode())
        return connection.recv(4096).decode("latin-1").partition("\r\n")[0]


def test_the_example_served_by_granian(issuer: Issuer, tmp_path: Path):
    path = tmp_path / "authn.yaml"
    path.write_text(configuration(issuer))
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = int(probe.getsockname()[1])
    command = [sys.executable, "-m", "granian", "--interface", "asgi", "--port", str(port), "fastapi_app:app"]
    environment = {**os.environ, "AUTHN_CONFIG": str(path)}
    with (tmp_path / "log").open("wb") as log:
        process = subprocess.Popen(command, cwd=ROOT / "examples/services", env=environment, stdout=log, stderr=log)
    try:
        until(lambda: _answers(port), "the example listens")
        base, token = f"http://127.0.0.1:{port}", issuer.token("jane")
        assert httpx2.get(base + "/me", headers=bearer(token), trust_env=False).json()["name"] == "jane"
        assert httpx2.get(base + "/me", trust_env=False).status_code == 401
        assert handshake(port).split()[1] in ("401", "403")
        assert handshake(port, "Authorization: Bearer bad").split()[1] in ("401", "403")
        assert handshake(port, f"Authorization: Bearer {token}").split()[1] == "101"
        assert handshake(port, f"Sec-WebSocket-Protocol: chat, {in_protocol(token)}").split()[1] == "101"
    finally:
        process.terminate()
        process.wait(20)


def _answers(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


# -- the example ----------------------------------------------------------------------------------


def test_the_fastapi_example(issuer: Issuer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    path = tmp_path / "authn.yaml"
    path.write_text(configuration(issuer))
    monkeypatch.setenv("AUTHN_CONFIG", str(path))
    spec = importlib.util.spec_from_file_location("fastapi_app", ROOT / "examples/services/fastapi_app.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    # FastAPI looks up annotations in the module by its name.
    monkeypatch.setitem(sys.modules, "fastapi_app", module)
    spec.loader.exec_module(module)
    with TestClient(module.app) as api:
        jane, root = bearer(issuer.token("jane", groups=["dev"])), bearer(issuer.token("root", groups=["admins"]))
        assert api.get("/me", headers=jane).json() == {"name": "jane", "groups": ["dev"]}
        assert api.get("/me").status_code == 401
        assert api.get("/admin", headers=jane).status_code == 403
        assert api.get("/admin", headers=root).json() == {"hello": "root"}
        assert api.get("/healthz").json() == {"asked by": "system:anonymous"}
        with api.websocket_connect("/updates", headers=jane) as chat:
            assert chat.receive_json() == {"hello": "jane"}
            chat.send_text("hi")
            assert chat.receive_text() == "jane: hi"
