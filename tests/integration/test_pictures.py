"""The pictures of the README are there, small, and what the programs show today."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree

ROOT = Path(__file__).resolve().parents[2]
PICTURE = ROOT / "docs" / "images" / "explain.svg"
SCRIPT = ROOT / "scripts" / "terminal_picture.py"


def run(*words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, *words], cwd=ROOT, capture_output=True, text=True, timeout=50)


def test_the_picture_of_explain_is_what_it_prints():
    result = run(str(SCRIPT), "--check")
    assert result.returncode == 0, result.stdout + result.stderr


def test_a_picture_that_is_old_is_named(tmp_path: Path):
    (tmp_path / "explain.svg").write_text(PICTURE.read_text().replace("refused", "accepted"))
    code = (
        "import sys; from pathlib import Path; from scripts import terminal_picture as t; "
        f"t.TARGET = Path({str(tmp_path / 'explain.svg')!r}); sys.exit(t.main(['--check']))"
    )
    result = run("-c", code)
    assert result.returncode == 1
    assert "run scripts/screenshots" in result.stdout


def test_it_is_text_in_columns_for_light_and_dark_and_fetches_nothing():
    text = PICTURE.read_text()
    assert len(text) < 20_000
    assert "prefers-color-scheme:dark" in text
    assert "http" not in text.replace("http://www.w3.org/2000/svg", "").replace("https://dex.example.com", "")
    root = ElementTree.fromstring(text)  # noqa: S314 - our own file
    name = "{http://www.w3.org/2000/svg}"
    columns = [float(span.attrib["x"]) for span in root.iter(f"{name}tspan") if span.text in ("ok", "refused")]
    assert len(columns) > 8
    assert len(set(columns[:-1])) == 1, "the outcomes stand in one column"


def test_the_readme_shows_both():
    readme = (ROOT / "README.md").read_text()
    for name in ("explain.svg", "playground.png"):
        assert f"](docs/images/{name})" in readme
