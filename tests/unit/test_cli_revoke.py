"""`kubeauthn revoke` on a file. Redis is in tests/integration/test_serve_extensions.py."""

from __future__ import annotations

import io
from pathlib import Path

import pytest

from kubeauthn._core.revocation import Revocation, read_list
from kubeauthn.cli.main import run_command
from kubeauthn.cli.world import World
from kubeauthn.errors import EnvironmentFailure, UsageError


def revoke(*words: str) -> int:
    world = World(
        stdin=io.StringIO(), stdout=io.StringIO(), stderr=io.StringIO(), environ={}, clock=lambda: 1769850000.0
    )
    return run_command("revoke", list(words), world)


def test_entries_are_added_once_and_until_now(tmp_path: Path):
    file = tmp_path / "revoked.json"
    for _ in range(2):
        assert revoke("--file", str(file), "--token-id", "a") == 0
    assert revoke("--file", str(file), "--issuer", "https://i.test", "--subject", "jane") == 0
    assert read_list(file.read_text()) == [
        Revocation(token_id="a"),
        Revocation("https://i.test", "", "jane", 1769850000.0),
    ]
    assert file.stat().st_mode & 0o777 == 0o600


def test_a_wrong_list_is_left_as_it_is(tmp_path: Path):
    file = tmp_path / "revoked.yaml"
    file.write_text("revocations: 5")
    with pytest.raises(EnvironmentFailure, match="expected a list"):
        revoke("--file", str(file), "--token-id", "a")
    assert file.read_text() == "revocations: 5"


@pytest.mark.parametrize(
    "words",
    [
        ["--token-id", "a"],
        ["--file", "f"],
        ["--file", "f", "--subject", "jane"],
        ["--file", "f", "--token-id", "a", "--subject", "jane"],
        ["--file", "f", "--issuer", "i", "--issued-until", "soon"],
        ["--file", "f", "--token-id", "a", "--keep-days", "3"],
        ["--redis", "f", "--token-id", "a", "--keep-days", "0"],
    ],
)
def test_arguments_that_do_not_fit_together(words: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(UsageError):
        revoke(*words)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("words", "named"),
    [
        (["--subject", "jane"], "give --token-id JTI, or --issuer URL: a subject is one of an issuer's"),
        ([], "give --token-id JTI, or --issuer URL"),
        (["--token-id", "a", "--subject", "jane"], "--token-id is one token"),
    ],
)
def test_what_is_missing_is_named_as_the_options_are(tmp_path: Path, words: list[str], named: str):
    with pytest.raises(UsageError, match=named):
        revoke("--file", str(tmp_path / "revoked.json"), *words)
