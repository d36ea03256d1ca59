from __future__ import annotations

import os
import signal

import pytest

from kubeauthn._core.credential import ClientIdentity, Credential
from kubeauthn._secret import Secret
from kubeauthn.client.generations import Generations


def identity(name: str) -> ClientIdentity:
    return ClientIdentity(name.encode(), Secret(f"key of {name}"), not_before=0, not_after=1)


def new() -> Generations[list[ClientIdentity | None]]:
    return Generations(lambda of: [of])


def test_a_new_certificate_gets_a_new_pool_and_retires_the_old_one() -> None:
    generations = new()
    first, retired = generations.pool_for(Credential(identity=identity("a")))
    assert retired == []
    second, retired = generations.pool_for(Credential(identity=identity("b")))
    assert second is not first
    assert retired == [first]


def test_the_same_certificate_or_only_a_new_token_keeps_the_pool() -> None:
    generations = new()
    first, _ = generations.pool_for(Credential(token=Secret("1"), identity=identity("a")))
    assert generations.pool_for(Credential(token=Secret("2"), identity=identity("a"))) == (first, [])
    tokens = new()
    pool, _ = tokens.pool_for(Credential(token=Secret("1")))
    assert tokens.pool_for(Credential(token=Secret("2")))[0] is pool


def test_a_late_request_with_an_old_credential_does_not_bring_its_certificate_back() -> None:
    generations = new()
    old, current = Credential(identity=identity("a")), Credential(identity=identity("b"))
    generations.pool_for(old)
    pool, _ = generations.pool_for(current)
    late, retired = generations.pool_for(old)
    assert late is not pool
    assert retired == []
    assert generations.pool_for(current) == (pool, [late])
    assert generations.pool_for(current) == (pool, [])


def test_requests_with_their_own_authorization_show_no_certificate_and_outlive_rotation() -> None:
    generations = new()
    generations.pool_for(Credential(identity=identity("a")))
    bare = generations.bare_pool()
    assert bare == [None]
    generations.pool_for(Credential(identity=identity("b")))
    assert generations.bare_pool() is bare
    assert len(generations.drain()) == 2


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_a_forked_child_makes_connections_of_its_own_and_is_not_stuck() -> None:
    """Two processes on one TLS connection would spoil it, and encrypt with the same key and nonce."""
    generations = new()
    credential = Credential(identity=identity("a"))
    pool, _ = generations.pool_for(credential)
    bare = generations.bare_pool()
    with generations._lock:  # the worst moment: some thread holds the lock
        child = os.fork()
        if child == 0:
            signal.alarm(5)
            own, retired = generations.pool_for(credential)
            os._exit(0 if own is not pool and retired == [] and generations.bare_pool() is not bare else 1)
    assert os.waitpid(child, 0)[1] == 0
    assert generations.pool_for(credential) == (pool, [])
