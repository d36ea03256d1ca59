"""Which programs there are, from which module, and where they lie once built.

The place is named by a hash of all that goes into a program, so a changed module never finds an old program.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
from dataclasses import dataclass
from functools import cache
from pathlib import Path

__all__ = [
    "CACHE_VARIABLE",
    "CHECKED_ONLY",
    "MINORS",
    "PROGRAMS",
    "SIGNATURE_LAST",
    "Program",
    "cache_directory",
    "find",
    "go_version",
]

HERE = Path(__file__).resolve().parent
MINORS = ("1.37", "1.36", "1.35", "1.34")
"""Kubernetes minors whose code is compared, the newest first."""
CHECKED_ONLY = ("1.33",)
"""Minors of which only what they say of files and expressions is compared: they hand claims to CEL in another form, and
nobody is authenticated by their rules here."""
SIGNATURE_LAST = ("1.35", "1.34")
"""Minors whose go-oidc looks at a token's signature last, so that of two faults of a token it tells another."""
CACHE_VARIABLE = "KUBEAUTHN_PEERS"
"""Names the cache for tests, whose home is not the user's."""
_RECIPE = "trimpath, no cgo, release's version"
_SOURCES = ("*.go", "*.s")


@dataclass(frozen=True)
class Program:
    """A package of a module under tests/peers; `modfile` is another go.mod for its sources, `tags` choose of them."""

    name: str
    module: str
    package: str = "."
    modfile: str = "go.mod"
    tags: str = ""

    @property
    def directory(self) -> Path:
        return HERE / self.module

    def inputs(self) -> list[Path]:
        """Every file that decides what is built."""
        modfile = self.directory / self.modfile
        sources = [file for pattern in _SOURCES for file in self.directory.glob(pattern)]
        return [modfile, modfile.with_suffix(".sum"), *sorted(sources)]

    def path(self) -> Path:
        digest = hashlib.sha256(f"{_RECIPE}\0{go_version()}\0{self.package}{self.tags}".encode())
        for file in self.inputs():
            digest.update(f"\0{file.name}\0".encode())
            digest.update(file.read_bytes())
        return cache_directory() / digest.hexdigest()[:24] / self.name


_LIST = (
    Program("oracle-1.37", "oracle"),
    Program("kubectl", "kubernetes", "k8s.io/kubernetes/cmd/kubectl"),
    Program("kube-apiserver", "kubernetes", "k8s.io/kubernetes/cmd/kube-apiserver"),
    Program("etcd", "etcd"),
    Program("execprobe", "execprobe"),
    Program("helm", "helm", "helm.sh/helm/v3/cmd/helm"),
    Program("k9s", "k9s", "github.com/derailed/k9s"),
    Program("dex", "dex"),
    Program("standalone-python", "standalone-python"),
    Program("oracle-1.36", "oracle", modfile="minors/1.36.mod"),
    Program("oracle-1.35", "oracle", modfile="minors/1.35.mod"),
    Program("oracle-1.34", "oracle", modfile="minors/1.34.mod"),
    Program("oracle-1.33", "oracle", modfile="minors/1.33.mod", tags="plainclaims"),
)
PROGRAMS = {program.name: program for program in _LIST}


def cache_directory() -> Path:
    if os.environ.get(CACHE_VARIABLE):
        return Path(os.environ[CACHE_VARIABLE])
    base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(base) / "kubeauthn" / "peers"


@cache
def go_version() -> str:
    """What `go env GOVERSION` says; empty where there is no Go."""
    go = shutil.which("go")
    if go is None:
        return ""
    # outside the tree: a go.mod must not make go fetch another toolchain for this question
    done = subprocess.run([go, "env", "GOVERSION"], capture_output=True, text=True, timeout=60, check=False, cwd="/")
    return done.stdout.strip()


def find(name: str) -> Path | None:
    """Where a program is, or None if it is not built (or there is no Go to say which it would be)."""
    program = PROGRAMS[name]
    if not go_version() or not all(file.exists() for file in program.inputs()):
        return None
    path = program.path()
    return path if os.access(path, os.X_OK) else None
