"""What `check` prints for programs: each finding is in it, at its place, in the form that its readers ask for."""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import Any

import pytest

from kubeauthn.cli.main import main
from kubeauthn.cli.world import World

FILE = """\
apiVersion: apiserver.config.k8s.io/v1
kind: AuthenticationConfiguration
jwt:
- issuer:
    url: http://issuer.example
    certificateAuthority: /etc/ca.crt
    audiences: [kubernetes]
    egressSelectorType: cluster
  claimValidationRules:
  - expression: "false"
  claimMappings:
    username: {claim: sub, prefix: "oidc:"}
"""
FINDINGS = [
    ("validation", "error", 5, 5, "jwt[0].issuer.url"),
    ("validation", "error", 6, 5, "jwt[0].issuer.certificateAuthority"),
    ("egress-selector", "note", 8, 5, "jwt[0].issuer.egressSelectorType"),
    ("never-true", "warning", 10, 5, "jwt[0].claimValidationRules[0].expression"),
]


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "a file, odd: 100%.yaml"
    path.write_text(FILE)
    return path


def printed(file: Path, form: str) -> str:
    out = io.StringIO()
    world = World(stdin=io.StringIO(), stdout=out, stderr=io.StringIO(), environ={})
    assert main(["check", str(file), "--output", form], world) == 1
    return out.getvalue()


def test_text(file: Path):
    lines = [line for line in printed(file, "text").splitlines() if line.startswith(f"{file}:")]
    assert lines[-1] == f"{file}: 2 faults, 1 warning, 1 note"
    for line, (rule, level, row, column, field) in zip(lines, FINDINGS, strict=False):
        assert line.startswith(f"{file}:{row}:{column}: {level}: {field}: ")
        assert line.endswith(f" [{rule}]") is (level != "error")


def test_json(file: Path):
    document = json.loads(printed(file, "json"))
    assert (document["ok"], document["files"][0]["ok"], document["files"][0]["file"]) == (False, False, str(file))
    places = [
        (found["rule"], found["level"], found["line"], found["column"], found["field"])
        for found in document["files"][0]["findings"]
    ]
    assert places == FINDINGS
    assert "looks like the path of a file" in document["files"][0]["findings"][1]["hint"]


def test_sarif_has_what_its_schema_requires(file: Path):
    """`required` and the enumerations of SARIF 2.1.0, for every object that is in it."""
    log = json.loads(printed(file, "sarif"))
    assert log["version"] == "2.1.0"
    assert log["$schema"].endswith("sarif-2.1.0.json")
    (run,) = log["runs"]
    driver = run["tool"]["driver"]
    assert driver["name"] == "kubeauthn"
    assert run["columnKind"] in ("utf16CodeUnits", "unicodeCodePoints")
    ids = [rule["id"] for rule in driver["rules"]]
    assert len(ids) == len(set(ids))
    assert all(rule["shortDescription"]["text"] for rule in driver["rules"])
    places = []
    for result in run["results"]:
        assert set(result) == {"ruleId", "level", "message", "locations"}
        assert result["level"] in ("none", "note", "warning", "error")
        assert result["message"]["text"]
        (location,) = result["locations"]
        physical: dict[str, Any] = location["physicalLocation"]
        uri = physical["artifactLocation"]["uri"]
        assert uri.endswith("/a%20file%2C%20odd%3A%20100%25.yaml")
        region = physical["region"]
        assert region["startLine"] >= 1
        assert region["startColumn"] >= 1
        (logical,) = location["logicalLocations"]
        places.append(
            (
                result["ruleId"],
                result["level"],
                region["startLine"],
                region["startColumn"],
                logical["fullyQualifiedName"],
            )
        )
    assert places == FINDINGS
    assert set(ids) == {rule for rule, *_ in FINDINGS}


def test_github(file: Path):
    commands = printed(file, "github").splitlines()
    assert len(commands) == len(FINDINGS)  # one line each, however many lines a text has
    levels = {"error": "error", "warning": "warning", "note": "notice"}
    name = str(file).replace("%", "%25").replace(",", "%2C").replace(":", "%3A")
    for command, (rule, level, row, column, field) in zip(commands, FINDINGS, strict=True):
        head, _, message = command.removeprefix("::").partition("::")
        assert head == f"{levels[level]} file={name},line={row},col={column},title=kubeauthn%3A {rule}"
        assert message.startswith(f"{field}: ")
    assert "%0Ahint: it looks like the path of a file" in commands[1]
