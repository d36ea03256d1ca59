"""The plugins in examples/ do what docs/plugins.md says of them."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from kubeauthn._core.kubeconfig.model import Cluster, ExecConfig
from kubeauthn.client.exec_source import ExecPlugin

EXAMPLES = Path(__file__).resolve().parents[2] / "examples" / "plugins"
VERSIONS = ("client.authentication.k8s.io/v1", "client.authentication.k8s.io/v1beta1")
PROGRAM = "import sys; from kubeauthn.cli.main import main; sys.exit(main())"


def command(name: str) -> list[str]:
    path = str(EXAMPLES / name)
    return [sys.executable, path] if name.endswith(".py") else [path]


@pytest.fixture
def token_file(own_environment: Path) -> Path:
    file = own_environment / ".config" / "my-plugin" / "token"
    file.parent.mkdir(parents=True)
    file.write_text("the-token\n")
    return file


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("name", ["token-from-file.py", "token-from-file.sh"])
def test_the_client_takes_the_token(name: str, version: str, token_file: Path):
    executable, *arguments = command(name)
    config = ExecConfig(executable, version, args=tuple(arguments), interactive_mode="Never", provide_cluster_info=True)
    made = ExecPlugin(config, Cluster(server="https://127.0.0.1:1")).make_credential()
    assert made.token is not None
    assert made.token.reveal() == "the-token"


@pytest.mark.parametrize(("name", "notes"), [("token-from-file.py", []), ("token-from-file.sh", ["expiry"])])
def test_plugin_check_finds_no_fault(name: str, notes: list[str], token_file: Path):
    result = subprocess.run(
        [sys.executable, "-c", PROGRAM, "plugin", "check", "--output", "json", "--", *command(name)],
        env=dict(os.environ),
        capture_output=True,
        text=True,
        timeout=50,
    )
    assert result.returncode == 0, result.stdout
    report = json.loads(result.stdout)
    assert [entry["check"] for entry in report["checks"] if entry["result"] == "note"] == notes
    assert "the-token" not in result.stdout


def test_the_python_one_without_its_file_fails_and_says_why():
    info = json.dumps({"apiVersion": VERSIONS[0], "kind": "ExecCredential", "spec": {"interactive": False}})
    result = subprocess.run(
        command("token-from-file.py"),
        env={**os.environ, "KUBERNETES_EXEC_INFO": info},
        capture_output=True,
        text=True,
        timeout=30,
    )
    assert result.returncode == 1
    assert result.stdout == ""
    assert result.stderr.startswith("token-from-file.py: error: FileNotFoundError: ")


def test_the_shell_script_has_three_lines():
    assert len((EXAMPLES / "token-from-file.sh").read_text().splitlines()) == 3
