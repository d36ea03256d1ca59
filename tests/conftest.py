"""What every test gets: an environment of its own, no network in tests/unit, and the `needs` marker."""

from __future__ import annotations

import itertools
import os
import shutil
import signal
import socket
import tempfile
from collections import Counter
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
UNIT = ROOT / "tests" / "unit"
SYSTEM_PARTS = ROOT / "scripts" / "system-parts.txt"

HOME_VARIABLES = ("HOME", "USERPROFILE")

# What a developer's shell or a pod may have set, and what would then decide in the test's place.
FOREIGN_VARIABLES = (
    "KUBECONFIG",
    "KUBERC",
    "KUBERNETES_EXEC_INFO",
    "KUBERNETES_SERVICE_HOST",
    "KUBERNETES_SERVICE_PORT",
    "EXTERNAL_SIGNER_PLUGIN_CONFIG",
    "PYTEST_ADDOPTS",
    "KUBEAUTHN_EXEC_PROXY",
    "KUBEAUTHN_SIGNER_AGENT",
    "XDG_RUNTIME_DIR",
    "XDG_CACHE_HOME",
    "XDG_CONFIG_HOME",
    *(name for proxy in ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY") for name in (proxy, proxy.lower())),
)

LEFT_OUT = "left out for want of"
SESSION_HOME = pytest.StashKey[str]()
HOME_NUMBERS = itertools.count()

# Programs that live where a user's PATH does not look.
SYSTEM_PATH = os.pathsep.join((os.environ.get("PATH", os.defpath), "/usr/sbin", "/sbin"))


def known_parts() -> dict[str, str]:
    """Program to Debian package, from the table that scripts/system-packages reads too."""
    rows = (line.split() for line in SYSTEM_PARTS.read_text().splitlines() if line and not line.startswith("#"))
    return dict((program, package) for program, package in rows)


def in_ci() -> bool:
    return os.environ.get("CI", "").lower() in ("1", "true", "yes")


# -- an environment of its own --------------------------------------------------------------------


def pytest_configure(config: pytest.Config) -> None:
    """Before anything runs, so that fixtures of a session or a module see it too."""
    # `make test &` in a script starts us with Ctrl-C ignored, nohup with hanging up, and what the tests start would
    # inherit that.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    signal.signal(signal.SIGHUP, signal.SIG_DFL)
    home = tempfile.mkdtemp(prefix="kubeauthn-tests-")
    config.stash[SESSION_HOME] = home
    for name in HOME_VARIABLES:
        os.environ[name] = home
    for name in FOREIGN_VARIABLES:
        os.environ.pop(name, None)


def pytest_unconfigure(config: pytest.Config) -> None:
    shutil.rmtree(config.stash[SESSION_HOME], ignore_errors=True)


@pytest.fixture(autouse=True)
def own_environment(pytestconfig: pytest.Config, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty home for each test; the real kubeconfig, kuberc and proxies cannot be seen from it."""
    home = Path(pytestconfig.stash[SESSION_HOME], str(next(HOME_NUMBERS)))
    home.mkdir()
    for name in HOME_VARIABLES:
        monkeypatch.setenv(name, str(home))
    for name in FOREIGN_VARIABLES:
        monkeypatch.delenv(name, raising=False)
    return home


# -- no network in tests/unit ---------------------------------------------------------------------


class NetworkInUnitTest(AssertionError):
    """A test under tests/unit reached for the network. It belongs under tests/integration."""


@pytest.fixture(autouse=True)
def no_network_in_unit_tests(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    if UNIT not in request.path.parents:
        return

    def guarded(method_name: str):
        real = getattr(socket.socket, method_name)

        def method(self: socket.socket, *args, **kwargs):
            if self.family in (socket.AF_INET, socket.AF_INET6):
                raise NetworkInUnitTest(f"a unit test called socket.{method_name}{args!r}")
            return real(self, *args, **kwargs)

        return method

    def no_names(*args, **kwargs):
        raise NetworkInUnitTest(f"a unit test asked for the address of {args!r}")

    for method_name in ("connect", "connect_ex", "bind", "sendto"):
        monkeypatch.setattr(socket.socket, method_name, guarded(method_name))
    monkeypatch.setattr(socket, "getaddrinfo", no_names)


# -- system parts ---------------------------------------------------------------------------------


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    parts = known_parts()
    for item in items:
        for marker in item.iter_markers("needs"):
            unknown = [part for part in marker.args if part not in parts]
            if unknown or not marker.args:
                raise pytest.UsageError(
                    f"{item.nodeid}: needs({', '.join(map(repr, marker.args))}): "
                    f"expected parts named in {SYSTEM_PARTS.name}: {', '.join(parts)}"
                )


def pytest_runtest_setup(item: pytest.Item) -> None:
    wanted = (part for marker in item.iter_markers("needs") for part in marker.args)
    missing = [part for part in wanted if shutil.which(part, path=SYSTEM_PATH) is None]
    if not missing:
        return
    reason = f"needs {', '.join(missing)}, which is not installed"
    if in_ci():
        pytest.fail(f"{reason} (in CI nothing is left out)", pytrace=False)
    item.user_properties += [(LEFT_OUT, part) for part in missing]  # travels in the report, from a worker process too
    pytest.skip(reason)


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    skipped = terminalreporter.stats.get("skipped", ())
    left_out = Counter(part for report in skipped for name, part in report.user_properties if name == LEFT_OUT)
    if not left_out:
        return
    packages = known_parts()
    terminalreporter.section("left out, because a system part is missing")
    for part, count in sorted(left_out.items()):
        tests = "1 test" if count == 1 else f"{count} tests"
        terminalreporter.line(f"{part}: {tests} (Debian package {packages[part]})")
    terminalreporter.line("`make system-packages` installs them, then `make test` runs these tests too")
