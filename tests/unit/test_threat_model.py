"""Each test that the threat model names exists."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs" / "threat-model.md").read_text()
NAMED = sorted({part.partition("`")[0] for part in PAGE.split("| `tests/")[1:]})


def functions(path: Path) -> set[str]:
    return {
        node.name
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef))
    }


@pytest.mark.parametrize("name", NAMED)
def test_the_named_test_exists(name: str):
    file, _, function = name.partition("::")
    path = ROOT / "tests" / file
    assert path.is_file()
    assert not function or function in functions(path)


def test_every_row_names_one():
    rows = [line for line in PAGE.splitlines() if line.startswith("| ") and not line.startswith("| tries to")]
    assert len(rows) > 20
    assert not [row for row in rows if "| `tests/" not in row]
