"""What is not installed is named, with the extra that brings it: by every adapter module, and by the commands."""

from __future__ import annotations

import json
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

import kubeauthn.client

ROOT = Path(__file__).resolve().parents[2]

LIBRARY_AND_EXTRA = {
    "httpx": ("httpx", "httpx"),
    "requests": ("requests", "requests"),
    "aiohttp": ("aiohttp", "aiohttp"),
    "kubernetes": ("kubernetes", "kubernetes"),
    "kubernetes_aio": ("kubernetes", "kubernetes"),
    "kubernetes_asyncio": ("kubernetes_asyncio", "kubernetes-asyncio"),
    "lightkube": ("lightkube", "lightkube"),
    "kr8s": ("kr8s", "kr8s"),
    "kopf": ("kopf", "kopf"),
    "prometheus": ("prometheus_client", "prometheus"),
}
"""Modules of `kubeauthn.client` that need more than the core brings."""

WITHOUT = """
import sys
for name in sys.argv.pop(1).split(","):
    sys.modules[name] = None
"""

NAMES_THE_EXTRA = (
    WITHOUT
    + """
import importlib, json
from kubeauthn.errors import MissingExtra
named = {}
for module in sys.argv[1:]:
    try:
        importlib.import_module(f"kubeauthn.client.{module}")
    except MissingExtra as error:
        named[module] = [error.extra, str(error).removeprefix(error.package)]
print(json.dumps(named))
"""
)


def test_the_table_holds_every_module_that_is_named_after_a_library():
    modules = Path(kubeauthn.client.__file__).parent.glob("[!_]*.py")
    importing = {path.stem for path in modules if "MissingExtra(" in path.read_text()}
    assert importing == set(LIBRARY_AND_EXTRA)
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    assert {extra for _, extra in LIBRARY_AND_EXTRA.values()} <= set(extras)


def test_every_module_names_its_extra():
    libraries = ",".join(sorted({library for library, _ in LIBRARY_AND_EXTRA.values()}))
    result = subprocess.run(
        [sys.executable, "-c", NAMES_THE_EXTRA, libraries, *LIBRARY_AND_EXTRA],
        capture_output=True,
        text=True,
        timeout=50,
    )
    assert result.returncode == 0, result.stderr
    assert json.loads(result.stdout) == {
        module: [extra, f" is not installed: pip install 'kubeauthn[{extra}]'"]
        for module, (_, extra) in LIBRARY_AND_EXTRA.items()
    }


@pytest.mark.parametrize("command", [["raw", "/version"], ["whoami"], ["doctor", "--online"]], ids=lambda argv: argv[0])
def test_a_command_names_the_extra_it_lacks(command: list[str], tmp_path: Path):
    config = tmp_path / "config"
    config.write_text(
        "current-context: c\n"
        'clusters: [{name: c, cluster: {server: "https://cluster.test", proxy-url: "socks5://127.0.0.1:1"}}]\n'
        "contexts: [{name: c, context: {cluster: c, user: u}}]\n"
        "users: [{name: u, user: {token: t}}]\n"
    )
    program = f"{WITHOUT}\nfrom kubeauthn.cli.main import main\nsys.exit(main(sys.argv[1:]))\n"
    result = subprocess.run(
        [sys.executable, "-c", program, "socksio", *command, "--kubeconfig", str(config)],
        capture_output=True,
        text=True,
        timeout=50,
    )
    assert result.returncode == 4, result.stderr
    said = result.stdout + result.stderr
    assert "socksio is not installed: pip install 'kubeauthn[socks]'" in said


@pytest.mark.parametrize(
    ("without", "options", "said"),
    [
        ("granian", [], "granian is not installed: pip install 'kubeauthn[serve]'"),
        ("redis", ["--revocation-redis", "address"], "redis is not installed: pip install 'kubeauthn[redis]'"),
        ("opentelemetry", ["--tracing"], "opentelemetry-api is not installed: pip install 'kubeauthn[otel]'"),
    ],
)
def test_serve_names_the_extra_it_lacks(without: str, options: list[str], said: str, tmp_path: Path):
    (tmp_path / "authn.yaml").write_text("apiVersion: apiserver.config.k8s.io/v1\nkind: AuthenticationConfiguration\n")
    (tmp_path / "address").write_text("redis://127.0.0.1:1")
    program = f"{WITHOUT}\nfrom kubeauthn.cli.main import main\nsys.exit(main(sys.argv[1:]))\n"
    result = subprocess.run(
        [sys.executable, "-c", program, without, "serve", "authn.yaml", "--listen", "127.0.0.1:0", *options],
        capture_output=True,
        text=True,
        timeout=50,
        cwd=tmp_path,
    )
    assert result.returncode == 4, result.stderr
    assert said in result.stderr
