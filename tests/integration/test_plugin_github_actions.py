"""`kubeauthn plugin github-actions`: started by a client in a job, against an endpoint like that of GitHub."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest

from kubeauthn._core import execwire, rfc3339
from kubeauthn.client import connect
from kubeauthn.client.exec_source import forget_shared_sources
from kubeauthn.testing import ApiServer, Issuer, User

KUBEAUTHN = str(Path(sys.executable).parent / "kubeauthn")
PERMIT = "s3cret-permit"


class Endpoint:
    """Gives the job's token to who brings the permit; `answers` come first, each once."""

    def __init__(self, issuer: Issuer) -> None:
        self.issuer = issuer
        self.answers: list[tuple[int, bytes]] = []
        self.asked: list[dict[str, list[str]]] = []
        self.given: list[str] = []

    def answer(self, path: str, authorization: str | None) -> tuple[int, bytes]:
        self.asked.append(parse_qs(urlsplit(path).query))
        if authorization != f"Bearer {PERMIT}":
            return 401, b"{}"
        if self.answers:
            return self.answers.pop(0)
        token = self.issuer.token("repo:octo/shop:ref:refs/heads/main", audience="my-cluster", expires_in=300)
        self.given.append(token)
        return 200, json.dumps({"count": len(token), "value": token}).encode()


@pytest.fixture
def endpoint(monkeypatch: pytest.MonkeyPatch) -> Iterator[Endpoint]:
    with Issuer() as issuer:
        endpoint = Endpoint(issuer)

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                status, body = endpoint.answer(self.path, self.headers.get("Authorization"))
                self.send_response(status)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *args: object) -> None:
                """Nothing to say."""

        with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
            thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
            thread.start()
            address = f"http://127.0.0.1:{server.server_address[1]}/_apis/token?api-version=2.0"
            monkeypatch.setenv("ACTIONS_ID_TOKEN_REQUEST_URL", address)
            monkeypatch.setenv("ACTIONS_ID_TOKEN_REQUEST_TOKEN", PERMIT)
            yield endpoint
            server.shutdown()
            thread.join(5)


def run(audience: str = "my-cluster", **more: str) -> subprocess.CompletedProcess[str]:
    info = execwire.encode_exec_info(execwire.V1, interactive=False, cluster=None)
    return subprocess.run(
        [KUBEAUTHN, "plugin", "github-actions", f"--audience={audience}"],
        env={**os.environ, execwire.VARIABLE: info, **more}, capture_output=True, text=True, timeout=50,
    )  # fmt: skip


def failure(**more: str) -> str:
    done = run(**more)
    assert done.returncode == 1
    assert not done.stdout
    assert PERMIT not in done.stderr
    return done.stderr


def test_a_client_in_the_job_is_let_in(endpoint: Endpoint, own_environment: Path):
    forget_shared_sources()
    entry: dict[str, Any] = {
        "apiVersion": execwire.V1,
        "command": KUBEAUTHN,
        "args": ["plugin", "github-actions", "--audience", "my-cluster"],
        "interactiveMode": "Never",
    }
    with ApiServer(token_review=lambda token: User("octo/shop") if token in endpoint.given else None) as server:
        server.write_kubeconfig(own_environment / ".kube" / "config", {"exec": entry})
        with connect() as api:
            assert api.get("/api/v1/namespaces").status_code == 200
            assert api.get("/api/v1/namespaces").status_code == 200
        assert [each.user for each in server.requests] == ["octo/shop", "octo/shop"]
    assert len(endpoint.given) == 1


def test_the_audience_is_asked_for_beside_what_the_address_has_already(endpoint: Endpoint):
    done = run("https://cluster.test/?a=b&c")
    assert done.returncode == 0, done.stderr
    assert endpoint.asked == [{"api-version": ["2.0"], "audience": ["https://cluster.test/?a=b&c"]}]


def test_it_is_kept_until_a_little_before_the_tokens_own_end(endpoint: Endpoint):
    done = run()
    status = json.loads(done.stdout)["status"]
    assert status["token"] == endpoint.given[0]
    assert 255 < rfc3339.parse(status["expirationTimestamp"]) - time.time() <= 271  # a tenth less than 300


def test_an_answer_of_500_is_not_the_last_word(endpoint: Endpoint):
    endpoint.answers = [(500, b""), (503, b"busy")]
    assert run().returncode == 0
    assert len(endpoint.asked) == 3


def test_but_there_are_no_more_than_three_attempts(endpoint: Endpoint):
    endpoint.answers = [(500, b"")] * 9
    assert "GitHub answered 500 and no token" in failure()
    assert len(endpoint.asked) == 3


def test_a_refusal_is_not_tried_again_and_names_the_permission(endpoint: Endpoint):
    endpoint.answers = [(403, b'{"message": "s3cret-permit"}')]
    said = failure()
    assert "GitHub answered 403 and no token" in said
    assert "`id-token: write`" in said
    assert len(endpoint.asked) == 1


@pytest.mark.parametrize(
    ("body", "told"),
    [
        (b"", "GitHub answered without a token"),
        (b"[]", "GitHub answered without a token"),
        (b'{"value": 5}', "GitHub answered without a token"),
        (b'{"value": "s3cret-permit"}', "what GitHub gave is no token that can be read"),
        (b"x" * (2 << 20), "answered more than 1048576 bytes"),
    ],
    ids=["nothing", "a list", "a number", "no JWT", "two megabytes"],
)
def test_an_answer_that_is_no_token(endpoint: Endpoint, body: bytes, told: str):
    endpoint.answers = [(200, body)] * 3
    assert told in failure()


@pytest.mark.parametrize(
    ("variable", "value", "told"),
    [
        ("ACTIONS_ID_TOKEN_REQUEST_URL", "", "ACTIONS_ID_TOKEN_REQUEST_URL is not set"),
        ("ACTIONS_ID_TOKEN_REQUEST_URL", "http://elsewhere.test/", "nothing was sent there"),
        ("ACTIONS_ID_TOKEN_REQUEST_URL", "https://user:word@elsewhere.test/", "nothing was sent there"),
        ("ACTIONS_ID_TOKEN_REQUEST_TOKEN", "", "ACTIONS_ID_TOKEN_REQUEST_TOKEN is not set"),
        ("ACTIONS_ID_TOKEN_REQUEST_TOKEN", "two\nlines", "ACTIONS_ID_TOKEN_REQUEST_TOKEN is not set, or no token"),
    ],
)
def test_an_environment_that_is_not_that_of_a_job(endpoint: Endpoint, variable: str, value: str, told: str):
    assert told in failure(**{variable: value})
    assert not endpoint.asked


def test_the_audience_must_be_named(endpoint: Endpoint):
    assert "--audience takes the audience" in failure(audience="")
    assert not endpoint.asked
