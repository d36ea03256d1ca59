"""What docs/migration.md shows is true: its command gives a valid file, its rules compile, its functions exist."""

from __future__ import annotations

import importlib
import io
import os
import shlex
from pathlib import Path

import pytest

from kubeauthn.cel import kubernetes
from kubeauthn.cli.main import main
from kubeauthn.cli.world import World
from kubeauthn.server import load_configuration

PAGE = (Path(__file__).resolve().parents[2] / "docs" / "migration.md").read_text()
RULES = [part.partition("`")[0] for part in PAGE.split("a rule: `")[1:]]
FUNCTIONS = sorted({part.partition("(")[0] for part in PAGE.split("`kubeauthn.client.")[1:]})


def printed_by_the_command() -> str:
    command = PAGE.partition("```sh\n")[2].partition("```")[0].replace("\\\n", " ").partition(" > ")[0]
    program, *words = shlex.split(command)
    assert program == "kubeauthn"
    streams = [io.TextIOWrapper(io.BytesIO(), encoding="utf-8", write_through=True) for _ in range(3)]
    assert main(words, World(stdin=streams[0], stdout=streams[1], stderr=streams[2], environ=os.environ)) == 0
    return streams[1].buffer.getvalue().decode()  # type: ignore[attr-defined]


def test_the_command_gives_a_valid_configuration():
    text = printed_by_the_command()
    assert "https://issuer.example" in text
    load_configuration(text)


def test_there_are_rules():
    assert len(RULES) >= 2


@pytest.mark.parametrize("rule", RULES)
def test_the_rules_compile(rule: str):
    kubernetes.claims_environment("1.36").compile(rule)


@pytest.mark.parametrize("rule", RULES)
def test_the_rules_refuse_a_token_without_the_claims_and_do_not_fail(rule: str):
    program = kubernetes.claims_environment("1.36").compile(rule)
    assert program(claims=kubernetes.decode_claims('{"sub": "jane"}')) is False


def test_there_are_functions():
    assert len(FUNCTIONS) >= 5


@pytest.mark.parametrize("name", FUNCTIONS)
def test_the_functions_exist(name: str):
    module, _, function = name.partition(".")
    assert callable(getattr(importlib.import_module(f"kubeauthn.client.{module}"), function))
