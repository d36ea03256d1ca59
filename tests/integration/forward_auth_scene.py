"""A proxy before a service, asking `/auth` of `kubeauthn serve`, as docs/forward-auth.md has it."""

from __future__ import annotations

import shutil
import socket
import subprocess
import textwrap
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import httpx2
import pytest

from kubeauthn.server.upstream import AssertionVerifier, user_from_headers
from kubeauthn.testing import Issuer
from tests.conftest import SYSTEM_PATH
from tests.integration.serve_process import Serve

DOCUMENT = Path(__file__).resolve().parents[2] / "docs/forward-auth.md"
GROUPS = [f"team-{number}, unit größe-管理 {number}\n" for number in range(200)]
CONFIGURATION = """
apiVersion: apiserver.config.k8s.io/v1
kind: AuthenticationConfiguration
anonymous: {{enabled: true, conditions: [{{path: /healthz}}]}}
jwt:
- issuer:
    url: "{url}"
    audiences: [kubernetes]
    certificateAuthority: |
{authority}
  claimMappings:
    username: {{claim: sub, prefix: ""}}
    groups: {{claim: groups, prefix: ""}}
    extra: [{{key: example.com/team, valueExpression: "has(claims.team) ? claims.team : ''"}}]
"""
SMUGGLED = {
    "X-Remote-User": "admin",
    "x-remote-uid": "0",
    "X-Remote-Group": "system:masters",
    "X-Remote-Groups": "system:masters",
    "X-Remote-Extra-Admin": "yes",
    "X-Remote-Extra-example.com%2Fteam": "root",
    "X-Remote-Extras": "admin=yes",
    "X_Remote_User": "admin",  # a service that reads headers as CGI does takes - and _ as one
    "X-Remote_Groups": "system:masters",
    "X_REMOTE-Extra-Admin": "yes",
    "X_Kubeauthn_Assertion": "e30.e30.AA",
    "X-Kubeauthn-Assertion": "e30.e30.AA",
    "X-Original-URI": "/healthz",
}


@dataclass(frozen=True)
class Places:
    """Addresses, as host and port; `authority` is the file of whom to trust where the server has a certificate."""

    proxy: str
    kubeauthn: str
    service: str
    folder: Path
    authority: Path


Command = Callable[[Places], Sequence[str]]
"""Writes the proxy's configuration into the folder, and says how the proxy is started."""


@dataclass
class Scene:
    url: str
    issuer: Issuer
    direct: Callable[[], httpx2.Client]
    """A client of `kubeauthn serve` itself."""
    original_uri: str
    """The header that the server believes about what was asked for."""
    arrived: list[list[tuple[str, str]]] = field(default_factory=list)
    paths: list[str] = field(default_factory=list)
    """What the service was asked for, each time."""

    def get(self, path: str = "/", token: str = "", **headers: str) -> httpx2.Response:
        sent = {**headers, **({"Authorization": f"Bearer {token}"} if token else {})}
        return httpx2.get(self.url + path, headers=sent, trust_env=False, timeout=20)

    def keys(self) -> dict[str, Any]:
        """Over a connection of its own: one worker or the other answers."""
        with self.direct() as client:
            found: dict[str, Any] = client.get("/.well-known/jwks.json").json()
        return found

    def last(self) -> list[tuple[str, str]]:
        return self.arrived[-1]


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def wait_until_it_asks(port: int, process: subprocess.Popen[bytes], log: Path) -> None:
    for _ in range(200):
        assert process.poll() is None, log.read_text()
        with suppress(httpx2.TransportError):
            # Traefik listens before it has read where its requests go.
            if httpx2.get(f"http://127.0.0.1:{port}/", trust_env=False, timeout=20).status_code == 401:
                return
        time.sleep(0.05)
    pytest.fail(f"nobody asks for a token at port {port}: {log.read_text()}")


def configuration_in_the_document(language: str, *, under: str = "") -> str:
    text = DOCUMENT.read_text().partition(f"\n{under}\n")[2] if under else DOCUMENT.read_text()
    return text.split(f"```{language}\n")[1].partition("```")[0]


@contextmanager
def scene_behind(command: Command, folder: Path, *, tls: bool, original_uri: str) -> Iterator[Scene]:
    arrived: list[list[tuple[str, str]]] = []
    paths: list[str] = []
    with Issuer() as issuer, _service(arrived, paths) as service:
        authority = textwrap.indent(issuer.ca.certificate_pem.decode(), " " * 6)
        file = folder / "authn.yaml"
        file.write_text(CONFIGURATION.format(url=issuer.url, authority=authority))
        options = ("--workers", "2", "--forward-auth-original-uri", original_uri)
        with Serve(file, *options, tls=folder / "tls" if tls else None) as server:
            server.ready()
            port = free_port()
            (folder / "authority.pem").write_bytes(server.ca.certificate_pem)
            proxy = f"127.0.0.1:{port}"
            places = Places(proxy, server.address.partition("://")[2], service, folder, folder / "authority.pem")
            with _running(command(places), port, folder / "proxy.log"):
                yield Scene(f"http://{proxy}", issuer, server.client, original_uri, arrived, paths)


@contextmanager
def _service(arrived: list[list[tuple[str, str]]], paths: list[str]) -> Iterator[str]:
    """Records what arrives, and sends a body back."""

    class Service(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            arrived.append(list(self.headers.items()))
            paths.append(self.path)
            body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
            self.send_response(200)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        do_POST = do_GET

        def log_message(self, format: str, *args: Any) -> None:
            """Not wanted."""

    service = ThreadingHTTPServer(("127.0.0.1", 0), Service)
    threading.Thread(target=service.serve_forever, daemon=True).start()
    try:
        yield f"127.0.0.1:{service.server_port}"
    finally:
        service.shutdown()
        service.server_close()


@contextmanager
def _running(command: Sequence[str], port: int, log: Path) -> Iterator[None]:
    program = shutil.which(command[0], path=SYSTEM_PATH)
    assert program is not None, f"there is no {command[0]}"
    with log.open("wb") as told:
        process = subprocess.Popen([program, *command[1:]], stdout=told, stderr=told)
    try:
        wait_until_it_asks(port, process, log)
        yield
    finally:
        process.terminate()
        process.wait(20)


# What holds behind every proxy


def two_hundred_groups_arrive_whole(scene: Scene) -> None:
    token = scene.issuer.token("jäne", groups=GROUPS, team="a,b")
    assert scene.get("/page", token).status_code == 200
    user = user_from_headers(scene.last())
    assert user is not None
    assert user.username == "jäne"
    assert list(user.groups) == GROUPS
    assert user.extra["example.com/team"] == ("a,b",)


def what_a_client_says_of_itself_never_arrives(scene: Scene) -> None:
    """Not even for a user who has no groups and no extra values, so that there is nothing to overwrite it with."""
    assert scene.get("/page", scene.issuer.token("jane"), **SMUGGLED).status_code == 200
    about_the_user = {
        name.lower(): value
        for name, value in scene.last()
        if value and name.lower().replace("_", "-").startswith(("x-remote", "x-kubeauthn"))
    }
    assertion = about_the_user.pop("x-kubeauthn-assertion")
    assert about_the_user == {"x-remote-user": "jane"}
    assert AssertionVerifier(scene.keys()).verify(assertion).username == "jane"
    assert not [name for name, _ in scene.last() if name.lower() == "authorization"]


def no_token_and_a_bad_one_are_told_so(scene: Scene) -> None:
    before = len(scene.arrived)
    refused = scene.get("/page", **SMUGGLED)
    assert refused.status_code == 401
    assert refused.headers["www-authenticate"] == 'Bearer realm="kubeauthn"'
    refused = scene.get("/page", scene.issuer.token("jane", expires_in=-60))
    assert refused.status_code == 401
    assert 'error="invalid_token", error_description="the token is expired"' in refused.headers["www-authenticate"]
    assert scene.get("/page", "opaque").status_code == 401
    assert len(scene.arrived) == before


def anonymous_paths_are_those_of_the_request_and_not_of_a_header(scene: Scene, *, cleaned: Sequence[str] = ()) -> None:
    """Behind those that tell what was asked for. Some clean paths before all else."""
    assert scene.get("/healthz?verbose").status_code == 200
    user = user_from_headers(scene.last())
    assert user is not None
    assert (user.username, user.groups) == ("system:anonymous", ("system:unauthenticated",))
    for path in ("/", "/healthz/", "/healthz/..%2fpage", "//healthz", "/page?/healthz"):
        if path in cleaned:
            assert scene.get(path).status_code == 200
            assert scene.paths[-1] == "/healthz", "what is let through is what was asked about"
        else:
            assert scene.get(path, **{scene.original_uri: "/healthz"}).status_code == 401, path
    assert scene.get("/healthz", "bad").status_code == 401


def a_body_and_the_headers_that_a_service_needs_pass(scene: Scene) -> None:
    headers = {
        "Authorization": f"Bearer {scene.issuer.token('jane')}",
        "Content-Type": "application/json",
        "Cookie": "a=b",
    }
    answer = httpx2.post(scene.url + "/", content=b"[1]", headers=headers, trust_env=False)
    assert answer.content == b"[1]"
    arrived = {name.lower(): value for name, value in scene.last()}
    assert arrived["content-type"] == "application/json"
    assert arrived["cookie"] == "a=b"


Case = Callable[[Scene], None]


def cases(*more: Case) -> pytest.MarkDecorator:
    """One test for each of what holds behind every proxy, and of those that hold behind this one too."""
    behind_every_proxy: tuple[Case, ...] = (
        two_hundred_groups_arrive_whole,
        what_a_client_says_of_itself_never_arrives,
        no_token_and_a_bad_one_are_told_so,
        a_body_and_the_headers_that_a_service_needs_pass,
    )
    return pytest.mark.parametrize("case", [pytest.param(one, id=one.__name__) for one in (*behind_every_proxy, *more)])
