"""Judges one recorded expression of the authentication environment."""

from __future__ import annotations

import json
from typing import Any

from kubeauthn.cel import CelError, CompileError, EvalError
from kubeauthn.cel.deep_stack import DeepStack
from kubeauthn.cel.kubernetes import LATEST, claims_environment, decode_claims, user_environment
from kubeauthn.cel.limits import MAX_DEPTH
from kubeauthn.cel.typed_json import to_typed_json

__all__ = ["answer", "judge"]

Mismatch = tuple[str, str, str]


def judge(case: dict[str, Any]) -> list[Mismatch]:
    """What differs: the verdict (stage, value, output type), the cost, or the text of an error."""
    with DeepStack(case["expr"]):  # values can be as deep as the expression
        return _judge(case)


def _judge(case: dict[str, Any]) -> list[Mismatch]:
    found = answer(case)
    expectations = [case["expect"]]
    variants = case.get("variants") or case["expect"].get("variants") or []
    expectations += [json.loads(text) if isinstance(text, str) else text for text in variants]
    costs_vary = len({expected.get("cost") for expected in expectations}) > 1
    fewest: list[Mismatch] | None = None
    for expected in expectations:
        if costs_vary:
            # the order of a Go map: no variant's cost is more right than another
            expected = {**expected, "cost": found.get("cost")}
        mismatches = _compare(expected, found)
        if not mismatches:
            return []
        if fewest is None or len(mismatches) < len(fewest):
            fewest = mismatches
    return fewest or []


def answer(case: dict[str, Any]) -> dict[str, Any]:
    """What we say to a case, in the form of the recorded answer. `kubernetes` in it names a version."""
    version = case.get("kubernetes") or f"1.{LATEST}"
    environment = user_environment(version) if case.get("env") == "user" else claims_environment(version)
    must_be_bool = case.get("check") == "bool"
    try:
        program = environment.compile(case["expr"])
    except CompileError as error:
        if error.output_type is None:
            return {"compileError": f"compilation failed: {error}"}
        if must_be_bool and str(error.output_type) != "bool":
            return {"compileError": "must evaluate to bool"}
        return {"compileError": str(error)}
    if must_be_bool and str(program.output_type) != "bool":
        return {"compileError": "must evaluate to bool"}
    found: dict[str, Any] = {"outputType": str(program.output_type)}
    try:
        if case.get("env") == "user":
            variables: dict[str, object] = {"user": case["user"]}
        else:
            variables = {"claims": decode_claims(case["claims"])}
        value, cost = program.evaluate(variables)
    except EvalError as error:
        return {**found, "evalError": str(error)}
    except CelError as error:
        return {**found, "evalError": str(error)}
    return {**found, "value": to_typed_json(value, MAX_DEPTH), "cost": cost}


def _compare(expected: dict[str, Any], found: dict[str, Any]) -> list[Mismatch]:
    for stage in ("compileError", "evalError", "value"):
        if stage in expected and stage not in found:
            return [("verdict", _short(expected), _short(found))]
    mismatches: list[Mismatch] = []
    if "compileError" in expected:
        if expected["compileError"] != found["compileError"]:
            mismatches.append(("compile text", expected["compileError"], found["compileError"]))
        return mismatches
    if expected.get("outputType") != found.get("outputType"):
        mismatches.append(("verdict", f"type {expected.get('outputType')}", f"type {found.get('outputType')}"))
    if "evalError" in expected:
        if expected["evalError"] != found["evalError"]:
            mismatches.append(("error text", expected["evalError"], found["evalError"]))
        return mismatches
    if _canonical(expected["value"]) != _canonical(found["value"]):
        mismatches.append(("verdict", _short(expected["value"]), _short(found["value"])))
    if "cost" in expected and expected["cost"] != found["cost"]:
        mismatches.append(("cost", str(expected["cost"]), str(found["cost"])))
    return mismatches


def _canonical(value: Any) -> Any:
    """A typed value with the entries of maps in one order."""
    if isinstance(value, dict):
        if "map" in value:
            # nothing is found under NaN, so kube-apiserver's code cannot say what is there
            pairs = [
                [_canonical(key), None if key == {"double": "NaN"} else _canonical(element)]
                for key, element in value["map"]
            ]
            return {"map": sorted(pairs, key=lambda pair: json.dumps(pair[0], sort_keys=True))}
        if "opaque" in value:
            # what Go prints of a format holds the address of a function
            return {"opaque": {**value["opaque"], "string": _without_address(value["opaque"]["string"])}}
        return {kind: _canonical(inner) for kind, inner in value.items()}
    if isinstance(value, list):
        return [_canonical(element) for element in value]
    return value


def _without_address(text: str) -> str:
    return text[1:].partition(" ")[0] if text.startswith("{") and " 0x" in text else text


def _short(value: object) -> str:
    return json.dumps(value, ensure_ascii=False)[:600]
