"""What kube-apiserver answered to 828 configurations and tokens, and the command that compares."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from kubeauthn.testing.recorded import main

ROOT = Path(__file__).parents[3]
RECORDED = ROOT / "tests" / "recorded" / "authn.jsonl"
JWKS = ROOT / "tests" / "recorded" / "jwks.json"
KNOWN = ROOT / "tests" / "recorded" / "known.toml"
UPSTREAM = ROOT.parent / "shared" / "cases" / "upstream" / "authn.jsonl"


def last_line(capsys: pytest.CaptureFixture[str]) -> str:
    return capsys.readouterr().out.splitlines()[-1]


def test_every_recorded_configuration_and_token(capsys):
    assert main(["authn", str(RECORDED), "--jwks", str(JWKS), "--known", str(KNOWN)]) == 0
    assert last_line(capsys) == "828 passed, 0 failed"


def test_the_cases_of_kubernetes_own_suites(capsys):
    if not UPSTREAM.exists():
        pytest.skip("the other projects' cases are not here")
    assert main(["authn", str(UPSTREAM), "--jwks", str(JWKS), "--known", str(KNOWN)]) == 0
    assert last_line(capsys) == "97 passed, 0 failed"


def case_named(name: str) -> dict[str, Any]:
    with RECORDED.open(encoding="utf-8") as lines:
        found: dict[str, Any] = next(case for case in map(json.loads, lines) if case["name"] == name)
    return found


def judged(case: dict[str, Any], tmp_path: Path, capsys: pytest.CaptureFixture[str], *, listed: bool) -> str:
    """What is printed about a case; "" if it passes."""
    cases = tmp_path / "cases.jsonl"
    cases.write_text(json.dumps(case))
    known = tmp_path / "known.toml"
    known.write_text(f"[authn]\n{json.dumps(case['name'])} = 'a reason'\n" if listed else "")
    status = main(["authn", str(cases), "--jwks", str(JWKS), "--known", str(known)])
    output = capsys.readouterr().out
    assert output.splitlines()[-1] == ("1 passed, 0 failed" if status == 0 else "0 passed, 1 failed")
    return "" if status == 0 else output


GOOD = "decode/ok-json"
FAULTY = "audiences/blank-mid"
UNDECODABLE = "decode/metadata-field"
REFUSED = "cvr/expr-err-then-false"


@pytest.mark.parametrize(
    ("name", "wrong", "what"),
    [
        (GOOD, {"authenticated": False, "error": "no"}, "verdict"),
        (GOOD, {"authenticated": False}, "verdict"),
        (GOOD, {"authenticated": True, "user": {"username": "eve", "uid": "", "groups": [], "extra": {}}}, "user"),
        (GOOD, {"configErrors": ["jwt: no"], "authenticated": False}, "config faults"),
        (FAULTY, {"configErrors": [], "authenticated": True, "user": {"username": "jane"}}, "config faults"),
        (FAULTY, {"configErrors": ["jwt[0].issuer.audiences[1]: no"], "authenticated": False}, "config faults"),
        (UNDECODABLE, {"strictDecodeError": "no", "authenticated": False}, "decode"),
        (UNDECODABLE, {"authenticated": False}, "decode"),
    ],
)
@pytest.mark.parametrize("listed", [False, True])
def test_another_verdict_or_user_fails_even_if_it_is_listed(name, wrong, what, listed, tmp_path, capsys):
    case = {**case_named(name), "expect": wrong}
    assert f"{name}: {what}\n  MISMATCH" in judged(case, tmp_path, capsys, listed=listed)


def test_another_text_fails_unless_it_is_listed(tmp_path, capsys):
    case = {**case_named(REFUSED), "expect": {"authenticated": False, "error": "other words"}}
    assert f"{REFUSED}: text\n  MISMATCH" in judged(case, tmp_path, capsys, listed=False)
    assert not judged(case, tmp_path, capsys, listed=True)


def test_any_variant_is_right(tmp_path, capsys):
    case = case_named(GOOD)
    right = case["expect"]
    case = {**case, "expect": {"authenticated": False, "error": "no", "volatile": True, "variants": [right]}}
    assert not judged(case, tmp_path, capsys, listed=False)


def test_what_we_do_on_purpose_is_judged_too(tmp_path, capsys):
    case = case_named(GOOD)
    assert not judged({**case, "ours": {"authenticated": None, "why": ""}}, tmp_path, capsys, listed=False)
    refusing = {**case, "ours": {"authenticated": False, "why": ""}}
    assert f"{GOOD}: verdict\n  MISMATCH" in judged(refusing, tmp_path, capsys, listed=True)
    second_document = {**case, "ours": {"authenticated": False, "configError": True, "why": ""}}
    assert judged(second_document, tmp_path, capsys, listed=False)


def test_a_key_set_is_needed(capsys):
    with pytest.raises(SystemExit):
        main(["authn", str(RECORDED)])
    assert "--jwks" in capsys.readouterr().err
