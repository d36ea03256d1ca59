"""The cache that docs/plugin-practice.md shows works as the page says."""

from __future__ import annotations

import os
import stat
import time
from pathlib import Path

PAGE = Path(__file__).resolve().parents[2] / "docs" / "plugin-practice.md"
CODE = PAGE.read_text().partition("```python\n")[2].partition("```")[0]


def test_the_cache_of_the_page(own_environment: Path):
    shown: dict[str, object] = {}
    exec(compile(CODE, PAGE.name, "exec"), shown)  # noqa: S102 - our own page
    read, write = shown["read"], shown["write"]
    assert read("key") is None
    write("key", "t0ken", time.time() + 300)
    assert read("key") == "t0ken"
    folder = own_environment / ".cache" / "my-plugin"
    assert [path.name for path in folder.iterdir()] == ["key"]
    assert stat.S_IMODE(os.stat(folder).st_mode) == 0o700
    assert stat.S_IMODE(os.stat(folder / "key").st_mode) == 0o600
    write("key", "t0ken", time.time() + 30)
    assert read("key") is None, "it ends within the minute"
    (folder / "key").write_text("{")
    assert read("key") is None, "broken"
