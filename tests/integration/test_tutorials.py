"""The tutorials do what they show: every file is written, every command is run, every output is compared."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from tests.integration.tutorial import Block, blocks, follow

TUTORIALS = Path(__file__).resolve().parents[2] / "docs" / "tutorials"
HARDWARE = "hardware-key"

pytestmark = pytest.mark.timeout(240)  # a tutorial is many programs, each started anew


def environment() -> dict[str, str]:
    """As in a shell whose virtual environment has kubeauthn."""
    programs = Path(sys.executable).parent
    return {**os.environ, "PATH": f"{programs}{os.pathsep}{os.environ['PATH']}", "PYTHONUNBUFFERED": "1"}


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
            stop = [sys.executable, "-m", "kubeauthn", "bridge", "stop", "--all"]
            subprocess.run(stop, env=environ, capture_output=True, timeout=30)


@pytest.mark.parametrize("path", sorted(TUTORIALS.glob("*.md")), ids=lambda path: path.stem)
def test_every_file_of_a_tutorial_is_used(path: Path):
    written = [block.title for block in blocks(path.read_text()) if block.language != "console"]
    text = path.read_text()
    assert [name for name in written if text.count(Path(name).name) < 2] == []


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
        ("```python\nprint(1)\n```\n", "does not run"),
        ("```console\n$ echo a; echo b\na\n```\n", "came:\na\nb"),
    ],
)
def test_the_runner_notices(text: str, complaint: str, tmp_path: Path):
    with pytest.raises(AssertionError) as caught:
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
