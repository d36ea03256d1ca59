"""The rules of the house that a reader could forget and a test does not."""

from __future__ import annotations

import ast
import inspect
import subprocess
import tomllib
from pathlib import Path

import pytest

from kubeauthn import errors

ROOT = Path(__file__).resolve().parents[2]
LONGEST_FILE = 600
UNCLEAR_NAMES = {"utils", "util", "helpers", "helper", "common", "manager", "misc"}
# Split, so that this file does not hold what it looks for.
UNFINISHED = ("TO" + "DO", "FIX" + "ME")
# Errors between private modules. A caller meets what they are turned into, or catches them by their public base.
INTERNAL_ERRORS = {
    "BadHeader",
    "ClaimNeeded",
    "CryptokiError",
    "FileFailure",
    "NotCompact",
    "ProxyFault",
    "Unreachable",
    "UntrustedServer",
    "UnusableKey",
    "YamlSyntaxError",
}
TEXT_SUFFIXES = {".py", ".md", ".toml", ".txt", ".yaml", ".yml", ".json", ".sh", ""}


def tracked_files() -> list[Path]:
    """What git tracks or would track; the whole tree where there is no repository, as in an sdist."""
    listing = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        cwd=ROOT,
        capture_output=True,
        text=True,
    )
    if listing.returncode == 0:
        names = [name for name in listing.stdout.split("\0") if name]
        return sorted(path for name in names if (path := ROOT / name).is_file())
    made_here = {".git", ".venv", ".venv-newest", "dist", "__pycache__"}
    return sorted(
        path for path in ROOT.rglob("*") if path.is_file() and not made_here & set(path.relative_to(ROOT).parts)
    )


FILES = tracked_files()
SOURCES = [path for path in FILES if path.suffix == ".py" and path.is_relative_to(ROOT / "src")]
CORE = [path for path in SOURCES if path.is_relative_to(ROOT / "src" / "kubeauthn" / "_core")]


def short(path: Path) -> str:
    return str(path.relative_to(ROOT))


def test_there_is_something_to_check():
    assert ROOT / "src" / "kubeauthn" / "errors.py" in SOURCES
    assert CORE


def test_source_files_are_short():
    long = {short(path): lines for path in SOURCES if (lines := len(path.read_text().splitlines())) >= LONGEST_FILE}
    assert not long


def test_module_names_say_what_is_inside():
    assert not [short(path) for path in SOURCES if {path.stem, path.parent.name} & UNCLEAR_NAMES]


def test_nothing_is_left_unfinished():
    found = [
        f"{short(path)}:{number}"
        for path in FILES
        if path.suffix in TEXT_SUFFIXES and path.name != "LICENSE"
        for number, line in enumerate(path.read_text(errors="replace").splitlines(), 1)
        if any(word in line for word in UNFINISHED)
    ]
    assert not found


def test_core_never_asks_for_the_time():
    """`now` is an argument. import-linter keeps out the module time; the clock of datetime is seen in the calls."""
    asks = [
        f"{short(path)}:{node.lineno}"
        for path in CORE
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.Call)
        and isinstance(node.func, ast.Attribute)
        and node.func.attr in ("now", "utcnow", "today")
    ]
    assert not asks


def test_core_takes_from_urllib_only_what_splits_a_url():
    """import-linter sees only the name urllib, and urllib.parse is as pure as the core itself."""
    taken = {
        name
        for path in CORE
        for node in ast.walk(ast.parse(path.read_text()))
        for name in imported_names(node)
        if name.partition(".")[0] == "urllib"
    }
    assert taken <= {"urllib.parse"}


def imported_names(node: ast.AST) -> list[str]:
    if isinstance(node, ast.ImportFrom):
        if node.module == "urllib":
            return [f"urllib.{alias.name}" for alias in node.names]
        return [node.module or ""]
    return [alias.name for alias in node.names] if isinstance(node, ast.Import) else []


# -- errors ---------------------------------------------------------------------------------------


def error_classes() -> list[type[BaseException]]:
    return [
        value
        for value in vars(errors).values()
        if inspect.isclass(value) and issubclass(value, BaseException) and value.__module__ == errors.__name__
    ]


def drawn_tree() -> dict[str, str | None]:
    """The tree in the docstring: each class and the one it hangs from."""
    assert errors.__doc__ is not None
    parents: dict[str, str | None] = {}
    branch: list[tuple[int, str]] = []
    for line in errors.__doc__.splitlines():
        name = line.lstrip(" │├└─").split(" ")[0]
        if not name or not (line.startswith("    K") or "─" in line):
            continue
        depth = line.index(name)
        while branch and branch[-1][0] >= depth:
            branch.pop()
        parents[name] = branch[-1][1] if branch else None
        branch.append((depth, name))
    return parents


def test_every_error_descends_from_the_root():
    assert not [cls.__name__ for cls in error_classes() if not issubclass(cls, errors.KubeauthnError)]


def test_the_tree_in_the_docstring_is_the_tree_of_the_classes():
    real = {
        cls.__name__: None if cls is errors.KubeauthnError else cls.__bases__[0].__name__ for cls in error_classes()
    }
    assert drawn_tree() == real


def test_every_error_has_a_docstring_of_its_own():
    assert not [cls.__name__ for cls in error_classes() if "__doc__" not in vars(cls) or not cls.__doc__]


def test_errors_are_defined_in_one_place():
    """A caller catches what `kubeauthn.errors` holds.

    CEL has a tree of its own, and what is called `_Private`, or sits in a module that is, never reaches a caller.
    """
    known = {cls.__name__ for cls in error_classes()}
    bases = known | {"Exception", "BaseException", "ValueError", "RuntimeError", "OSError", "TypeError", "KeyError"}
    strays = [
        f"{short(path)}:{node.lineno} {node.name}"
        for path in SOURCES
        if path.name != "errors.py" and not path.name.startswith("_")
        if not path.is_relative_to(ROOT / "src" / "kubeauthn" / "cel")
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.ClassDef) and not node.name.startswith("_") and node.name not in INTERNAL_ERRORS
        if any(ast.unparse(base).rpartition(".")[2] in bases for base in node.bases)
    ]
    assert not strays


# -- project files --------------------------------------------------------------------------------


def test_changelog_has_an_unreleased_section():
    assert "## [Unreleased]" in (ROOT / "CHANGELOG.md").read_text().splitlines()


SMALLER_CONSTRAINTS = ["constraints-core.txt", "constraints-demo.txt", "constraints-serve.txt"]


@pytest.mark.parametrize("name", ["constraints.txt", *SMALLER_CONSTRAINTS])
def test_constraints_pin_and_hash_everything_and_name_no_address(name: str):
    text = (ROOT / name).read_text()
    assert "://" not in text
    assert "--index" not in text
    requirements = [block for block in text.replace("\\\n", "").splitlines() if block and block[0] not in " #"]
    assert requirements
    assert not [block[:60] for block in requirements if "==" not in block or "--hash=sha256:" not in block]


@pytest.mark.parametrize("name", SMALLER_CONSTRAINTS)
def test_the_smaller_constraints_are_a_part_of_the_whole(name: str):
    """So that `make test` after `make demo` adds packages, and changes none."""

    def pins(file: str) -> set[str]:
        return {line.split()[0] for line in (ROOT / file).read_text().splitlines() if "==" in line.split(" ")[0]}

    assert pins(name)
    assert pins(name) < pins("constraints.txt")


@pytest.mark.parametrize("name", ["Makefile", "deploy/Containerfile", "scripts/wheel-test"])
def test_pinned_packages_are_installed_without_resolving(name: str):
    """pip before 23.3 overlooks the pin of what is also wanted with an extra, and fails once that has a new release."""
    installing = [line for line in (ROOT / name).read_text().splitlines() if "--require-hashes" in line]
    assert installing
    assert not [line for line in installing if "--no-deps" not in line]


def test_the_extra_called_all_holds_every_other():
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    named = [
        name for line in extras.pop("all") for name in line.removeprefix("kubeauthn[").removesuffix("]").split(",")
    ]
    assert sorted(named) == sorted(extras)
