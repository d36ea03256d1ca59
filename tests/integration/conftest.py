"""What the tests of `kubeauthn serve` begin with: an issuer, a configuration for it, and a token that it made.

A module that needs another one defines its own of that name.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from kubeauthn.testing import Issuer
from tests.integration.serve_process import configuration

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


@pytest.fixture(scope="module")
def issuer() -> Iterator[Issuer]:
    with Issuer() as running:
        yield running


@pytest.fixture
def file(issuer: Issuer, tmp_path: Path) -> Path:
    path = tmp_path / "authn.yaml"
    path.write_text(configuration(issuer))
    return path


@pytest.fixture
def token(issuer: Issuer) -> str:
    return issuer.token("jane", audience="kubernetes", groups=["dev", "ops"])
