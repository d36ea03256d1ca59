"""The image of deploy/Containerfile, built and run without a registry, a daemon or an OCI runtime.

The base is made of Debian's own packages (mmdebstrap), the build is buildah's with chroot isolation, and what came out
is run as a pod runs it: its own processes and mounts, a read-only root, the image's user, no capability, and our
program as process 1. Root is needed for all of it, and packages: from where this machine's own apt and pip get them.
"""

from __future__ import annotations

import ast
import json
import os
import pwd
import shlex
import shutil
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping

ROOT = Path(__file__).resolve().parents[2]
BASE = "localhost/base"
IMAGE = "localhost/kubeauthn"
STEP_SECONDS = 240

# What says where this machine's pip looks; the rest of its configuration is no business of the build.
PIP_SETTINGS = ("index-url", "extra-index-url", "trusted-host", "cert", "proxy", "default-timeout", "retries")

# What every container runtime gives, and nothing else: a /dev of its own, a /proc of its own, a writable /tmp.
# Then the root is made read-only, and the rights are given away for good.
ENTER = """
mount --bind "$ROOT" "$ROOT"
mount -t tmpfs -o mode=755 tmpfs "$ROOT/dev"
for node in null zero full random urandom; do touch "$ROOT/dev/$node"; mount --bind "/dev/$node" "$ROOT/dev/$node"; done
ln -s /proc/self/fd "$ROOT/dev/fd"
mkdir -m 1777 "$ROOT/dev/shm"
mount -t tmpfs -o mode=1777 tmpfs "$ROOT/dev/shm"
mount -t tmpfs -o mode=1777,size=16m tmpfs "$ROOT/tmp"
mount -t proc proc "$ROOT/proc"
for volume in $VOLUMES; do mount --bind "${volume%%:*}" "$ROOT${volume##*:}"; done
mount -o remount,bind,ro "$ROOT"
exec chroot "$ROOT" /usr/bin/setpriv --reuid "${OWNER%%:*}" --regid "${OWNER##*:}" --clear-groups \
    --bounding-set=-all --inh-caps=-all --no-new-privs -- /usr/bin/env -i "$@"
"""


class PackagesOutOfReachError(Exception):
    """Nothing is wrong with the image: what it is made of cannot be downloaded here."""


def why_not() -> str | None:
    """What no package can bring: being root, and a kernel that lets root mount."""
    if os.geteuid() != 0:
        return "only root can build and enter an image this way"
    tried = subprocess.run(
        ["unshare", "--mount", "--pid", "--fork", "true"], capture_output=True, text=True, check=False
    )
    return f"no mounts of one's own here: {tried.stderr.strip()}" if tried.returncode else None


class ContainerImage:
    """Built in `scratch`, which `remove` empties."""

    def __init__(self, scratch: Path) -> None:
        self._scratch = scratch
        self._store = ("--root", f"{scratch}/store", "--runroot", f"{scratch}/run", "--storage-driver", "vfs")

    def build(self) -> None:
        base = self._buildah("from", "scratch")
        made = _tried("mmdebstrap", "--quiet", "--variant=essential", "--include=python3-venv,python3-pip",
                      "--dpkgopt=force-unsafe-io", "--dpkgopt=path-exclude=/usr/share/doc/*",
                      "--dpkgopt=path-exclude=/usr/share/man/*",
                      _suite(), self._buildah("mount", base), *_debian_archives())  # fmt: skip
        if made.returncode != 0:
            raise PackagesOutOfReachError(f"no base of Debian's packages (mmdebstrap ended with {made.returncode})")
        self._buildah("commit", "--quiet", "--rm", base, BASE)
        settings = self._scratch / "pip.conf"
        try:
            mounts = _pip_settings(settings)
            if not _index_answers(settings, self._scratch / "tried"):
                raise PackagesOutOfReachError("pip gets no package here with the settings that the build would have")
            self._buildah("build", "--quiet", "--isolation", "chroot", "--network", "host", "--pull-never",
                          "--build-arg", f"BASE={BASE}", *(word for mount in mounts for word in ("--volume", mount)),
                          "--file", "deploy/Containerfile", "--tag", IMAGE, ".")  # fmt: skip
        finally:
            settings.unlink(missing_ok=True)  # an index may have a password in its address
        self.config: dict[str, Any] = json.loads(self._buildah("inspect", "--type", "image", IMAGE))["OCIv1"]["config"]
        self.root = Path(self._buildah("mount", self._buildah("from", "--pull-never", IMAGE)))

    def command(self, volumes: Mapping[str, Path]) -> list[str]:
        """What starts the image's program, its arguments to follow. `volumes`: path in the image to folder here."""
        for path in volumes:
            (self.root / path.lstrip("/")).mkdir(parents=True, exist_ok=True)
        settings = {
            "ROOT": str(self.root),
            "OWNER": self.config["User"],
            "VOLUMES": " ".join(f"{folder}:{path}" for path, folder in volumes.items()),
        }
        script = "".join(f"{name}={shlex.quote(value)}\n" for name, value in settings.items()) + ENTER
        return ["unshare", "--mount", "--propagation", "private", "--pid", "--fork", "--kill-child",
                "sh", "-euc", script, "enter", *self.config["Env"], *self.config["Entrypoint"]]  # fmt: skip

    def remove(self) -> None:
        self._buildah("rm", "--all")
        shutil.rmtree(self._scratch)

    def _buildah(self, command: str, *arguments: str) -> str:
        return _run("buildah", *self._store, command, *arguments).strip()


def first_process(unshare: int) -> int:
    """The process that believes it is number 1."""
    (child,) = Path(f"/proc/{unshare}/task/{unshare}/children").read_text().split()
    return int(child)


def _tried(*command: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(command, capture_output=True, text=True, timeout=STEP_SECONDS, check=False, cwd=ROOT)


def _run(*command: str) -> str:
    done = _tried(*command)
    assert done.returncode == 0, f"{command[0]} {command[1]}: {done.stdout[-2000:]}{done.stderr[-4000:]}"
    return done.stdout


def _suite() -> str:
    rows = dict(line.split("=", 1) for line in Path("/etc/os-release").read_text().splitlines() if "=" in line)
    return rows["VERSION_CODENAME"].strip('"')


def _debian_archives() -> list[str]:
    """As lines of a sources.list; none where apt has not looked yet, and mmdebstrap then takes Debian's own name."""
    listed = _tried("apt-get", "indextargets", "--format", "$(REPO_URI) $(RELEASE)",
                    "Created-By: Packages", "Origin: Debian", "Component: main")  # fmt: skip
    return [f"deb {line} main" for line in dict.fromkeys(listed.stdout.splitlines())]


def _index_answers(settings: Path, folder: Path) -> bool:
    """One small package that the image needs, by those settings alone."""
    others = {name: value for name, value in os.environ.items() if not name.startswith("PIP_")}
    command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-cache-dir", "--no-deps", "--dest", str(folder)]
    done = subprocess.run([*command, "hatchling"], env={**others, "PIP_CONFIG_FILE": str(settings)},
                          capture_output=True, timeout=STEP_SECONDS, check=False)  # fmt: skip
    return done.returncode == 0


def _pip_settings(file: Path) -> list[str]:
    """Writes how this machine's pip reaches its index, and returns what must be mounted for it."""
    home = pwd.getpwuid(os.getuid()).pw_dir  # a test's HOME is empty
    listed = subprocess.run([sys.executable, "-m", "pip", "config", "list"], env={**os.environ, "HOME": home},
                            capture_output=True, text=True, timeout=STEP_SECONDS, check=True)  # fmt: skip
    found: dict[str, str] = {}
    for line in listed.stdout.splitlines():
        name, _, value = line.partition("=")
        setting = name.rpartition(".")[2]
        if setting in PIP_SETTINGS:
            found[setting] = ast.literal_eval(value)
    file.touch(mode=0o600)
    lines = [f"{name} = {value.replace(chr(10), chr(10) + '  ')}\n" for name, value in found.items()]
    file.write_text("[global]\n" + "".join(lines))
    mounts = [f"{file}:/etc/pip.conf:ro"]
    if "cert" in found:
        mounts.append(f"{found['cert']}:{found['cert']}:ro")
    return mounts
