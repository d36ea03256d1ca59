"""The recorded answers of the real kube-apiserver, and the command that runs them."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from kubeauthn.testing.recorded import main

ROOT = Path(__file__).parents[3]
RECORDED = ROOT / "tests" / "recorded" / "cel.jsonl"
KNOWN = ROOT / "tests" / "recorded" / "known.toml"
UPSTREAM = ROOT.parent / "shared" / "cases" / "upstream"


def test_every_recorded_expression(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["cel", str(RECORDED), "--known", str(KNOWN)]) == 0
    assert capsys.readouterr().out.splitlines()[-1] == "917 passed, 0 failed"


@pytest.mark.parametrize(("kind", "file"), [("cel", "cel.jsonl"), ("cel-spec", "cel_spec.jsonl")])
def test_other_suites(kind: str, file: str, capsys: pytest.CaptureFixture[str]) -> None:
    path = UPSTREAM / file
    if not path.exists():
        pytest.skip("the other projects' cases are not here")
    assert main([kind, str(path), "--known", str(KNOWN)]) == 0
    assert capsys.readouterr().out.splitlines()[-1].endswith(" passed, 0 failed")


CASE = {"name": "c/1", "expr": "claims.a", "claims": '{"a": 1}'}
RIGHT = {"outputType": "google.protobuf.Any", "value": {"double": "1"}, "cost": 2}


@pytest.mark.parametrize(
    ("expect", "what"),
    [
        ({**RIGHT, "cost": 3}, "cost"),
        ({**RIGHT, "value": {"int": "1"}}, "verdict"),
        ({**RIGHT, "outputType": "dyn"}, "verdict"),
        ({"outputType": "google.protobuf.Any", "evalError": "no"}, "verdict"),
        ({"compileError": "no"}, "verdict"),
    ],
)
def test_a_mismatch_fails_unless_it_is_listed(
    expect: dict[str, object], what: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    cases = tmp_path / "cases.jsonl"
    cases.write_text(
        "\n".join(json.dumps({**CASE, "name": name, "expect": e}) for name, e in (("ok", RIGHT), ("c/1", expect)))
    )
    known = tmp_path / "known.toml"
    known.write_text("")
    assert main(["cel", str(cases), "--known", str(known)]) == 1
    output = capsys.readouterr().out
    assert f"c/1: {what}: 'claims.a'\n  MISMATCH" in output
    assert output.splitlines()[-1] == "1 passed, 1 failed"
    known.write_text('[cel]\n"c/1" = "a reason"\n')
    assert main(["cel", str(cases), "--known", str(known)]) == 0
    output = capsys.readouterr().out
    assert "known: a reason" in output
    assert "1 of the differences are listed as known" in output
    assert output.splitlines()[-1] == "2 passed, 0 failed"


def test_variants_are_all_right(tmp_path: Path) -> None:
    cases = tmp_path / "cases.jsonl"
    wrong = {**RIGHT, "value": {"double": "2"}}
    cases.write_text(json.dumps({**CASE, "volatile": True, "expect": wrong, "variants": [json.dumps(RIGHT)]}))
    assert main(["cel", str(cases)]) == 0


def test_spec_mismatches_are_seen(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    cases = tmp_path / "spec.jsonl"
    rows = [
        {"id": "a", "expr": "1 + 1", "want": {"kind": "value", "value": ["int", "2"], "type": "int"}},
        {"id": "b", "expr": "1 + 1", "want": {"kind": "value", "value": ["uint", "2"]}},
        {"id": "c", "expr": "1 + 1", "want": {"kind": "error"}},
        {"id": "d", "expr": "[]", "check_only": True, "want": {"kind": "type", "type": "list(int)"}},
    ]
    cases.write_text("\n".join(map(json.dumps, rows)))
    assert main(["cel-spec", str(cases)]) == 1
    assert capsys.readouterr().out.splitlines()[-1] == "1 passed, 3 failed"


def test_any_files_may_be_named_and_all_are_judged(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Files of that format from elsewhere: without names, with empty lines, in an old version, several at once."""
    first, second = tmp_path / "mine.jsonl", tmp_path / "other.txt"
    old = {"expr": "[1].first().hasValue()", "claims": "{}", "kubernetes": "1.32"}
    refused = {"compileError": "another text"}
    nameless = {key: value for key, value in CASE.items() if key != "name"}
    first.write_text("\n\n" + json.dumps({**nameless, "expect": {**RIGHT, "cost": 9}}) + "\n\n")
    user = {"expr": "user.username", "env": "user", "user": {"username": "jane"}}
    right = {"outputType": "string", "value": {"string": "jane"}}
    rows = [{**user, "name": "u", "expect": right}, {**old, "name": "old", "expect": refused}]
    second.write_text("\n".join(map(json.dumps, rows)))
    known = tmp_path / "known.toml"
    known.write_text('[cel]\nold = "worded otherwise"\n')
    assert main(["cel", str(first), str(second), "--known", str(known)]) == 1
    lines = capsys.readouterr().out.splitlines()
    assert "mine.jsonl:3: cost: 'claims.a'" in lines
    assert "mine.jsonl: 1 cases, 1 differ in cost; 0 of the differences are listed as known" in lines
    assert "0 passed, 1 failed" in lines
    assert "other.txt: 2 cases, 1 differ in compile text; 1 of the differences are listed as known" in lines
    assert lines[-1] == "2 passed, 0 failed"


def test_the_list_of_another_kind_excuses_nothing(tmp_path: Path) -> None:
    cases, known = tmp_path / "cases.jsonl", tmp_path / "known.toml"
    cases.write_text(json.dumps({**CASE, "expect": {**RIGHT, "cost": 9}}))
    known.write_text('[cel-spec]\n"c/1" = "a reason"\n')
    assert main(["cel", str(cases), "--known", str(known)]) == 1


def test_the_command_says_what_it_says_in_its_exit_status(tmp_path: Path) -> None:
    cases = tmp_path / "cases.jsonl"
    command = [sys.executable, "-m", "kubeauthn.testing.recorded", "cel", str(cases)]
    for expect, status, last in ((RIGHT, 0, "1 passed, 0 failed"), ({**RIGHT, "cost": 9}, 1, "0 passed, 1 failed")):
        cases.write_text(json.dumps({**CASE, "expect": expect}))
        done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=tmp_path)
        assert (done.returncode, done.stdout.splitlines()[-1]) == (status, last)
