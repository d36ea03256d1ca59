"""The pages do what they show: every file is written, every command and program is run, every output is compared."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from kubeauthn import testing
from kubeauthn.errors import KubeauthnError
from tests.pages.blocks import Block, blocks
from tests.pages.follow import follow
from tests.pages.stage import Stage

ROOT = Path(__file__).resolve().parents[2]
DOCS = ROOT / "docs"
TUTORIALS = DOCS / "tutorials"
HARDWARE = "hardware-key"
MADE = ("*Made from the code by `", "*Written by `", "`make compat`", "This page is written by `")
"""How a page says that a program wrote it; the tests of that program hold it."""

pytestmark = pytest.mark.timeout(240)  # a page is many programs, each started anew


def is_made(path: Path) -> bool:
    return path.parent.name in ("reference", "compat")


def staged() -> list[Path]:
    """The pages with blocks that a person wrote, but for the tutorials."""
    written = [path for path in DOCS.rglob("*.md") if path.parent != TUTORIALS and not is_made(path)]
    pages = [*sorted(written), *(ROOT / f"{name}.md" for name in ("README", "CONTRIBUTING", "SECURITY"))]
    return [page for page in pages if blocks(page.read_text())]


def parameter(page: Path):
    needs = sorted({part for block in blocks(page.read_text()) for part in block.needs})
    marks = [pytest.mark.needs(*needs)] if needs else []
    return pytest.param(page, id=str(page.relative_to(ROOT)), marks=marks)


def environment() -> dict[str, str]:
    """As in a shell whose virtual environment has kubeauthn."""
    programs = Path(sys.executable).parent
    return {**os.environ, "PATH": f"{programs}{os.pathsep}{os.environ['PATH']}", "PYTHONUNBUFFERED": "1"}


@pytest.mark.parametrize("page", [parameter(page) for page in staged()])
def test_page(page: Path, tmp_path: Path):
    with Stage(tmp_path) as stage, tempfile.TemporaryDirectory(prefix="kubeauthn-") as run:
        environ = {**stage.environ(run), "XDG_STATE_HOME": f"{run}/state"}
        try:
            follow(page, stage.folder, environ, stage.fitted)
        finally:
            stop_bridges(environ)


@pytest.mark.parametrize("name", sorted(path.stem for path in TUTORIALS.glob("*.md") if path.stem != HARDWARE))
def test_tutorial(name: str, tmp_path: Path):
    assert follow(TUTORIALS / f"{name}.md", tmp_path, environment()) >= 5


@pytest.mark.needs("softhsm2-util", "pkcs11-tool", "kubectl")
def test_the_tutorial_with_hardware(tmp_path: Path):
    """SoftHSM2 in place of the hardware. The bridge's sockets want a short path, and nothing may stay behind."""
    with tempfile.TemporaryDirectory(prefix="kubeauthn-") as run:
        environ = {**environment(), "XDG_RUNTIME_DIR": run, "XDG_STATE_HOME": f"{run}/state"}
        try:
            assert follow(TUTORIALS / f"{HARDWARE}.md", tmp_path, environ) >= 15
        finally:
            stop_bridges(environ)


def stop_bridges(environ: dict[str, str]) -> None:
    stop = [sys.executable, "-m", "kubeauthn", "bridge", "stop", "--all"]
    subprocess.run(stop, env=environ, capture_output=True, timeout=30)


@pytest.mark.parametrize("page", [*staged(), *sorted(TUTORIALS.glob("*.md"))], ids=lambda page: page.stem)
def test_every_file_of_a_page_is_used(page: Path):
    """A block that is only written to a file would be a block that does not run."""
    found = blocks(page.read_text())
    used = "\n".join(
        text
        for block in found
        for text in (block.orders.get("first", ""), block.text if block.language in ("console", "sh", "python") else "")
    )
    files = [block.title for block in found if block.title and block.language != "console"]
    assert [name for name in files if Path(name).stem not in used] == []


@pytest.mark.parametrize("path", sorted(TUTORIALS.glob("*.md")), ids=lambda path: path.stem)
def test_a_tutorial_has_files_and_commands_alone(path: Path):
    found = blocks(path.read_text())
    assert [block.line for block in found if block.orders] == []
    assert [block.line for block in found if block.language != "console" and not block.title] == []


@pytest.mark.parametrize(
    "page", sorted(path for path in DOCS.rglob("*.md") if is_made(path)), ids=lambda page: page.stem
)
def test_a_page_that_is_not_followed_was_made_by_a_program(page: Path):
    assert any(sentence in page.read_text()[:1500] for sentence in MADE)


def test_the_readers_of_the_project_have_something_to_run():
    kinds = {block.language for page in staged() for block in blocks(page.read_text()) if block.runs}
    assert {"console", "sh", "python", "yaml", "json"} <= kinds


def test_every_fake_is_on_the_page_about_testing():
    text = (DOCS / "testing.md").read_text()
    aside = ("IssuerRequest", "Tunnel", "User")
    assert [name for name in testing.__all__ if name not in aside and name not in text] == []


# -- the runner itself: it would notice ------------------------------------------------------------


def page(tmp_path: Path, text: str) -> Path:
    path = tmp_path / "page.md"
    path.write_text(text)
    return path


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("```console\n$ echo other\nshown\n```\n", "expected:\nshown\ncame:\nother"),
        ("```console\n$ false\n```\n", "exit code 1"),
        ("```console\n$ true  # exit code 1\n```\n", "exit code 0"),
        ("```python\nraise SystemExit(3)\n```\n", "exit code 3"),
        ("```ruby\nputs 1\n```\n", "nothing runs a block of the kind `ruby`"),
        ("```\n$ true\n```\n", "nothing runs a block of the kind ``"),
        ("```sh\ntrue\nfalse\n```\n", "false\nexit code 1"),
        ("```json\n{\n```\n", "JSONDecodeError"),
        ("```yaml\nkind: AuthenticationConfiguration\n```\n", "apiVersion"),
        ("```yaml\nusers: [{name: jane, user: {exec: {command: x}}}]\n```\n", "interactiveMode"),
        ("```yaml\nsomething: else\n```\n", "nothing reads such YAML"),
        ("```yaml\njobs: {a: {steps: [{run: kubeauthn check x --nonsense}]}}\n```\n", "--nonsense"),
        ("<!-- not run: no time -->\n```sh\nfalse\n```\n", "not one of the reasons: no time"),
        ("<!-- not run: picture -->\n```sh\nfalse\n```\n", "a picture is a `text` block"),
        ("<!-- not run: set-up -->\n```sh\nmake coffee\n```\n", "there is no make coffee"),
        ("<!-- not run: set-up -->\n```sh\npip install '.[coffee]'\n```\n", "no such extra: coffee"),
        ("<!-- not run: set-up -->\n```sh\nkubeauthn check x\n```\n", "kubeauthn could run"),
        ("<!-- not run: hardware -->\n```sh\nkubeauthn signer doctor --nonsense\n```\n", "--nonsense"),
        ("<!-- run by: tests/none.py -->\n```sh\nfalse\n```\n", "there is no tests/none.py"),
        ("<!-- run by: tests/conftest.py -->\n```sh\nfalse\n```\n", "does not read page.md"),
        ("<!-- needs: kubectl -->\ntext\n", "belongs to a block"),
        ("<!-- first: false -->\n```sh\ntrue\n```\n", "what comes first ended with exit code 1"),
        ("```console\n$ echo a; echo b\na\n```\n", "came:\na\nb"),
    ],
)
def test_the_runner_notices(text: str, complaint: str, tmp_path: Path):
    with pytest.raises((AssertionError, KubeauthnError)) as caught:
        follow(page(tmp_path, text), tmp_path, environment())
    assert complaint in str(caught.value)


def test_the_runner_goes_on_where_it_may(tmp_path: Path):
    text = (
        '```text title="greeting"\nhello\n```\n'
        '```console title="second terminal"\n$ echo ready; sleep 60\nready\n```\n'
        "```console\n$ export NAME=jane\n$ cat greeting && \\\n    echo $NAME\nhel…\njane\n$ false  # exit code 1\n"
        "$ seq 9\n1\n…\n9\n```\n"
    )
    assert follow(page(tmp_path, text), tmp_path, environment()) == 5


def test_blocks_are_read_with_their_lines():
    assert blocks('one\n```python title="a.py"\nx\n```\n') == [Block(2, "python", "a.py", "x\n")]
