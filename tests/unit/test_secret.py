from __future__ import annotations

import pickle

import pytest

from kubeauthn._secret import Secret


def test_nothing_prints_it() -> None:
    secret = Secret("hunter2")
    shown = [
        repr(secret),
        str(secret),
        f"{secret}",
        f"{secret!r}",
        f"{secret:>20}",
        repr([secret]),
        f"{ {'k': secret} }",
    ]
    assert not any("hunter2" in text for text in shown)


def test_reveal_is_the_way_out() -> None:
    assert Secret("hunter2").reveal() == "hunter2"


def test_equal_by_value_and_only_to_secrets() -> None:
    assert Secret("a") == Secret("a")
    assert Secret("a") != Secret("b")
    assert Secret("a") != "a"
    assert len({Secret("a"), Secret("a"), Secret("b")}) == 2
    assert Secret("\udc80") == Secret("\udc80")


def test_truth_says_whether_there_is_one() -> None:
    assert Secret("a")
    assert not Secret("")


def test_not_pickled() -> None:
    with pytest.raises(TypeError, match="not pickled"):
        pickle.dumps(Secret("hunter2"))
