"""The documents are true: links lead somewhere, examples import what exists, tables name what is there."""

from __future__ import annotations

import ast
import importlib
import json
import tomllib
from pathlib import Path

import pytest

from kubeauthn.testing.recorded_authn import Judge

ROOT = Path(__file__).resolve().parents[2]
DOCUMENTS = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")])


def short(path: Path) -> str:
    return str(path.relative_to(ROOT))


def link_targets(markdown: str) -> list[str]:
    return [rest.partition(")")[0] for rest in markdown.split("](")[1:]]


def python_blocks() -> list[tuple[str, str]]:
    blocks = []
    for path in DOCUMENTS:
        for number, rest in enumerate(path.read_text().split("```python\n")[1:], 1):
            blocks.append((f"{short(path)} block {number}", rest.partition("```")[0]))
    return blocks


def test_every_link_between_documents_leads_somewhere():
    broken = [
        f"{short(path)}: {target}"
        for path in DOCUMENTS
        for target in link_targets(path.read_text())
        if "://" not in target and not target.startswith("#")
        if not (path.parent / target.partition("#")[0]).exists()
    ]
    assert not broken


@pytest.mark.parametrize("code", [pytest.param(code, id=name) for name, code in python_blocks()])
def test_examples_are_python_and_import_what_exists(code: str):
    if code.startswith("@"):
        code += "def test(): ..."
    for node in ast.walk(ast.parse(code)):
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("kubeauthn"):
            assert node.module is not None
            module = importlib.import_module(node.module)
            for alias in node.names:
                if not hasattr(module, alias.name):
                    importlib.import_module(f"{node.module}.{alias.name}")


def test_readme_has_an_example_for_each_audience():
    assert sum(name.startswith("README.md") for name, _ in python_blocks()) >= 3


def test_readme_names_every_adapter_and_every_extra():
    readme = (ROOT / "README.md").read_text()
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    libraries = {name.replace("-", "_") for name in extras} | {"httpx2", "kubernetes_aio"}
    adapters = {path.stem for path in (ROOT / "src/kubeauthn/client").glob("*.py")} & libraries
    missing = [name for name in (*adapters, *extras) if name != "all" and f"`{name}`" not in readme]
    assert not missing


def test_readme_says_how_many_recorded_answers_are_the_same():
    recorded = ROOT / "tests" / "recorded"
    judge = Judge(json.loads((recorded / "jwks.json").read_text()))
    same = on_purpose = others = 0
    for line in (recorded / "authn.jsonl").read_text().splitlines():
        case = json.loads(line)
        meant = case.pop("ours", None)
        if not judge(case):
            same += 1
        elif meant:
            on_purpose += 1
        else:
            others += 1
    said = " ".join((ROOT / "README.md").read_text().split())
    assert (
        f"to {same} of {same + on_purpose + others} tokens and configurations; {on_purpose} differ on purpose" in said
    )
    assert f"and {others} in the words of an error" in said
    expressions = len((recorded / "cel.jsonl").read_text().splitlines())
    assert f"{expressions} of {expressions} CEL expressions" in said


def test_index_lists_every_document_and_decision_record():
    docs = ROOT / "docs"
    listed = set(link_targets((docs / "index.md").read_text()))
    there = [path.relative_to(docs).as_posix() for path in (*docs.glob("*.md"), *docs.glob("adr/*.md"))]
    assert not [name for name in there if name not in listed and name != "index.md"]
