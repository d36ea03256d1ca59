"""Builds the programs of tests/peers into a cache outside the work tree.

    python -m tests.peers.build [NAME …] [--jobs N]

Without names: all of them. A program that is there already costs nothing. The first build of kube-apiserver takes
minutes; what is being built, and for how long, is shown. Without Go it says so and ends with status 3.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from tests.peers.programs import PROGRAMS, Program, find, go_version

NO_GO = 3
LONGEST_BUILD = 45 * 60
REPORT_EVERY = 15.0
"""Seconds."""


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.peers.build", description="build what the tests run against")
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"of {', '.join(PROGRAMS)}; all without")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, help="how many packages at a time")
    options = parser.parse_args(arguments)
    unknown = set(options.names) - set(PROGRAMS)
    if unknown:
        parser.error(f"no such program: {', '.join(sorted(unknown))}")
    if not go_version():
        say("peers: there is no Go here, so nothing is built")
        return NO_GO
    failed = [name for name in options.names or PROGRAMS if not build(PROGRAMS[name], options.jobs)]
    if failed:
        say(f"peers: not built: {', '.join(failed)}")
    return 1 if failed else 0


def build(program: Program, jobs: int = 2, report_every: float = REPORT_EVERY) -> bool:
    """Build one program, unless it is there."""
    if find(program.name):
        return True
    target = program.path()
    target.parent.mkdir(parents=True, exist_ok=True)
    say(f"peers: building {program.name} ({go_version()})")
    started = time.monotonic()
    with tempfile.TemporaryDirectory(dir=target.parent) as scratch:
        made = Path(scratch) / program.name
        failed = _go_build(program, made, jobs, started, report_every)
        if failed:
            say(f"peers: {program.name} failed\n{failed}")
            return False
        made.replace(target)  # whole or not at all, whoever else builds it now
    say(f"peers: {program.name} built in {time.monotonic() - started:.0f} s, {target.stat().st_size >> 20} MiB")
    return True


def _go_build(program: Program, target: Path, jobs: int, started: float, report_every: float) -> str:
    go = shutil.which("go") or "go"
    command = [
        go,
        "build",
        "-trimpath",
        "-buildvcs=false",
        "-mod=readonly",
        f"-p={jobs}",
        f"-modfile={program.modfile}",
    ]
    if program.tags:
        command.append(f"-tags={program.tags}")
    if program.package != ".":
        command.append(f"-ldflags=-s -w {_version_flags(program)}")
    command += ["-o", str(target), program.package]
    environment = {**os.environ, "CGO_ENABLED": "0"}
    with tempfile.TemporaryFile("w+") as output:
        process = subprocess.Popen(command, cwd=program.directory, env=environment, stdout=output, stderr=output)
        try:
            while (code := _wait(process, report_every)) is None:
                spent = time.monotonic() - started
                if spent > LONGEST_BUILD:
                    return f"not done after {LONGEST_BUILD} s"
                say(f"peers: {program.name}: {spent:.0f} s")
        finally:
            if process.poll() is None:
                process.kill()
                process.wait()
        output.seek(0)
        return "" if code == 0 else output.read()[-4000:] or f"go ended with status {code}"


def _version_flags(program: Program) -> str:
    """A released module does not know its own version: the release's build sets it, and so do we."""
    lines = (program.directory / program.modfile).read_text(encoding="utf-8").splitlines()
    release = next((line.split()[1] for line in lines if line.strip().startswith("k8s.io/kubernetes v")), "")
    if not release:
        return ""
    major, minor, _ = release.removeprefix("v").split(".", 2)
    values = {"gitVersion": release, "gitMajor": major, "gitMinor": minor}
    packages = ("k8s.io/component-base/version", "k8s.io/client-go/pkg/version")
    return " ".join(f"-X {package}.{name}={value}" for package in packages for name, value in values.items())


def _wait(process: subprocess.Popen[bytes], seconds: float) -> int | None:
    try:
        return process.wait(seconds)
    except subprocess.TimeoutExpired:
        return None


def say(text: str) -> None:
    print(text, flush=True)


if __name__ == "__main__":
    sys.exit(main())
