"""What the real server remembers of a token ends with the configuration and with the keys that it was decided by."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from kubeauthn.testing import Issuer
from tests.integration.serve_process import Serve, configuration, replace

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

RULE = "  claimValidationRules:\n  - {expression: \"claims.sub != 'jane'\", message: not jane any more}\n"
FROM_MEMORY = 'kubeauthn_decisions_total{outcome="authenticated",'


@pytest.fixture
def issuer() -> Iterator[Issuer]:
    with Issuer() as running:
        yield running


@pytest.fixture
def serve(file: Path) -> Iterator[Serve]:
    with Serve(file) as running:
        yield running.ready()


def times_from_memory(serve: Serve) -> float:
    lines = serve.metrics().splitlines()
    return sum(float(line.split()[-1]) for line in lines if line.startswith(FROM_MEMORY) and 'cached="true"' in line)


def remembered(serve: Serve, token: str) -> None:
    """Asks until the answer has come from memory: from then on it would for ten seconds."""
    before = times_from_memory(serve)
    for _ in range(3):
        assert serve.review(token)["authenticated"] is True
    assert times_from_memory(serve) > before


def test_a_configuration_that_refuses_a_remembered_token_does_so_at_once(
    serve: Serve, file: Path, issuer: Issuer
) -> None:
    token = issuer.token("jane", audience="kubernetes")
    remembered(serve, token)
    replace(file, configuration(issuer) + RULE)
    serve.said("configuration reloaded")
    assert serve.review(token).get("authenticated", False) is False
    assert serve.review(issuer.token("joe", audience="kubernetes"))["authenticated"] is True


def test_a_key_that_the_issuer_withdrew_ends_what_was_remembered_also_after_a_reload(
    serve: Serve, file: Path, issuer: Issuer
) -> None:
    replace(file, configuration(issuer, prefix="new:"))  # keeps the issuer's keys, with a memory of its own
    serve.said("configuration reloaded")
    token = issuer.token("jane", audience="kubernetes")
    remembered(serve, token)
    (old,) = issuer.kids
    issuer.rotate()
    issuer.withdraw(old)
    assert serve.review(token)["authenticated"] is True  # nobody has seen the new keys yet
    assert serve.review(issuer.token("joe", audience="kubernetes"))["authenticated"] is True  # brings them
    assert serve.review(token).get("authenticated", False) is False
