"""Programs that come in wheels, brought into the cache outside the work tree: versions and hashes are pinned.

    python -m tests.peers.wheels

What is there already costs nothing. They are not installed: one file of each wheel is the program.
"""

from __future__ import annotations

import hashlib
import shutil
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path

from tests.peers.programs import HERE, cache_directory

_PINNED = HERE / "proxies" / "requirements.txt"
_PROGRAMS = {"envoy": "envoy/_bin/envoy", "traefik": ".data/scripts/traefik"}
"""How the name of each program's file in its wheel ends."""


def find_wheel_program(name: str) -> Path | None:
    path = _place() / name
    return path if path.is_file() else None


def main() -> int:
    if all(find_wheel_program(name) for name in _PROGRAMS):
        return 0
    cache_directory().mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=cache_directory()) as scratch:
        wheels = Path(scratch, "wheels")
        command = [sys.executable, "-m", "pip", "download", "--quiet", "--disable-pip-version-check", "--no-deps"]
        command += ["--only-binary=:all:", "--require-hashes", "--requirement", str(_PINNED), "--dest", str(wheels)]
        if subprocess.run(command, check=False, timeout=600).returncode:
            print("peers: the wheels of envoy and traefik cannot be had here")
            return 1
        made = Path(scratch, "programs")
        made.mkdir()
        for wheel in wheels.iterdir():
            _take_out(wheel, made)
        shutil.copytree(made, _place(), dirs_exist_ok=True)
    missing = [name for name in _PROGRAMS if not find_wheel_program(name)]
    if missing:
        print(f"peers: not in their wheels: {', '.join(missing)}")
    return 1 if missing else 0


def _take_out(wheel: Path, target: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        for inside in archive.namelist():
            for name, ending in _PROGRAMS.items():
                if inside.endswith(ending):
                    with archive.open(inside) as program, (target / name).open("wb") as file:
                        shutil.copyfileobj(program, file)
                    (target / name).chmod(0o755)


def _place() -> Path:
    return cache_directory() / hashlib.sha256(_PINNED.read_bytes()).hexdigest()[:24]


if __name__ == "__main__":
    sys.exit(main())
