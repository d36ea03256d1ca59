"""Version 1 of what `--output json` prints, written down once more: programs rely on each field and its type.

docs/commands.md promises that within a version fields may be added, and that none is removed or changes its meaning.
Whoever has to change a line here raises the version instead.
"""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import Any

import pytest

from kubeauthn.cli.main import main
from kubeauthn.cli.world import World

NOTHING = type(None)
FINDING = {
    "level": {"error", "warning", "note"},
    "rule": str,
    "text": str,
    "field": str,
    "line": (int, NOTHING),
    "column": (int, NOTHING),
    "hint": (str, NOTHING),
}
STEP = {
    "number": int,
    "name": str,
    "outcome": {"ok", "refused", "skipped"},
    "detail": str,
    "inputs": dict,
    "rule": str,
    "expression": str,
    "hint": str,
    "cel": ({"type": str, "value": dict, "cost": int}, NOTHING),
}
USER = {"username": str, "uid": str, "groups": [str], "extra": dict}
PROMISED: dict[str, Any] = {
    "check": {
        "version": {1},
        "ok": bool,
        "files": [{"file": str, "ok": bool, "issuers": int, "findings": [FINDING], "answers": list}],
    },
    "explain": {
        "version": {1},
        "verdict": {"authenticated", "refused", "not mine"},
        "reason": str,
        "issuer": str,
        "verified": {True, False, "taken"},
        "user": (USER, NOTHING),
        "steps": [STEP],
        "assumed": [str],
    },
    "test": {
        "version": {1},
        "ok": bool,
        "passed": int,
        "failed": int,
        "suites": [
            {
                "suite": str,
                "configuration": str,
                "cases": [{"name": str, "line": int, "ok": bool, "differences": list}],
                "rulesNoCaseMadeFail": [str],
                "issuersWithoutACase": [str],
            }
        ],
    },
    "cel": {"version": {1}, "expression": str, "type": str, "value": dict, "cost": int},
}
CONFIGURATION = """\
apiVersion: apiserver.config.k8s.io/v1
kind: AuthenticationConfiguration
jwt:
- issuer: {url: https://issuer.example, audiences: [kubernetes]}
  claimValidationRules:
  - {expression: claims.level > 1, message: the level is too low}
  claimMappings:
    username: {expression: '"x:" + claims.sub'}
"""
SUITE = """\
configuration: good.yaml
cases:
- {name: high enough, claims: {sub: jane, level: 2}, expect: {username: "x:jane"}}
- {name: too low, claims: {sub: jane, level: 1}, expect: {username: "x:jane"}}
"""
RUNS = {
    "check, valid": ["check", "good.yaml"],
    "check, faults": ["check", "bad.yaml", "good.yaml"],
    "explain, authenticated": ["explain", "good.yaml", "--claims", "high.json"],
    "explain, refused": ["explain", "good.yaml", "--claims", "low.json", "--show-claims"],
    "explain, not mine": ["explain", "good.yaml", "--claims", "other.json"],
    "test": ["test", "suite.yaml"],
    "cel": ["cel", "claims.sub", "--claims", "high.json"],
}


def broken(promise: Any, value: Any, where: str) -> list[str]:
    """Where a value is not what was promised; what it has beyond that is nobody's concern."""
    if isinstance(promise, tuple):
        tried = [broken(one, value, where) for one in promise]
        return [] if [] in tried else tried[0]
    if isinstance(promise, dict):
        if not isinstance(value, dict):
            return [f"{where} is no object"]
        missing = [f"{where}.{name} is gone" for name in promise if name not in value]
        there = [name for name in promise if name in value]
        return missing + [text for name in there for text in broken(promise[name], value[name], f"{where}.{name}")]
    if isinstance(promise, list):
        if not isinstance(value, list):
            return [f"{where} is no list"]
        return [text for item in value for text in broken(promise[0], item, f"{where}[]")]
    if isinstance(promise, set):
        return [] if value in promise else [f"{where} is {value!r}"]
    return [] if type(value) is promise else [f"{where} is {value!r}"]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    Path("good.yaml").write_text(CONFIGURATION)
    Path("bad.yaml").write_text(CONFIGURATION.replace("claimMappings", "claimMapings"))
    Path("suite.yaml").write_text(SUITE)
    Path("high.json").write_text('{"sub": "jane", "level": 2}')
    Path("low.json").write_text('{"sub": "jane", "level": 1}')
    Path("other.json").write_text('{"sub": "jane", "iss": "https://other.example"}')
    return tmp_path


@pytest.mark.usefixtures("folder")
@pytest.mark.parametrize("words", RUNS.values(), ids=RUNS)
def test_every_promised_field_is_there(words: list[str]):
    out = io.StringIO()
    main([*words, "--output", "json"], World(stdin=io.StringIO(), stdout=out, stderr=io.StringIO(), environ={}))
    assert broken(PROMISED[words[0]], json.loads(out.getvalue()), words[0]) == []


def test_a_broken_promise_is_noticed():
    assert broken({"a": [{"b": str}]}, {"a": [{"b": "x", "more": 1}, {"b": 1}, {}]}, "x") == [
        "x.a[].b is 1",
        "x.a[].b is gone",
    ]
    assert broken(({"a": int}, NOTHING), {"a": True}, "x") == ["x.a is True"]
    assert broken({"version": {1}}, {"version": 2}, "x") == ["x.version is 2"]
