"""The reference pages are what the code gives."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from kubeauthn import errors
from kubeauthn.cli.main import COMMANDS

ROOT = Path(__file__).resolve().parents[2]
PAGES = ROOT / "docs" / "reference"


def test_the_committed_pages_are_what_the_script_writes():
    """In a process of its own: it imports every adapter's library."""
    result = subprocess.run(
        [sys.executable, "scripts/reference_pages.py", "--check"], cwd=ROOT, capture_output=True, text=True, timeout=110
    )
    assert result.returncode == 0, result.stdout + result.stderr


def test_a_page_that_differs_is_named(tmp_path: Path):
    code = (
        "import sys; from pathlib import Path; from scripts import reference_pages as r; "
        "r.FOLDER = Path(sys.argv[1]); r.PAGES = {'errors': r.errors}; sys.exit(r.main(['--check']))"
    )
    (tmp_path / "errors.md").write_text((PAGES / "errors.md").read_text().replace("UsageError", "OtherError", 1))
    result = subprocess.run(
        [sys.executable, "-c", code, str(tmp_path)], cwd=ROOT, capture_output=True, text=True, timeout=110
    )
    assert result.returncode == 1
    assert result.stdout == "docs/reference/errors.md is not what the code gives: run scripts/reference\n"


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_has_a_section(command: str):
    assert f"\n## {command}\n" in (PAGES / "commands.md").read_text()


def test_every_error_has_a_row():
    page = (PAGES / "errors.md").read_text()
    names = [name for name, value in vars(errors).items() if isinstance(value, type) and issubclass(value, Exception)]
    assert len(names) > 20
    assert not [name for name in names if f"\n| `{name}` |" not in page]


@pytest.mark.parametrize(
    "name", ["`rest_client_exec_plugin_call_total`", "`kubeauthn_decisions_total`", "`apiserver_authentication_"]
)
def test_metrics_of_both_ends_are_there(name: str):
    assert name in (PAGES / "metrics.md").read_text()
