"""Cases that the live oracle and the fuzz targets found, with the answer of the real code."""

from __future__ import annotations

from pathlib import Path

import pytest

from kubeauthn.cel import CompileError, EvalError
from kubeauthn.cel.kubernetes import claims_environment
from kubeauthn.testing.recorded import main

RECORDED = Path(__file__).parents[2] / "recorded"


@pytest.mark.parametrize(
    "arguments",
    [
        ["cel", str(RECORDED / "cel_found.jsonl")],
        ["authn", str(RECORDED / "authn_found.jsonl"), "--jwks", str(RECORDED / "jwks.json")],
    ],
    ids=["cel", "authn"],
)
def test_every_case_that_was_found(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main([*arguments, "--known", str(RECORDED / "known.toml")]) == 0
    assert capsys.readouterr().out.splitlines()[-1].endswith(" passed, 0 failed")


def test_the_type_is_known_where_only_the_program_failed() -> None:
    with pytest.raises(CompileError) as caught:
        claims_environment().compile("int('')")
    assert str(caught.value.output_type) == "int"
    with pytest.raises(CompileError) as caught:
        claims_environment().compile("int(")
    assert caught.value.output_type is None


@pytest.mark.parametrize(("version", "value"), [("1.34", []), ("1.36", []), ("1.37", None)])
def test_a_negative_range_by_version(version: str, value: list[int] | None) -> None:
    program = claims_environment(version).compile("lists.range(-1)")
    if value is None:
        with pytest.raises(EvalError, match="size must be non-negative"):
            program(claims={})
    else:
        assert program(claims={}) == value


def test_a_range_beyond_the_cost_limit_is_not_made() -> None:
    program = claims_environment("1.36").compile("lists.range(9223372036854775807).size()")
    with pytest.raises(EvalError, match="actual cost limit exceeded"):
        program(claims={})


def test_an_absent_optional_computes_no_key() -> None:
    program = claims_environment().compile("claims.?a[claims.b].hasValue()")
    assert program(claims={}) is False
    with pytest.raises(EvalError, match="no such key: b"):
        program(claims={"a": {}})


def test_nested_conditional_roots_stay_small() -> None:
    """The steps behind a conditional are written once, not once for each branch: no text makes the program explode."""
    text = "claims"
    for _ in range(12):
        text = f"(true ? {text} : {text}).a" if len(text) < 3000 else f"(true ? {text} : claims).a"
    assert len(claims_environment().compile(text).python_source) < 3_000_000


def test_an_optional_entry_of_unknown_type_before_literals_were_validated() -> None:
    """Kubernetes 1.28 does not look at literals, so it neither panics there nor refuses."""
    assert claims_environment("1.28").compile("[?dyn(optional.of(1))]")(claims={}) == [1]
    with pytest.raises(CompileError, match="expected type 'optional_type\\(dyn\\)' but found 'dyn'"):
        claims_environment("1.29").compile("[?dyn(optional.of(1))]")
