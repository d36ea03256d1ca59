"""The nginx configuration of docs/forward-auth.md, run by nginx itself before `/auth` and a service that records."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import textwrap
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import httpx2
import pytest

from kubeauthn.server.upstream import AssertionVerifier, user_from_headers
from kubeauthn.testing import Issuer
from tests.integration.serve_process import Serve

pytestmark = [pytest.mark.needs("nginx"), pytest.mark.timeout(60)]

ROOT = Path(__file__).resolve().parents[2]
NGINX = shutil.which("nginx", path=os.environ.get("PATH", "") + ":/usr/sbin") or "nginx"
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
    "X_Remote_User": "admin",
    "X-Kubeauthn-Assertion": "e30.e30.AA",
    "X-Original-URI": "/healthz",
}


@dataclass
class Scene:
    url: str
    auth_url: str
    issuer: Issuer
    arrived: list[list[tuple[str, str]]] = field(default_factory=list)

    def get(self, path: str = "/", token: str = "", **headers: str) -> httpx2.Response:
        sent = {**headers, **({"Authorization": f"Bearer {token}"} if token else {})}
        return httpx2.get(self.url + path, headers=sent, trust_env=False, timeout=20)

    def keys(self) -> dict[str, Any]:
        """Over a connection of its own: one worker or the other answers."""
        found: dict[str, Any] = httpx2.get(self.auth_url + "/.well-known/jwks.json", trust_env=False).json()
        return found

    def last(self) -> list[tuple[str, str]]:
        return self.arrived[-1]


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def wait_for_port(port: int, process: subprocess.Popen[bytes], log: Path) -> None:
    for _ in range(200):
        assert process.poll() is None, log.read_text()
        with socket.socket() as probe:
            if probe.connect_ex(("127.0.0.1", port)) == 0:
                return
        time.sleep(0.05)
    pytest.fail(f"nothing listens on port {port}: {log.read_text()}")


def nginx_of_the_document() -> str:
    return (ROOT / "docs/forward-auth.md").read_text().split("```nginx\n")[1].partition("```")[0]


@pytest.fixture(scope="module")
def scene(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Scene]:
    folder = tmp_path_factory.mktemp("nginx")
    arrived: list[list[tuple[str, str]]] = []

    class Service(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            arrived.append(list(self.headers.items()))
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
    front_port = free_port()
    process: subprocess.Popen[bytes] | None = None
    with Issuer() as issuer:
        authority = textwrap.indent(issuer.ca.certificate_pem.decode(), " " * 6)
        file = folder / "authn.yaml"
        file.write_text(CONFIGURATION.format(url=issuer.url, authority=authority))
        options = ("--workers", "2", "--forward-auth-original-uri", "X-Original-URI")
        try:
            with Serve(file, *options) as server:
                server.ready()
                text = nginx_of_the_document()
                for before, after in (
                    ("127.0.0.1:8080", server.address.removeprefix("http://")),
                    ("127.0.0.1:9000", f"127.0.0.1:{service.server_port}"),
                    ("127.0.0.1:8000", f"127.0.0.1:{front_port}"),
                ):
                    assert before in text
                    text = text.replace(before, after)
                temporary = "".join(
                    f"{name}_temp_path {folder}/{name};\n"
                    for name in ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")
                )
                (folder / "nginx.conf").write_text(
                    f"daemon off;\nmaster_process off;\npid {folder}/pid;\nerror_log {folder}/error.log;\n"
                    f"events {{}}\nhttp {{\naccess_log off;\n{temporary}{text}}}\n"
                )
                command = [NGINX, "-p", str(folder), "-c", str(folder / "nginx.conf"), "-e", str(folder / "error.log")]
                process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
                wait_for_port(front_port, process, folder / "error.log")
                yield Scene(f"http://127.0.0.1:{front_port}", server.address, issuer, arrived)
        finally:
            if process is not None:
                process.terminate()
                process.wait(20)
            service.shutdown()
            service.server_close()


def test_two_hundred_groups_arrive_whole(scene: Scene):
    token = scene.issuer.token("jäne", groups=GROUPS, team="a,b")
    assert scene.get("/page", token).status_code == 200
    user = user_from_headers(scene.last())
    assert user is not None
    assert user.username == "jäne"
    assert list(user.groups) == GROUPS
    assert user.extra["example.com/team"] == ("a,b",)


def test_what_a_client_says_of_itself_never_arrives(scene: Scene):
    """Not even for a user who has no groups and no extra values, so that there is nothing to overwrite it with."""
    assert scene.get("/page", scene.issuer.token("jane"), **SMUGGLED).status_code == 200
    about_the_user = {
        name.lower(): value
        for name, value in scene.last()
        if name.lower().replace("_", "-").startswith(("x-remote", "x-kubeauthn", "x-original"))
    }
    assertion = about_the_user.pop("x-kubeauthn-assertion")
    assert about_the_user == {"x-remote-user": "jane"}
    assert AssertionVerifier(scene.keys()).verify(assertion).username == "jane"
    assert not [name for name, _ in scene.last() if name.lower() == "authorization"]


def test_no_token_and_a_bad_one_are_told_so(scene: Scene):
    before = len(scene.arrived)
    refused = scene.get("/page", **SMUGGLED)
    assert refused.status_code == 401
    assert refused.headers["www-authenticate"] == 'Bearer realm="kubeauthn"'
    refused = scene.get("/page", scene.issuer.token("jane", expires_in=-60))
    assert refused.status_code == 401
    assert 'error="invalid_token", error_description="the token is expired"' in refused.headers["www-authenticate"]
    assert scene.get("/page", "opaque").status_code == 401
    assert scene.get("/kubeauthn-verdict", scene.issuer.token("jane")).status_code == 404
    assert len(scene.arrived) == before


def test_anonymous_paths_are_those_of_the_request_and_not_of_a_header(scene: Scene):
    assert scene.get("/healthz?verbose").status_code == 200
    user = user_from_headers(scene.last())
    assert user is not None
    assert (user.username, user.groups) == ("system:anonymous", ("system:unauthenticated",))
    for path in ("/", "/healthz/", "/healthz/..%2fpage", "//healthz", "/page?/healthz"):
        assert scene.get(path, **{"X-Original-URI": "/healthz"}).status_code == 401, path
    assert scene.get("/healthz", "bad").status_code == 401


def test_a_body_and_the_headers_that_a_service_needs_pass(scene: Scene):
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


def test_an_unknown_path_and_methods_of_auth_itself(scene: Scene):
    token = {"Authorization": f"Bearer {scene.issuer.token('jane')}"}
    with httpx2.Client(base_url=scene.auth_url, trust_env=False) as direct:
        assert direct.request("POST", "/auth", headers=token).status_code == 200
        assert direct.request("HEAD", "/auth", headers=token).headers["x-remote-user"] == "jane"
        assert direct.request("TRACE", "/auth", headers=token).status_code == 405
        assert direct.get("/auth?audience=other", headers=token).status_code == 403
        assert direct.get("/auth?audience=kubeauthn-upstream", headers=token).status_code == 200
        assert direct.get("/elsewhere", headers=token).status_code == 404


def test_all_workers_have_one_key(scene: Scene):
    assert len({scene.keys()["keys"][0]["kid"] for _ in range(30)}) == 1
