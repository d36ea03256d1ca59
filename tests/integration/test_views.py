"""`authenticate_request` in views of Django and Flask, and what it answers to bad requests."""

from __future__ import annotations

import asyncio
import textwrap
from collections.abc import Iterator
from typing import Any

import pytest

from kubeauthn.errors import Unauthenticated
from kubeauthn.server import Authenticator, load_configuration
from kubeauthn.server.views import authenticate_request, authenticate_request_async
from kubeauthn.testing import Issuer


@pytest.fixture(scope="module")
def issuer() -> Iterator[Issuer]:
    with Issuer() as issuer:
        yield issuer


def authenticator(issuer: Issuer, **options: Any) -> Authenticator:
    authority = textwrap.indent(issuer.ca.certificate_pem.decode(), " " * 6)
    text = (
        "apiVersion: apiserver.config.k8s.io/v1\nkind: AuthenticationConfiguration\njwt:\n- issuer:\n"
        f"    url: {issuer.url}\n    audiences: [kubernetes]\n    certificateAuthority: |\n{authority}\n"
        '  claimMappings: {username: {claim: sub, prefix: ""}}\n'
    )
    return Authenticator(load_configuration(text), **options)


def bearer(token: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {token}"}


def test_keys_are_fetched_in_the_call_if_they_must_be(issuer: Issuer):
    shared = authenticator(issuer)
    assert authenticate_request(bearer(issuer.token("jane")), shared).username == "jane"
    assert authenticate_request({"AUTHORIZATION": f"bearer {issuer.token('joe')}"}, shared).username == "joe"
    assert authenticate_request([("authorization", f"Bearer {issuer.token('ann')}")], shared).username == "ann"


def test_asynchronous_views(issuer: Issuer):
    async def view() -> str:
        return (await authenticate_request_async(bearer(issuer.token("jane")), authenticator(issuer))).username

    assert asyncio.run(view()) == "jane"


def test_inside_a_loop_nothing_is_fetched_and_nobody_is_let_in(issuer: Issuer):
    async def view() -> None:
        authenticate_request(bearer(issuer.token("jane")), authenticator(issuer))

    with pytest.raises(Unauthenticated) as refused:
        asyncio.run(view())
    assert refused.value.status == 503
    assert refused.value.headers == {"Retry-After": "5"}


@pytest.mark.parametrize(
    ("headers", "said"),
    [
        ({}, 'Bearer realm="kubeauthn"'),
        ({"Authorization": "Basic eDp5"}, 'Bearer realm="kubeauthn"'),
        ({"Authorization": "Bearer opaque"}, 'error="invalid_token"'),
        ({"Authorization": "Bearer a,b"}, 'error="invalid_request"'),
        ([("Authorization", "Bearer a"), ("authorization", "Bearer b")], 'error="invalid_request"'),
    ],
    ids=["none", "basic", "opaque", "joined", "two"],
)
def test_who_is_refused_is_told_how(issuer: Issuer, headers: Any, said: str):
    with pytest.raises(Unauthenticated) as refused:
        authenticate_request(headers, authenticator(issuer, keys={}))
    assert refused.value.status == 401
    assert said in refused.value.headers["WWW-Authenticate"]


def test_the_sender_is_not_told_what_the_log_is(issuer: Issuer):
    with pytest.raises(Unauthenticated) as refused:
        authenticate_request(bearer(issuer.token("jane", audience="s3cret")), authenticator(issuer))
    assert "s3cret" in str(refused.value)
    assert "s3cret" not in refused.value.public_message + refused.value.www_authenticate


def test_a_flask_view(issuer: Issuer):
    import flask

    app, shared = flask.Flask(__name__), authenticator(issuer)

    @app.get("/me")
    def me() -> str:
        return authenticate_request(flask.request.headers, shared).username

    @app.errorhandler(Unauthenticated)
    def refuse(refused: Unauthenticated) -> tuple[str, int, dict[str, str]]:
        return refused.public_message, refused.status, refused.headers

    api = app.test_client()
    assert api.get("/me", headers=bearer(issuer.token("jane"))).text == "jane"
    answer = api.get("/me", headers=bearer(issuer.token("jane", expires_in=-60)))
    assert (answer.status_code, answer.text) == (401, "the token is expired")
    assert 'error="invalid_token"' in answer.headers["WWW-Authenticate"]


def test_a_django_view(issuer: Issuer):
    from django.conf import settings
    from django.http import HttpRequest, HttpResponse
    from django.test import RequestFactory

    if not settings.configured:
        settings.configure(ALLOWED_HOSTS=["testserver"])
    shared = authenticator(issuer)

    def me(request: HttpRequest) -> HttpResponse:
        try:
            user = authenticate_request(request.headers, shared)
        except Unauthenticated as refused:
            return HttpResponse(refused.public_message, status=refused.status, headers=refused.headers)
        return HttpResponse(user.username)

    factory = RequestFactory()
    assert me(factory.get("/me", headers=bearer(issuer.token("jane")))).content == b"jane"
    answer = me(factory.get("/me"))
    assert answer.status_code == 401
    assert answer["WWW-Authenticate"] == 'Bearer realm="kubeauthn"'
