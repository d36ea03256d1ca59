"""whoami against servers that a test server is not: older ones, and ones that answer nonsense."""

from __future__ import annotations

import json
from collections.abc import Iterator

import httpx2
import pytest

from kubeauthn.cli.whoami import ask
from kubeauthn.errors import EnvironmentFailure, RequestRefused


def server(*answers: tuple[int, object]) -> tuple[httpx2.Client, list[str]]:
    """Gives these answers, one after the other, and refuses any further request."""
    left = list(answers)
    asked: list[str] = []

    def handle(request: httpx2.Request) -> httpx2.Response:
        asked.append(request.url.path)
        assert json.loads(request.content)["apiVersion"] == request.url.path.removeprefix("/apis/").rpartition("/")[0]
        status, body = left.pop(0)
        return httpx2.Response(status, content=body if isinstance(body, bytes) else json.dumps(body).encode())

    return httpx2.Client(transport=httpx2.MockTransport(handle), base_url="https://server.test"), asked


def review(info: object) -> object:
    return {"status": {"userInfo": info}}


def test_older_servers_are_asked_in_the_versions_they_know():
    api, asked = server((404, {}), (404, {}), (201, review({"username": "jane"})))
    assert ask(api) == {"username": "jane", "uid": "", "groups": [], "extra": {}}
    assert asked == [
        f"/apis/authentication.k8s.io/{version}/selfsubjectreviews" for version in ("v1", "v1beta1", "v1alpha1")
    ]


def test_a_server_without_the_review_is_an_answer():
    api, _ = server((404, {}), (404, {}), (404, {}))
    with pytest.raises(RequestRefused, match="the server has no SelfSubjectReview"):
        ask(api)


@pytest.mark.parametrize(
    ("status", "body", "text"),
    [
        (401, {"message": "Unauthorized"}, r"^the server does not know you \(401\)$"),
        (401, {"message": "token has expired"}, r"^the server does not know you \(401: token has expired\)$"),
        (403, {"message": "no"}, r"^the server answered 403 \(Forbidden\): no$"),
        (500, b"<html>", r"^the server answered 500 \(Internal Server Error\)$"),
        (302, b"", r"^the server answered 302, and redirects are not followed: nowhere$"),
        (599, b"[]", r"^the server answered 599 \(no known status\)$"),
    ],
)
def test_no_other_answer_leads_to_another_version(status: int, body: object, text: str):
    api, asked = server((status, body))
    with pytest.raises(RequestRefused, match=f"(?m){text}") as caught:
        ask(api)
    assert caught.value.status == status
    assert len(asked) == 1


@pytest.mark.parametrize(
    "body",
    [b"", b"nonsense", {}, [], {"status": None}, review(None), review([]), review({"extra": 1}), b"[" * 200_000],
)
def test_nonsense_is_not_a_user(body: object):
    api, _ = server((201, body))
    with pytest.raises(EnvironmentFailure, match="no SelfSubjectReview"):
        ask(api)


def test_an_answer_without_end_is_not_read_to_its_end():
    given = 0

    def endless() -> Iterator[bytes]:
        nonlocal given
        while given < 64 << 20:
            given += 1 << 20
            yield b" " * (1 << 20)

    transport = httpx2.MockTransport(lambda request: httpx2.Response(200, content=endless()))
    with pytest.raises(EnvironmentFailure, match="no SelfSubjectReview"):
        ask(httpx2.Client(transport=transport, base_url="https://server.test"))
    assert given <= 4 << 20
