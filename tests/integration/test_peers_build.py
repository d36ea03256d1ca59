"""Building the programs that the tests run against: it takes minutes, so it says what it does and for how long."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
# In the compiler's place, because the real one takes minutes, or none where all is built.
GO = """\
#!/bin/sh
if [ "$1" = env ]; then echo go9.99; exit; fi
while [ "$1" != -o ]; do shift; done
sleep 1
if [ "$(basename "$2")" = helm ]; then echo 'no such package'; exit 1; fi
echo built > "$2" && chmod +x "$2"
"""
BUILD = (
    "import sys; from tests.peers.build import build, PROGRAMS; "
    "sys.exit(not build(PROGRAMS[sys.argv[1]], report_every=0.25))"
)


def building(folder: Path, name: str) -> subprocess.CompletedProcess[str]:
    go = folder / "go"
    go.write_text(GO)
    go.chmod(0o755)
    environment = {**os.environ, "PATH": f"{folder}{os.pathsep}{os.environ['PATH']}", "KUBEAUTHN_PEERS": str(folder)}
    return subprocess.run(
        [sys.executable, "-c", BUILD, name], cwd=ROOT, env=environment, capture_output=True, text=True, timeout=50
    )


def test_what_is_built_and_for_how_long_is_shown(tmp_path: Path):
    result = building(tmp_path, "etcd")
    lines = result.stdout.splitlines()
    assert result.returncode == 0, result.stderr
    assert lines[0] == "peers: building etcd (go9.99)"
    assert {line.rpartition(":")[0] for line in lines[1:-1]} == {"peers: etcd"}, "so many seconds so far"
    assert lines[-1].startswith("peers: etcd built in ")
    assert building(tmp_path, "etcd").stdout == "", "what is there costs nothing, and no words"


def test_why_it_failed_is_shown_and_nothing_half_done_is_left(tmp_path: Path):
    result = building(tmp_path, "helm")
    assert result.returncode == 1
    assert result.stdout.endswith("peers: helm failed\nno such package\n\n")
    assert [path.name for path in tmp_path.rglob("*") if path.is_file()] == ["go"]
