"""The npm packages of a peer, installed into the cache outside the work tree: names, versions and hashes are pinned."""

from __future__ import annotations

import hashlib
import shutil
import subprocess
import tempfile
from pathlib import Path

from tests.peers.programs import HERE, cache_directory

_PINNED = ("package.json", "package-lock.json")


def installed(name: str) -> Path | None:
    """The node_modules of a peer; None where there is no npm."""
    source = HERE / name
    digest = hashlib.sha256(b"".join((source / file).read_bytes() for file in _PINNED)).hexdigest()[:24]
    target = cache_directory() / digest
    if (target / "node_modules").is_dir():
        return target / "node_modules"
    npm = shutil.which("npm")
    if npm is None or shutil.which("node") is None:
        return None
    cache_directory().mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=cache_directory()) as scratch:
        for file in _PINNED:
            shutil.copy(source / file, scratch)
        # no scripts: a package has no business running anything while it is installed
        command = [npm, "ci", "--ignore-scripts", "--no-audit", "--no-fund", "--silent"]
        subprocess.run(command, cwd=scratch, check=True, timeout=300, stdin=subprocess.DEVNULL)
        shutil.copytree(scratch, target, dirs_exist_ok=True)
    return target / "node_modules"
