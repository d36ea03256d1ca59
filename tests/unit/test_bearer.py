"""Where a request has its token, and what it is told if it has none."""

from __future__ import annotations

from base64 import urlsafe_b64encode

import pytest

from kubeauthn._core.bearer import SUBPROTOCOL_PREFIX, bearer_of, bearer_of_subprotocols, challenge
from kubeauthn._core.jose.limits import TOKEN_CHARACTERS


@pytest.mark.parametrize("value", ["Bearer a.b.c", "bearer a.b.c", "BEARER   a.b.c  ", "\tBearer a.b.c"])
def test_the_scheme_is_found_in_any_case(value: str):
    assert bearer_of([value]).token.reveal() == "a.b.c"


@pytest.mark.parametrize(
    "values", [[], [""], ["Bearer"], ["Bearer  "], ["Basic amFuZTpz"], ["Bearers a.b.c"], ["a.b.c"]]
)
def test_no_token_is_no_fault(values: list[str]):
    assert not bearer_of(values).token
    assert not bearer_of(values).fault


@pytest.mark.parametrize(
    "values",
    [
        ["Bearer a.b.c", "Bearer d.e.f"],
        ["Basic x", "Bearer a.b.c"],
        ["Bearer a b"],
        ["Bearer a.b.c, Bearer d.e.f"],
        ["Bearer a\x00b"],
        ["Bearer gr\xf6"],
        ["Bearer " + "a" * (TOKEN_CHARACTERS + 1)],
    ],
)
def test_what_may_be_two_tokens_or_none_is_a_fault(values: list[str]):
    assert bearer_of(values).fault
    assert not bearer_of(values).token


def carrying(token: str) -> str:
    return SUBPROTOCOL_PREFIX + urlsafe_b64encode(token.encode()).rstrip(b"=").decode()


def test_a_subprotocol_brings_the_token_and_is_taken_away():
    bearer, others = bearer_of_subprotocols(["chat.v2", carrying("a.b.c"), "chat.v1"])
    assert bearer.token.reveal() == "a.b.c"
    assert others == ["chat.v2", "chat.v1"]


@pytest.mark.parametrize(
    "offered",
    [
        [carrying("a.b.c")],
        ["chat", carrying("a"), carrying("b")],
        ["chat", SUBPROTOCOL_PREFIX],
        ["chat", SUBPROTOCOL_PREFIX + "*"],
        ["chat", SUBPROTOCOL_PREFIX + "A"],
        ["chat", SUBPROTOCOL_PREFIX + "____"],
        ["chat", carrying("a b")],
    ],
)
def test_subprotocols_that_cannot_be_right(offered: list[str]):
    bearer, others = bearer_of_subprotocols(offered)
    assert bearer.fault
    assert not bearer.token
    assert not [name for name in others if name.startswith(SUBPROTOCOL_PREFIX)]


def test_a_token_is_never_shown():
    assert "s3cret" not in repr(bearer_of(["Bearer s3cret"]))
    assert "s3cret" not in bearer_of(["Bearer s3cret s3cret"]).fault


def test_the_challenge():
    assert challenge("kubeauthn") == 'Bearer realm="kubeauthn"'
    text = challenge('a"b', "invalid_token", 'it\'s\r\n"x" größer')
    assert text == "Bearer realm=\"a'b\", error=\"invalid_token\", error_description=\"it's'''x' gr''er\""
