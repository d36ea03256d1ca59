"""Judges one test of the language's own conformance suite."""

from __future__ import annotations

import math
from base64 import b64decode
from typing import Any

from kubeauthn.cel import CelError, CompileError, Duration, Environment, Optional, Overload, Timestamp, TypeValue, UInt
from kubeauthn.cel.errors import EvalError
from kubeauthn.cel.values import MISSING, CelMap, equals, make_map, type_name

__all__ = ["judge"]

Mismatch = tuple[str, str, str]
_LIBRARIES = {"two-var-comprehensions": ["two-var-comprehensions", "optional"], "block": ["block", "optional"]}


def judge(case: dict[str, Any]) -> list[Mismatch]:
    """What differs: the value, the deduced type, or whether it is an error."""
    want = case["want"]
    try:
        program = _environment(case).compile(case["expr"])
    except CompileError as error:
        return [] if want["kind"] == "error" else [("stage", str(want), f"compile error: {error}")]
    mismatches: list[Mismatch] = []
    if want.get("type") is not None and str(program.output_type) != want["type"]:
        mismatches.append(("type", str(want["type"]), str(program.output_type)))
    if case.get("check_only") or want["kind"] == "type":
        return mismatches
    bindings = {name: _value(value) for name, value in (case.get("bindings") or {}).items()}
    try:
        found = program.evaluate(bindings).value
    except EvalError as error:
        return mismatches if want["kind"] == "error" else [*mismatches, ("stage", str(want), f"error: {error}")]
    if want["kind"] == "error":
        return [*mismatches, ("stage", "error", repr(found))]
    expected = _value(want["value"])
    if not _same(expected, found):
        mismatches.append(("value", repr(expected), repr(found)))
    return mismatches


def _environment(case: dict[str, Any]) -> Environment:
    libraries = ["optional"]
    for name in case.get("extensions") or []:
        libraries += [library for library in _LIBRARIES.get(name, [name]) if library not in libraries]
    functions = [
        Overload(
            row["id"],
            row["name"],
            tuple(_with_parameters(text) for text in row["params"]),
            _with_parameters(row["result"]),
            _no_function,
            member=row["member"],
        )
        for row in case.get("functions") or []
    ]
    return Environment(
        dict(case.get("variables") or {}),
        libraries,
        functions=functions,
        container=case.get("container") or "",
        checked=not case.get("disable_check"),
    )


def _no_function(*arguments: object) -> object:
    raise EvalError("no such function")


def _with_parameters(text: str) -> str:
    """Single capital letters are type parameters."""
    out, word = [], ""
    for char in [*text, ""]:
        if char.isalnum() or char in "._":
            word += char
            continue
        out.append(f"<{word}>" if len(word) == 1 and word.isupper() else word)
        out.append(char)
        word = ""
    if word:
        out.append(f"<{word}>" if len(word) == 1 and word.isupper() else word)
    return "".join(out)


def _value(typed: list[Any]) -> Any:
    kind, payload = typed
    if kind == "int":
        return int(payload)
    if kind == "uint":
        return UInt(payload)
    if kind == "double":
        return float(payload)
    if kind == "bytes":
        return b64decode(payload)
    if kind == "list":
        return [_value(element) for element in payload]
    if kind == "map":
        return make_map([(_value(key), _value(element)) for key, element in payload])
    if kind == "timestamp":
        return Timestamp(int(payload))
    if kind == "duration":
        return Duration(int(payload))
    if kind == "type":
        return TypeValue(payload)
    if kind == "optional":
        return Optional(_value(payload[0])) if payload else Optional()
    if kind in ("bool", "string", "null"):
        return payload
    raise CelError(f"unknown kind of value {kind!r}")


def _same(expected: Any, found: Any) -> bool:
    """Equal and of the same type, all the way down."""
    if type_name(expected) != type_name(found):
        return False
    if isinstance(expected, float):
        return expected == found or (math.isnan(expected) and math.isnan(found))
    if isinstance(expected, list):
        return len(expected) == len(found) and all(map(_same, expected, found))
    if isinstance(expected, (dict, CelMap)):
        return len(expected) == len(found) and all(
            any(_same(key, other) and _same(expected[key], found[other]) for other in found) for key in expected
        )
    if isinstance(expected, Optional):
        if expected.value is MISSING or found.value is MISSING:
            return expected.value is found.value
        return _same(expected.value, found.value)
    return equals(expected, found)
