"""One pool for each certificate: which is in force, and which are of no more use."""

from __future__ import annotations

import pytest

from kubeauthn._core.credential import ClientIdentity, Credential
from kubeauthn._secret import Secret
from kubeauthn.client.generations import Generations


def identity(name: str) -> ClientIdentity:
    return ClientIdentity(name.encode(), Secret("key"), not_before=0, not_after=1)


class Pools:
    def __init__(self) -> None:
        self.made: list[str] = []

    def make(self, identity: ClientIdentity | None) -> str:
        self.made.append(identity.certificate.decode() if identity else "none")
        return f"pool {len(self.made)} of {self.made[-1]}"


@pytest.fixture
def pools() -> Pools:
    return Pools()


def test_a_credential_keeps_its_pool(pools: Pools):
    generations = Generations(pools.make)
    credential = Credential(identity=identity("a"))
    assert [generations.pool_for(credential) for _ in range(3)] == [("pool 1 of a", [])] * 3


def test_another_token_with_the_same_certificate_keeps_the_pool(pools: Pools):
    generations = Generations(pools.make)
    generations.pool_for(Credential(token=Secret("one"), identity=identity("a")))
    assert generations.pool_for(Credential(token=Secret("two"), identity=identity("a"))) == ("pool 1 of a", [])


def test_another_certificate_retires_the_pool_before(pools: Pools):
    generations = Generations(pools.make)
    generations.pool_for(Credential(identity=identity("a")))
    assert generations.pool_for(Credential(identity=identity("b"))) == ("pool 2 of b", ["pool 1 of a"])
    assert generations.pool_for(Credential(token=Secret("one"))) == ("pool 3 of none", ["pool 2 of b"])


def test_a_late_request_does_not_bring_an_older_certificate_back(pools: Pools):
    generations = Generations(pools.make)
    older, newer = Credential(identity=identity("a")), Credential(identity=identity("b"))
    generations.pool_for(older)
    generations.pool_for(newer)
    assert generations.pool_for(older) == ("pool 3 of a", [])
    assert generations.pool_for(newer) == ("pool 2 of b", ["pool 3 of a"])  # and it does not stay either
    assert generations.pool_for(newer) == ("pool 2 of b", [])


def test_a_late_request_with_the_same_certificate_changes_nothing(pools: Pools):
    generations = Generations(pools.make)
    older = Credential(token=Secret("one"), identity=identity("a"))
    newer = Credential(token=Secret("two"), identity=identity("a"))
    for credential in (older, newer, older, newer):
        assert generations.pool_for(credential) == ("pool 1 of a", [])


def test_the_bare_pool_is_never_retired_and_drained_with_the_rest(pools: Pools):
    generations = Generations(pools.make)
    assert generations.bare_pool() == generations.bare_pool() == "pool 1 of none"
    generations.pool_for(Credential(identity=identity("a")))
    assert generations.pool_for(Credential(identity=identity("b"))) == ("pool 3 of b", ["pool 2 of a"])
    assert sorted(generations.drain()) == ["pool 1 of none", "pool 3 of b"]
    assert generations.drain() == []


def test_a_pool_that_cannot_be_made_leaves_the_old_one_in_force():
    def make(identity: ClientIdentity | None) -> str:
        if identity is not None:
            raise ValueError("no such certificate")
        return "pool"

    generations = Generations(make)
    first = Credential(token=Secret("one"))
    assert generations.pool_for(first) == ("pool", [])
    with pytest.raises(ValueError, match="no such certificate"):
        generations.pool_for(Credential(identity=identity("a")))
    assert generations.pool_for(first) == ("pool", [])
