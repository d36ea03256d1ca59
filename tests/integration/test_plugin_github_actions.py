"""`kubeauthn plugin github-actions`: started by a client in a job, against an endpoint like that of GitHub."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from kubeauthn._core import execwire, rfc3339
from kubeauthn._core.limits import PLUGIN_SECONDS
from kubeauthn.client import connect
from kubeauthn.client.exec_source import forget_shared_sources
from kubeauthn.plugins.github_actions import ANSWER_SECONDS, ATTEMPTS, FIRST_PAUSE_SECONDS
from kubeauthn.testing import ApiServer, User
from tests.integration.github_endpoint import PERMIT, Endpoint, serving_endpoint

KUBEAUTHN = str(Path(sys.executable).parent / "kubeauthn")


@pytest.fixture
def endpoint(monkeypatch: pytest.MonkeyPatch) -> Iterator[Endpoint]:
    with serving_endpoint() as endpoint:
        for name, value in endpoint.variables.items():
            monkeypatch.setenv(name, value)
        yield endpoint


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


@pytest.mark.needs("kubectl")
def test_kubectl_in_the_job_is_let_in(endpoint: Endpoint, own_environment: Path):
    """With the entry of docs/plugin-github-actions.md."""
    page = (Path(__file__).parents[2] / "docs" / "plugin-github-actions.md").read_text()
    (written,) = yaml.safe_load(page.partition("```yaml\n")[2].partition("```")[0])["users"]
    with ApiServer(token_review=lambda token: User("octo/shop") if token in endpoint.given else None) as server:
        path = server.write_kubeconfig(own_environment / ".kube" / "config", written["user"])
        listed = subprocess.run(
            ["kubectl", "get", "--raw", "/api/v1/namespaces"], stdin=subprocess.DEVNULL, capture_output=True, text=True,
            env={**os.environ, "KUBECONFIG": str(path), "PATH": f"{Path(KUBEAUTHN).parent}:{os.environ['PATH']}"},
            timeout=50,
        )  # fmt: skip
        assert listed.returncode == 0, listed.stderr
        assert {each.user for each in server.requests} == {"octo/shop"}
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


def test_a_clock_that_is_behind_does_not_make_the_token_last_longer(endpoint: Endpoint):
    now = int(time.time())
    endpoint.times = {"iat": now + 900, "exp": now + 1200}
    status = json.loads(run().stdout)["status"]
    assert 255 < rfc3339.parse(status["expirationTimestamp"]) - time.time() <= 271


def test_a_clock_that_is_ahead_is_named(endpoint: Endpoint):
    now = int(time.time())
    endpoint.times = {"iat": now - 900, "exp": now - 600}
    said = failure()
    assert "has ended by this machine's clock" in said
    assert "hint: is the clock of this machine right?" in said


def test_all_attempts_together_take_less_than_a_client_gives():
    pauses = sum(FIRST_PAUSE_SECONDS * 2**attempt for attempt in range(ATTEMPTS - 1))
    assert ATTEMPTS * ANSWER_SECONDS + pauses < PLUGIN_SECONDS


def test_an_endpoint_that_leads_elsewhere_is_not_followed(endpoint: Endpoint):
    endpoint.location = "http://127.0.0.1:1/elsewhere"
    endpoint.answers = [(302, b"")]
    assert "GitHub answered 302 and no token" in failure()
    assert len(endpoint.asked) == 1


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
        ("ACTIONS_ID_TOKEN_REQUEST_URL", "https://elsewhere.test/token#", "nothing was sent there"),
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
