"""`kubeauthn test`: suites are read strictly, judged exactly, and reported so that nothing in them is obeyed."""

from __future__ import annotations

import io
import json
import xml.etree.ElementTree as ElementTree
from pathlib import Path
from typing import Any

import pytest

from kubeauthn._core.authentication.suite import read_suite
from kubeauthn.cli.main import main
from kubeauthn.cli.world import World

CONFIG = """\
apiVersion: apiserver.config.k8s.io/v1
kind: AuthenticationConfiguration
jwt:
- issuer: {url: https://issuer.example, audiences: [kubernetes]}
  claimValidationRules:
  - {claim: hd, requiredValue: example.com}
  - {expression: 'claims.?level.orValue(0) > 1', message: the level is too low}
  claimMappings:
    username: {claim: sub, prefix: "oidc:"}
    groups: {claim: groups, prefix: ""}
    extra: [{key: example.com/a, valueExpression: 'claims.?a.orValue("")'}]
  userValidationRules:
  - {expression: 'user.username != "oidc:root"'}
"""
CLAIMS = {"sub": "jane", "hd": "example.com", "level": 2}


def run(folder: Path, cases: list[dict[str, Any]], *options: str, config: str = CONFIG) -> tuple[int, str, str]:
    (folder / "authn.yaml").write_text(config)
    suite = {"configuration": "authn.yaml", "now": "2030-01-01T00:00:00Z", "cases": cases}
    (folder / "suite.json").write_text(json.dumps(suite))
    out, err = io.StringIO(), io.StringIO()
    world = World(stdin=io.StringIO(), stdout=out, stderr=err, environ={})
    code = main(["test", str(folder / "suite.json"), *options], world)
    return code, out.getvalue(), err.getvalue()


def case(expect: Any, **claims: Any) -> dict[str, Any]:
    return {"name": "a case", "claims": {**CLAIMS, **claims}, "expect": expect}


@pytest.mark.parametrize(
    "one",
    [
        case({"username": "oidc:jane"}),
        case({"username": "oidc:jane", "uid": "", "groups": [], "extra": {}}),
        case({"groups": ["a", "b"]}, groups=["a", "b"]),
        case({"groups": "a"}, groups="a"),
        case({"extra": {"example.com/a": "b"}}, a="b", jti="1"),
        case({"extra": {"authentication.kubernetes.io/credential-id": ["JTI=1"]}}, jti="1"),
        case({"refused": True}, level=1),
        case({"refused": "level is too low"}, level=1),
        case({"refused": "claimValidationRules[1]"}, level=1),
        case({"refused": "jwt[0].claimValidationRules[1]"}, level=1),
        case({"refused": "userValidationRules[0]"}, sub="root"),
        case({"refused": "claimMappings.username"}, sub=""),
        case({"refused": "expired"}, exp=1),
        case({"notMine": True}, iss="https://else.example"),
        {**case({"username": "oidc:b"}), "claims": '{"sub": "a", "sub": "b", "hd": "example.com", "level": 2}'},
    ],
)
def test_a_case_that_is_met(tmp_path: Path, one: dict[str, Any]):
    code, out, err = run(tmp_path, [one])
    assert (code, err) == (0, ""), out
    assert out.endswith("1 passed, 0 failed\n")


@pytest.mark.parametrize(
    "one",
    [
        case({"username": "jane"}),
        case({"uid": "x"}),
        case({"groups": ["b", "a"]}, groups=["a", "b"]),
        case({"groups": []}, groups=["a"]),
        case({"extra": {}}, a="b"),
        case({"refused": True}),
        case({"refused": "level"}, hd="else"),
        case({"refused": "claimValidationRules[1]"}, hd="else"),
        case({"refused": True}, iss="https://else.example"),
        case({"notMine": True}),
        case({"notMine": True}, level=1),
        case({"username": "oidc:jane"}, level=1),
    ],
)
def test_a_case_that_is_not_met(tmp_path: Path, one: dict[str, Any]):
    code, out, _ = run(tmp_path, [one])
    assert code == 1
    assert "FAILED  a case (line " in out
    assert out.endswith("0 passed, 1 failed\n")


SEVERAL_RULES = CONFIG.replace(
    "  - {claim: hd, requiredValue: example.com}\n",
    "  - {expression: claims.team == 'a'}\n  - {expression: claims.none == 'a'}\n"
    "  - {claim: hd, requiredValue: example.com}\n",
)


@pytest.mark.parametrize(
    ("claims", "refusing"),
    [({"hd": "else"}, 2), ({}, 1), ({"none": "a"}, 0), ({"none": "a", "team": "a", "level": 0}, 3)],
)
def test_of_several_unmet_rules_the_one_that_gave_the_reason_counts(tmp_path: Path, claims: Any, refusing: int):
    """A rule by claim comes first, then an expression that fails, then one that is false: as in kube-apiserver."""
    for index in range(4):
        one = case({"refused": f"claimValidationRules[{index}]"}, **{"team": "b", **claims})
        code, out, _ = run(tmp_path, [one], config=SEVERAL_RULES)
        assert code == (0 if index == refusing else 1), out
        assert (f"(jwt[0].claimValidationRules[{refusing}])\n" in out) is (index != refusing), out


def test_coverage_counts_the_rules_that_failed(tmp_path: Path):
    _, out, _ = run(tmp_path, [case({"refused": True}, hd="else", level=1)], "--output", "json")
    (suite,) = json.loads(out)["suites"]
    assert suite["rulesNoCaseMadeFail"] == ["jwt[0].userValidationRules[0]"]


def test_the_documented_json_is_what_is_printed(tmp_path: Path):
    page = (Path(__file__).parents[2] / "docs" / "commands.md").read_text()
    section = page.partition("\n## test\n")[2].partition("\n## ")[0]
    shown = json.loads(section.partition("```json\n")[2].partition("```")[0])
    printed = json.loads(run(tmp_path, [case({"username": "oidc:jane"})], "--output", "json")[1])
    assert list(printed) == list(shown)
    assert list(printed["suites"][0]) == list(shown["suites"][0])
    assert list(printed["suites"][0]["cases"][0]) == list(shown["suites"][0]["cases"][0])


def test_junit_holds_whatever_a_name_holds(tmp_path: Path):
    evil = {**case({"username": "<&\"']]>\x00\x1b"}), "name": "<evil> & \x1b \"'"}
    code, _, _ = run(
        tmp_path, [evil, {**case({"username": "oidc:jane"}), "name": "good"}], "--junit", str(tmp_path / "r")
    )
    assert code == 1
    root = ElementTree.parse(tmp_path / "r").getroot()  # noqa: S314 - we wrote it
    (suite,) = root
    assert (suite.get("tests"), suite.get("failures")) == ("2", "1")
    first, second = suite
    assert first.get("name") == "<evil> & \\x1b \"'"
    assert first[0].tag == "failure"
    assert len(second) == 0


def test_a_report_that_cannot_be_written(tmp_path: Path):
    code, _, err = run(tmp_path, [case({"username": "oidc:jane"})], "--junit", str(tmp_path / "none" / "r"))
    assert code == 4
    assert "no such file or directory" in err


FINE = "configuration: a\ncases:\n- {name: x, claims: {}, expect: {notMine: true}}\n"


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("", (1, "a suite is an object")),
        ("a: [", (2, "yaml: ")),
        ("cases: []\nconfiguration: x\n", (1, "a suite needs cases")),
        (FINE.replace("configuration: a\n", ""), (1, "a suite needs configuration")),
        (FINE.replace("configuration: a", "configuration: 1"), (1, "configuration is a text")),
        (FINE + "case: 1\n", (4, 'a suite has no field "case"')),
        (FINE + "now: soon\n", (4, "now is a time")),
        (FINE.replace("name: x, ", ""), (3, "a case needs a name")),
        (FINE.replace("claims: {}, ", ""), (3, "claims or a token")),
        (FINE.replace("claims: {}", "claims: {}, token: x"), (3, "claims or a token")),
        (FINE.replace("claims: {}", "claims: []"), (3, "claims are an object")),
        (FINE.replace("claims: {}", "claims: {a: .inf}"), (3, "infinity")),
        (FINE.replace("{notMine: true}", "{}"), (3, "expect is empty")),
        (FINE.replace("{notMine: true}", "{notMine: false}"), (3, "notMine is true")),
        (FINE.replace("{notMine: true}", "{notMine: true, username: x}"), (3, "stands alone")),
        (FINE.replace("{notMine: true}", "{refused: 1}"), (3, "refused is")),
        (FINE.replace("{notMine: true}", "{groups: [1]}"), (3, "groups: a text or a list")),
        (FINE.replace("{notMine: true}", "{extra: x}"), (3, "extra is an object")),
        (FINE.replace("{notMine: true}", "{username: 1}"), (3, "username is a text")),
        (FINE.replace("{notMine: true}", "{user: 1}"), (3, 'expect has no field "user"')),
        (FINE + "- {name: x, claims: {}, expect: {notMine: true}}\n", (4, "two cases are called")),
        (FINE + "---\na: 1\n", (4, "one document")),
    ],
)
def test_faults_of_a_suite_have_a_line(text: str, fault: tuple[int, str]):
    suite, faults = read_suite(text.encode())
    assert suite is None
    assert any(found.line == fault[0] and fault[1] in found.text for found in faults), faults


def test_bytes_that_are_no_text_and_depth_without_end():
    assert read_suite(b"\xff")[1]
    assert read_suite(b"[" * 100_000)[1]


def test_a_fine_suite_has_none():
    suite, faults = read_suite(FINE.encode())
    assert faults == []
    assert suite is not None
    assert [one.name for one in suite.cases] == ["x"]


def test_what_is_given_for_a_suite_or_its_claims_is_told(tmp_path: Path):
    (tmp_path / "authn.yaml").write_text(CONFIG)
    err = io.StringIO()
    world = World(stdin=io.StringIO(), stdout=io.StringIO(), stderr=err, environ={})
    assert main(["test", str(tmp_path / "authn.yaml")], world) == 4
    assert "\nhint: it is what is tested: a suite is a file beside it" in err.getvalue()
    code, _, said = run(tmp_path, [{"name": "a", "claims": "{'sub': 1}", "expect": {"refused": True}}])
    assert code == 4
    assert ": the claims are no JSON: expecting property name enclosed in double quotes, line 1 column 2" in said
    code, _, said = run(tmp_path, [{"name": "a", "claims": "sub: jane", "expect": {"refused": True}}])
    assert 'hint: they are an object such as {"sub": "jane"}' in said
