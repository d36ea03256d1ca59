"""docs/commands.md names every command and every option, and the JSON it shows is what is printed."""

from __future__ import annotations

import json
import os
from importlib import import_module
from pathlib import Path

import pytest

from kubeauthn._core.credential import Credential
from kubeauthn._core.kubeconfig.model import Cluster, ExecConfig, Target, User
from kubeauthn._secret import Secret
from kubeauthn.cli.arguments import CommandParser
from kubeauthn.cli.client_options import add_client_options
from kubeauthn.cli.credential import describe
from kubeauthn.cli.diagnosis.findings import Findings
from kubeauthn.cli.main import COMMANDS
from kubeauthn.cli.world import real_world

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs" / "commands.md").read_text()
CLIENT_OPTIONS = "Options of the commands that talk to a cluster"


def section(title: str) -> str:
    _, found, rest = PAGE.partition(f"\n## {title}\n")
    assert found, f"docs/commands.md has no section {title}"
    return rest.partition("\n## ")[0]


def long_options(add_arguments) -> set[str]:
    parser = CommandParser(real_world(), "test")
    add_arguments(parser)
    return {name for action in parser._actions for name in action.option_strings if name.startswith("--")} - {"--help"}


def documented(text: str) -> set[str]:
    words = text.replace("`", " ").replace(",", " ").replace("|", " ").replace("\\", " ").split()
    return {word for word in words if word.startswith("--") and word.strip("-")}


SHARED = long_options(add_client_options)


def test_the_shared_options_are_documented():
    assert documented(section(CLIENT_OPTIONS)) == SHARED


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_and_long_option_is_documented(name: str):
    options = long_options(import_module(f"kubeauthn.cli.{COMMANDS[name][0]}").add_arguments)
    text = section(name)
    assert f"| [`{name}`](#{name.replace(' ', '-')}) | {COMMANDS[name][1]} |" in PAGE
    own = options - SHARED if options >= SHARED else options
    in_tables = {
        word for line in text.splitlines() if line.startswith("| `") for word in documented(line.split(" | ")[0])
    }
    assert in_tables == own


def shown_json(title: str) -> dict[str, object]:
    value = json.loads(section(title).partition("```json\n")[2].partition("```")[0])
    assert isinstance(value, dict)
    return value


def test_the_json_of_credential_has_the_documented_fields():
    target = Target(Cluster("https://x"), User(exec=ExecConfig("p", "client.authentication.k8s.io/v1")))
    token = "eyJhbGciOiJub25lIn0.e30.c2ln"
    printed = describe(target, Credential(token=Secret(token), expires_at=10.0), 0.0)
    shown = shown_json("credential")
    assert list(printed) == list(shown)
    assert list(printed["token"]["jwt"]) == list(shown["token"]["jwt"])  # type: ignore[index]
    assert list(printed["plugin"]) == list(shown["plugin"])  # type: ignore[call-overload]


def test_the_json_of_doctor_has_the_documented_fields():
    findings = Findings()
    findings.fault("plugin", "command", "value", "hint")
    printed = findings.as_json()
    shown = shown_json("doctor")
    assert list(printed) == list(shown)
    assert list(printed["findings"][0]) == list(shown["findings"][1])  # type: ignore[index]


def test_the_exit_codes_are_documented():
    from kubeauthn.cli import failure

    codes = {value for name, value in vars(failure).items() if name.isupper() and isinstance(value, int)}
    rows = [line for line in section("Exit codes").splitlines() if line.startswith("| ") and line[2].isdigit()]
    assert {int(row.split(os.sep)[0].split("|")[1]) for row in rows} == codes
