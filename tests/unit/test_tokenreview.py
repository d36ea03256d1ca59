"""TokenReview as bytes: what is read, what is answered, and what is never told."""

from __future__ import annotations

import json
from types import MappingProxyType
from typing import Any

import pytest

from kubeauthn._core.authentication.verdict import UserInfo
from kubeauthn._core.tokenreview import (
    Review,
    authenticated,
    common_audiences,
    read_review,
    refused,
)
from kubeauthn.errors import NotAReview

V1 = "authentication.k8s.io/v1"


def body(**changes: Any) -> bytes:
    return json.dumps({"apiVersion": V1, "kind": "TokenReview", "spec": {"token": "t"}} | changes).encode()


def test_a_question_is_read_and_what_is_unknown_passed_over() -> None:
    asked = body(metadata={"creationTimestamp": None}, status={"authenticated": True}, other=1)
    assert read_review(asked) == Review(V1, "t")
    assert read_review(body(spec={"token": "t", "audiences": ["a", "b"], "x": 1})) == Review(V1, "t", ("a", "b"))
    assert read_review(body(apiVersion=f"{V1}beta1")).version == f"{V1}beta1"
    assert read_review(body(spec={"token": "t", "audiences": None})).audiences == ()


@pytest.mark.parametrize(
    ("sent", "text"),
    [
        (b"", "the body is not JSON"),
        (b"[" * 1_000_000, "the body is not JSON"),
        (b"\xff", "the body is not JSON"),
        (b"null", "expected a TokenReview, not null"),
        (b"[]", "expected a TokenReview, not a list"),
        (b'"x"', "expected a TokenReview, not a string"),
        (body(kind="Pod"), f"expected kind TokenReview of {V1} or {V1}beta1"),
        (body(apiVersion="authentication.k8s.io/v2"), f"expected kind TokenReview of {V1} or {V1}beta1"),
        (body(apiVersion=["x"]), f"expected kind TokenReview of {V1} or {V1}beta1"),
        (body(spec=None), "token is required for TokenReview in authentication"),
        (body(spec={"token": ""}), "token is required for TokenReview in authentication"),
        (body(spec={"token": ["t"]}), "token is required for TokenReview in authentication"),
        (body(spec={"token": "t", "audiences": "a"}), "spec.audiences: expected a list of strings"),
        (body(spec={"token": "t", "audiences": [1]}), "spec.audiences: expected a list of strings"),
        (body(spec={"token": "t", "audiences": ["a"] * 1001}), "spec.audiences: expected at most 1000, not 1001"),
    ],
)
def test_what_cannot_be_answered(sent: bytes, text: str) -> None:
    with pytest.raises(NotAReview) as caught:
        read_review(sent)
    assert str(caught.value) == text


def test_a_question_does_not_print_its_token() -> None:
    assert "s3cret" not in repr(Review(V1, "s3cret"))


@pytest.mark.parametrize(
    ("api", "asked", "common"),
    [
        ((), (), ()),
        ((), ("evil",), ()),
        (("api",), (), ("api",)),
        (("api", "b"), ("b", "evil"), ("b",)),
        (("api",), ("evil",), None),
    ],
)
def test_audiences(api: tuple[str, ...], asked: tuple[str, ...], common: tuple[str, ...] | None) -> None:
    assert common_audiences(api, asked) == common


def test_answers() -> None:
    user = UserInfo("jane", "u1", ("dev",), MappingProxyType({"example.com/a": ("1", "2")}))
    whole = {"kind": "TokenReview", "apiVersion": V1, "metadata": {}, "spec": {}}
    described = {"username": "jane", "uid": "u1", "groups": ["dev"], "extra": {"example.com/a": ["1", "2"]}}
    status = {"authenticated": True, "user": described, "audiences": ["api"]}
    assert json.loads(authenticated(V1, user, ("api",))) == whole | {"status": status}
    bare = {"authenticated": True, "user": {"username": "jane"}}
    assert json.loads(authenticated(V1, UserInfo("jane")))["status"] == bare
    assert json.loads(refused(V1)) == whole | {"status": {"authenticated": False}}
    assert json.loads(refused(V1, "why"))["status"] == {"authenticated": False, "error": "why"}
