"""Tries an installed kubeauthn that has its core dependencies and no extra. Run by scripts/wheel-test."""

from __future__ import annotations

import importlib
import importlib.metadata
import subprocess
import sys
from pathlib import Path

venv = Path(sys.argv[1]).resolve()
bin_folder = venv / "bin"

ADAPTERS_AND_EXTRAS = {
    "httpx": "httpx",
    "requests": "requests",
    "aiohttp": "aiohttp",
    "kubernetes": "kubernetes",
    "kubernetes_aio": "kubernetes",
    "kubernetes_asyncio": "kubernetes-asyncio",
    "lightkube": "lightkube",
    "kr8s": "kr8s",
    "kopf": "kopf",
    "prometheus": "prometheus",
}


def run(*command: str) -> str:
    result = subprocess.run(command, capture_output=True, text=True, timeout=60, stdin=subprocess.DEVNULL)
    if result.returncode != 0:
        sys.exit(f"wheel: {' '.join(command)} ended with {result.returncode}:\n{result.stdout}{result.stderr}")
    return result.stdout


def the_wheel_is_what_is_tested() -> None:
    import kubeauthn

    assert Path(kubeauthn.__file__).resolve().is_relative_to(venv), kubeauthn.__file__
    assert kubeauthn.__version__ == importlib.metadata.version("kubeauthn")
    assert (Path(kubeauthn.__file__).parent / "py.typed").is_file(), "py.typed is not in the wheel"


def both_commands_answer() -> None:
    version = importlib.metadata.version("kubeauthn")
    for command in ("kubeauthn", "kubectl-authn"):
        assert version in run(str(bin_folder / command), "--version")
        assert "usage" in run(str(bin_folder / command), "--help").lower()


def the_doors_open_without_extras() -> None:
    from kubeauthn.client import connect, connect_async
    from kubeauthn.plugin import credential

    assert callable(connect)
    assert callable(connect_async)
    assert callable(credential.run)
    importlib.import_module("kubeauthn.client.httpx2")
    importlib.import_module("kubeauthn.testing")


def a_missing_extra_is_named() -> None:
    from kubeauthn.errors import MissingExtra

    for module, extra in ADAPTERS_AND_EXTRAS.items():
        try:
            importlib.import_module(f"kubeauthn.client.{module}")
        except MissingExtra as error:
            assert f"pip install 'kubeauthn[{extra}]'" in str(error), (module, str(error))
        else:
            sys.exit(f"wheel: kubeauthn.client.{module} was imported without its extra {extra}")


def the_demo_needs_nothing_else() -> None:
    run(str(bin_folder / "kubeauthn"), "demo")


CHECKS = (
    the_wheel_is_what_is_tested,
    both_commands_answer,
    the_doors_open_without_extras,
    a_missing_extra_is_named,
    the_demo_needs_nothing_else,
)

for check in CHECKS:
    check()
    print(f"wheel: {check.__name__.replace('_', ' ')}")
