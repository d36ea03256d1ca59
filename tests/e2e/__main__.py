"""Builds what is missing, runs the tests against the real programs, and prints `N passed, M failed` last.

    python -m tests.e2e [pytest arguments]

Without Go it says so and leaves everything out; with CI=true that is a failure.
"""

from __future__ import annotations

import os
import signal
import sys
import time
from collections.abc import Generator
from pathlib import Path

import pytest

from tests.conftest import in_ci
from tests.e2e.cluster import Cluster
from tests.peers import build, wheels
from tests.peers.programs import CACHE_VARIABLE, cache_directory

HERE = Path(__file__).parent
# Tests that also run, or only run, with programs that are built from Go modules or come in wheels.
ALSO = [
    str(HERE.parent / "integration" / name)
    for name in (
        "test_benchmark_peers.py",
        "test_forward_auth_envoy.py",
        "test_forward_auth_traefik.py",
        "test_k9s.py",
        "test_kubectl_streams.py",
        "test_tls_signer_static.py",
    )
]
NEEDED = ("kubectl", "etcd", "kube-apiserver", "execprobe", "helm", "k9s", "dex", "standalone-python")


class Count:
    """Counts what pytest reports: a test that fails while it is set up or put away has failed."""

    def __init__(self) -> None:
        self.passed = 0
        self.failed: set[str] = set()
        self._began = time.monotonic()
        self._cluster_after: float | None = None

    @property
    def times(self) -> str:
        """How long everybody waited: for a first kube-apiserver that is ready, and for all of it."""
        first = "none" if self._cluster_after is None else f"after {self._cluster_after:.0f} s"
        return f"e2e: first cluster {first}, all {time.monotonic() - self._began:.0f} s"

    @pytest.hookimpl(wrapper=True)
    def pytest_fixture_setup(self, fixturedef: pytest.FixtureDef[object]) -> Generator[None, object, object]:
        made = yield
        if self._cluster_after is None and isinstance(made, Cluster):
            self._cluster_after = time.monotonic() - self._began
        return made

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.failed:
            self.failed.add(report.nodeid)
        elif report.when == "call" and report.passed:
            self.passed += 1

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        if report.failed:
            self.failed.add(report.nodeid)


def main(arguments: list[str]) -> int:
    count = Count()
    status = build.main(list(NEEDED))
    if status == build.NO_GO:
        return left_out("there is no Go here to build kube-apiserver with")
    if status:
        return status
    if wheels.main() and in_ci():
        return 1  # elsewhere the tests that want them are left out, and say so
    # the tests have a home of their own, and the cache is in the real one
    os.environ[CACHE_VARIABLE] = str(cache_directory())
    # ended from outside, pytest still puts everything away, and no API server stays behind
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    result = pytest.main([str(HERE), *ALSO, "-q", "--timeout=180", *arguments], plugins=[count])
    build.say(count.times)
    build.say(f"{count.passed} passed, {len(count.failed)} failed")
    return int(result)


def left_out(reason: str) -> int:
    build.say(f"e2e: left out, {reason}")
    build.say("0 passed, 0 failed")
    return 1 if os.environ.get("CI") else 0  # a machine for tests has everything


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
