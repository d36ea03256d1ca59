"""`/auth` by itself: every outcome, and every way to ask that is not the right one."""

from __future__ import annotations

import argparse
import asyncio
import copy
import inspect
from pathlib import Path
from typing import Any

import pytest

from kubeauthn._core.authentication.model import Anonymous
from kubeauthn._core.identity_headers import HeaderNames
from kubeauthn.errors import EnvironmentFailure, UsageError
from kubeauthn.server import UserInfo
from kubeauthn.server.assertion import HEADER, AssertionSigner, AssertionVerifier, given_keys, new_key_pem
from kubeauthn.server.decisions import NOT_MINE, Decision
from kubeauthn.server.forward_auth import ForwardAuth, add_arguments, check_arguments, routes_of
from kubeauthn.server.http_message import GivenScope, HeaderList, Request, Response

JANE = Decision("authenticated", UserInfo("jane", groups=("dev",)), "", "", "i", None, None, cached=False)
REFUSED = Decision("refused", None, "the token is expired", "s3cret claim", "i", "TokenExpired", None, cached=False)
FAILED = Decision("failed", None, "the token's issuer cannot be reached", "s3cret", "i", "x", None, cached=False)
VAST = Decision("authenticated", UserInfo("x", groups=("g" * 50,) * 1000), "", "", "i", None, None, cached=False)
BY_TOKEN = {"jane": JANE, "refused": REFUSED, "failed": FAILED, "strange": NOT_MINE, "vast": VAST}


class Decisions:
    """A decider that knows these tokens, some of them only after a wait, and refuses to be asked about others."""

    def decide_now(self, token: str) -> Decision | None:
        return None if token.startswith("later-") else BY_TOKEN[token]

    async def decide(self, token: str) -> Decision:
        return BY_TOKEN[token.removeprefix("later-")]


def ask(door: Any, token: str = "", *, method: str = "GET", query: str = "", **headers: str | list[str]) -> Response:
    pairs = [("authorization", f"Bearer {token}")] if token else []
    for name, values in headers.items():
        listed = [values] if isinstance(values, str) else values
        pairs += [(name.replace("_", "-"), value) for value in listed]
    answer = door(Request(method, "/auth", HeaderList(pairs), b"", GivenScope(query)))
    if inspect.isawaitable(answer):

        async def awaited() -> Any:
            return await answer

        answer = asyncio.run(awaited())
    assert isinstance(answer, Response)
    assert ("cache-control", "no-store") in answer.headers
    return answer


@pytest.mark.parametrize("token", ["jane", "later-jane"])
def test_a_good_token_gives_the_user(token: str):
    answer = ask(ForwardAuth(Decisions()), token)
    assert answer.status == 200
    assert dict(answer.headers) == {
        "cache-control": "no-store",
        "x-remote-user": "jane",
        "x-remote-uid": "",
        "x-remote-groups": "dev",
        "x-remote-extras": "",
        "x-remote-group": "dev",
    }


def test_nothing_is_repeated_where_the_proxy_asks_for_single_headers():
    both = UserInfo("jane", groups=("dev", "ops"), extra={"team": ("a", "b")})
    kept = Decision("authenticated", both, "", "", "i", None, None, cached=True, answers={})

    class Kept(Decisions):
        def decide_now(self, token: str) -> Decision | None:
            return kept

    door = ForwardAuth(Kept())
    for _ in range(2):  # what is remembered of one is not the answer to the other
        single = ask(door, "jane", query="headers=single").headers
        assert len(single) == len({name for name, _ in single})
        assert {"x-remote-groups": "dev,ops", "x-remote-extras": "team=a,team=b", "x-remote-group": ""}.items() <= dict(
            single
        ).items()
        assert [value for name, value in ask(door, "jane").headers if name == "x-remote-group"] == ["dev", "ops"]
    for query in ("headers=all", "headers=", "headers=single&headers=single"):
        assert ask(door, "jane", query=query).status == 403


def test_a_client_that_names_itself_is_not_listened_to():
    sent = {"x_remote_user": "admin", "x_remote_group": "system:masters", "x_remote_extra_admin": "yes"}
    assert ask(ForwardAuth(Decisions()), "jane", **sent) == ask(ForwardAuth(Decisions()), "jane")
    assert ask(ForwardAuth(Decisions()), **sent).status == 401


@pytest.mark.parametrize(
    ("token", "status", "said"),
    [
        ("", 401, 'Bearer realm="kubeauthn"'),
        ("refused", 401, 'Bearer realm="kubeauthn", error="invalid_token", error_description="the token is expired"'),
        ("later-refused", 401, 'error="invalid_token"'),
        ("strange", 401, 'error="invalid_token"'),
        ("two words", 401, 'error="invalid_request"'),
    ],
)
def test_a_bad_token_is_401_and_says_why(token: str, status: int, said: str):
    answer = ask(ForwardAuth(Decisions()), token)
    assert answer.status == status
    assert said in dict(answer.headers)["www-authenticate"]
    assert "s3cret" not in repr(answer)
    assert not [name for name, _ in answer.headers if name.startswith("x-remote")]


@pytest.mark.parametrize("token", ["failed", "later-failed"])
def test_no_verdict_is_503(token: str):
    answer = ask(ForwardAuth(Decisions()), token)
    assert answer.status == 503
    assert ("retry-after", "5") in answer.headers
    assert "s3cret" not in repr(answer)


def test_groups_are_never_cut():
    assert ask(ForwardAuth(Decisions()), "vast").status == 500


def test_methods():
    for method in ("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "PROPFIND"):
        assert ask(ForwardAuth(Decisions()), "jane", method=method).status == 200
    for method in ("TRACE", "CONNECT"):
        assert ask(ForwardAuth(Decisions()), "jane", method=method).status == 405


ON_HEALTHZ = Anonymous(True, ("/healthz", "/über"))


@pytest.mark.parametrize(
    ("uri", "status"),
    [
        ("/healthz", 200),
        ("/healthz?x=/y", 200),
        ("/%C3%BCber", 200),
        ("/healthz/", 401),
        ("/HEALTHZ", 401),
        ("/%68ealthz", 401),
        ("/healthz%3Fx", 401),
        ("/healthz/../admin", 401),
        ("/healthz;x", 401),
        ("/healthz#x", 401),
        ("http://a/healthz", 401),
        ("healthz", 401),
        ("", 401),
        (["/healthz", "/healthz"], 401),
    ],
)
def test_anonymous_paths_are_compared_whole(uri: str | list[str], status: int):
    door = ForwardAuth(Decisions(), anonymous=lambda: ON_HEALTHZ, original_uri_header="X-Original-URI")
    assert ask(door, x_original_uri=uri).status == status
    assert ask(ForwardAuth(Decisions(), anonymous=lambda: ON_HEALTHZ), x_original_uri=uri).status == 401
    assert ask(door, x_forwarded_uri=uri).status == 401


def test_anonymous_everywhere_and_nowhere():
    for anonymous, status in ((Anonymous(True), 200), (Anonymous(True, ()), 200), (Anonymous(False), 401), (None, 401)):
        door = ForwardAuth(Decisions(), anonymous=lambda found=anonymous: found, original_uri_header="x-original-uri")
        assert ask(door, x_original_uri="/any").status == status
        assert ask(door).status == 401
        assert ask(door, "refused", x_original_uri="/any").status == 401
    assert ask(ForwardAuth(Decisions(), anonymous=lambda: Anonymous(True)), x_original_uri="/any").status == 401


def test_the_assertion_has_a_header_of_its_own():
    with pytest.raises(UsageError):
        ForwardAuth(Decisions(), assertion_header="x-remote-user")
    with pytest.raises(UsageError):
        ForwardAuth(Decisions(), names=HeaderNames(user="Cookie"))


# -- from the command line ------------------------------------------------------------------------


def parts(*argv: str) -> dict[str, Any]:
    parser = argparse.ArgumentParser()
    add_arguments(parser)
    arguments = parser.parse_args(argv)
    check_arguments(arguments)
    assert "PRIVATE" not in repr(arguments)
    return copy.deepcopy(vars(arguments))  # as it travels to a worker


def test_workers_share_the_key_that_was_made_and_the_audience_is_chosen_by_the_proxy():
    given = parts("--assertion-audience", "billing", "--assertion-audience", "shop", "--assertion-issuer", "gate")
    one, two = routes_of(Decisions(), given), routes_of(Decisions(), given)
    answer = ask(one["/auth"], "jane", query="audience=shop")
    text = dict(answer.headers)["x-kubeauthn-assertion"]
    keys = two["/.well-known/jwks.json"](Request("GET", "/", HeaderList([]), b"", GivenScope()))
    assert isinstance(keys, Response)
    assert AssertionVerifier(keys.body, audience="shop", issuer="gate").verify(text).username == "jane"
    for query in ("audience=other", "audience=shop&audience=billing", "audience=", "&".join("abcdefghijklmnopqrstuvw")):
        status = ask(one["/auth"], "jane", query=query).status
        assert status == (403 if "audience" in query else status)
        assert status in (200, 403)


def test_options_reach_the_door(tmp_path: Path):
    given = parts("--no-assertion", "--forward-auth-header-prefix", "X-Gate-")
    routes = routes_of(Decisions(), given)
    assert set(routes) == {"/auth"}
    assert dict(ask(routes["/auth"], "jane").headers)["x-gate-user"] == "jane"
    given = parts("--no-assertion", "--forward-auth-original-uri", "X-Forwarded-Uri")
    assert ask(routes_of(Decisions(), given, lambda: ON_HEALTHZ)["/auth"], x_forwarded_uri="/healthz").status == 200
    with pytest.raises(EnvironmentFailure):
        parts("--assertion-key", str(tmp_path / "none"))
    with pytest.raises(UsageError):
        parts("--forward-auth-header-prefix", "X Gate")
    with pytest.raises(UsageError):
        parts("--assertion-seconds", "0")


def test_an_assertion_is_signed_once_while_the_decision_is_remembered_and_anew_when_it_ages():
    kept = Decision("authenticated", UserInfo("jane"), "", "", "i", None, None, True, {})
    now = [1000.0]
    signer = AssertionSigner(given_keys(new_key_pem()), audiences=("a", "b"), seconds=60, clock=lambda: now[0])

    class Kept(Decisions):
        def decide_now(self, token: str) -> Decision | None:
            return kept

    door = ForwardAuth(Kept(), signer=signer)
    first = dict(ask(door, "t").headers)[HEADER.lower()]
    now[0] += 9
    assert dict(ask(door, "t").headers)[HEADER.lower()] == first
    assert dict(ask(door, "t", query="audience=b").headers)[HEADER.lower()] != first
    now[0] += 2
    second = dict(ask(door, "t").headers)[HEADER.lower()]
    assert second != first
    now[0] -= 100  # the clock was set back: what was signed then is not yet good now
    assert dict(ask(door, "t").headers)[HEADER.lower()] != second


def test_a_refusal_has_a_request_id_in_the_answer_and_in_the_log(caplog: pytest.LogCaptureFixture):
    caplog.set_level("INFO", "kubeauthn.server")
    answer = ask(ForwardAuth(Decisions()), "refused")
    request_id = dict(answer.headers)["x-request-id"]
    [told] = [record.fields for record in caplog.records if hasattr(record, "fields")]
    assert (told["request_id"], told["reason"]) == (request_id, "s3cret claim")
    assert "s3cret" not in str(answer)
