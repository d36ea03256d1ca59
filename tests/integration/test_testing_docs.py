"""The examples of docs/testing.md run."""

from __future__ import annotations

from pathlib import Path

import pytest

from kubeauthn import testing

PAGE = Path(__file__).parents[2] / "docs" / "testing.md"
BLOCKS = [part.partition("```")[0] for part in PAGE.read_text().split("```python\n")[1:]]


@pytest.mark.parametrize("number", range(len(BLOCKS)))
def test_example(number):
    exec(compile(BLOCKS[number], f"{PAGE.name}, example {number + 1}", "exec"), {})  # noqa: S102 - our own page


def test_there_are_examples():
    assert len(BLOCKS) >= 5


def test_every_fake_is_on_the_page():
    text = PAGE.read_text()
    assert [
        name for name in testing.__all__ if name not in ("IssuerRequest", "Tunnel", "User") and name not in text
    ] == []
