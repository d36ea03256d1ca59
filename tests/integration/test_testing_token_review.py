"""`ApiServer(token_review=…)`: a server that asks another about bearer tokens; here that is an ApiServer as well."""

from __future__ import annotations

from collections.abc import Iterator

import httpx2
import pytest

from kubeauthn.errors import UsageError
from kubeauthn.testing import ApiServer, CertificateAuthority, User

REVIEWS = "/apis/authentication.k8s.io/v1/tokenreviews"
WHO = "/apis/authentication.k8s.io/v1/selfsubjectreviews"
QUESTION = {"apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview"}


@pytest.fixture
def webhook() -> Iterator[ApiServer]:
    with ApiServer(allow_anonymous=True, tokens={"t0ken": User("jane", ("dev",), "7", {"team": ("a", "b")})}) as server:
        yield server


def asking(webhook: ApiServer, ca: bytes | None = None) -> ApiServer:
    return ApiServer(token_review=webhook.url + REVIEWS, token_review_ca=ca or webhook.ca.certificate_pem)


def ask(server: ApiServer, token: str) -> httpx2.Response:
    with httpx2.Client(verify=server.ca.client_context(), headers={"Authorization": f"Bearer {token}"}) as client:
        return client.post(server.url + WHO, json=QUESTION)


def test_the_user_is_the_one_of_the_review(webhook: ApiServer):
    with asking(webhook) as server:
        user = ask(server, "t0ken").json()["status"]["userInfo"]
        assert server.requests[-1].user == "jane"
    assert user["username"] == "jane"
    assert user["uid"] == "7"
    assert user["groups"] == ["dev", "system:authenticated"]
    assert user["extra"] == {"team": ["a", "b"]}
    assert webhook.requests[-1].path == REVIEWS


def test_a_token_that_the_webhook_does_not_know_is_a_401(webhook: ApiServer):
    with asking(webhook) as server:
        assert ask(server, "another").status_code == 401
        assert server.requests[-1].user is None


def test_tokens_that_are_known_here_are_not_asked_about(webhook: ApiServer):
    with asking(webhook) as server:
        server.accept_token("own", user="joe")
        assert ask(server, "own").status_code == 201
    assert webhook.requests == []


def test_a_change_is_seen_at_once(webhook: ApiServer):
    with asking(webhook) as server:
        assert ask(server, "t0ken").status_code == 201
        webhook.revoke_token("t0ken")
        assert ask(server, "t0ken").status_code == 401


def test_a_webhook_that_fails_lets_nobody_in(webhook: ApiServer):
    with asking(webhook) as server:
        webhook.fail(500)
        assert ask(server, "t0ken").status_code == 401


def test_a_webhook_that_is_gone_lets_nobody_in():
    with ApiServer(allow_anonymous=True, tokens={"t0ken": "jane"}) as gone:
        pass
    with ApiServer(token_review=f"https://127.0.0.1:{gone.port}{REVIEWS}") as server:
        assert ask(server, "t0ken").status_code == 401


def test_a_webhook_with_the_certificate_of_another_authority_gets_no_token(webhook: ApiServer):
    with asking(webhook, CertificateAuthority().certificate_pem) as server:
        assert ask(server, "t0ken").status_code == 401
    assert webhook.requests == []


def test_a_function_can_be_asked_instead():
    with ApiServer(token_review=lambda token: User("jane") if token == "t0ken" else None) as server:
        assert ask(server, "t0ken").status_code == 201
        assert ask(server, "another").status_code == 401


@pytest.mark.parametrize("url", ["http://webhook.example/authenticate", "ftp://127.0.0.1:1/", "/authenticate"])
def test_tokens_do_not_travel_in_the_clear(url: str):
    with pytest.raises(UsageError, match="https"):
        ApiServer(token_review=url)
