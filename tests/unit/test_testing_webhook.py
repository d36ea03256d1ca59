"""What the API server of the tests makes of a webhook's answer: anything but a clear yes is a no."""

from __future__ import annotations

import httpx2
import pytest

from kubeauthn.testing import User
from kubeauthn.testing._webhook import API_VERSION, _user

YES = {"authenticated": True, "user": {"username": "jane"}}


def answered(status: object, *, code: int = 200, **fields: object) -> User | None:
    review = {"apiVersion": API_VERSION, "kind": "TokenReview", "status": status, **fields}
    return _user(httpx2.Response(code, json=review))


def test_a_clear_yes():
    assert answered(YES) == User("jane")
    assert answered(YES, code=201) == User("jane")


@pytest.mark.parametrize(
    "status",
    [
        None,
        [],
        {},
        {"authenticated": False, "user": {"username": "jane"}},
        {"authenticated": "true", "user": {"username": "jane"}},
        {"authenticated": 1, "user": {"username": "jane"}},
        {"authenticated": True},
        {"authenticated": True, "user": "jane"},
        {"authenticated": True, "user": {"username": ["jane"]}},
    ],
)
def test_anything_else_is_no(status: object):
    assert answered(status) is None


@pytest.mark.parametrize("fields", [{"kind": "Status"}, {"apiVersion": "authentication.k8s.io/v1beta1"}])
def test_another_document_is_no(fields: dict[str, object]):
    assert answered(YES, **fields) is None


@pytest.mark.parametrize("code", [204, 302, 401, 500])
def test_another_status_is_no(code: int):
    assert answered(YES, code=code) is None


def test_groups_and_extra_that_are_no_texts_are_left_out():
    user = {"username": "jane", "groups": ["dev", 7, None], "extra": {"a": ["b", 1], "c": "d"}}
    assert answered({"authenticated": True, "user": user}) == User("jane", ("dev",), "", {"a": ("b",), "c": ()})
