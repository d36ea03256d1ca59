"""Importing the client loads nothing that only some of its users need: no HTTP library, no YAML, no cryptography."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

HEAVY = {"httpx2", "httpx", "cryptography", "yaml", "ruamel", "logging", "asyncio", "argparse"}

KUBECONFIG = """\
current-context: c
clusters: [{name: c, cluster: {server: "https://127.0.0.1:1"}}]
contexts: [{name: c, context: {cluster: c, user: u}}]
users: [{name: u, user: {token: t}}]
"""


def loaded_by(program: str, *arguments: str) -> set[str]:
    result = subprocess.run(
        [sys.executable, "-I", "-c", f"import sys\n{program}\nprint(*sys.modules)", *arguments],
        capture_output=True,
        text=True,
        timeout=30,
        check=True,
    )
    return set(result.stdout.split())


def test_the_package_alone_loads_nothing_of_its_own():
    ours = {name for name in loaded_by("import kubeauthn.client") if name.startswith("kubeauthn")}
    assert ours == {"kubeauthn", "kubeauthn.client"}


@pytest.mark.parametrize("module", ["kubeconfig", "access", "sources", "exec_source", "metrics"])
def test_what_every_door_stands_on_loads_nothing_heavy(module: str):
    loaded = loaded_by(f"import kubeauthn.client.{module}")
    assert f"kubeauthn.client.{module}" in loaded
    assert not loaded & HEAVY


def test_a_credential_takes_no_http_library_and_no_cryptography(tmp_path: Path):
    config = tmp_path / "config"
    config.write_text(KUBECONFIG)
    program = "from kubeauthn.client import open_access\nassert open_access(kubeconfig=sys.argv[1]).credential().token"
    loaded = loaded_by(program, str(config))
    assert "yaml" in loaded
    assert not loaded & (HEAVY - {"yaml"})


def test_the_door_itself_loads_one_http_library_and_no_other():
    loaded = loaded_by("from kubeauthn.client import connect")
    assert "httpx2" in loaded
    assert not loaded & {"httpx", "requests", "aiohttp", "kubernetes", "cryptography"}
