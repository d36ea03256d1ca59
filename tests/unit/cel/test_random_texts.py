"""Random texts made of the pieces of CEL: an answer or one of our errors, nothing else."""

from __future__ import annotations

import random
import time

from kubeauthn import cel
from kubeauthn.cel.kubernetes import claims_environment

PIECES = (
    "claims", "x", "(", ")", "[", "]", "{", "}", ".", ".?", "[?", ",", ":", "?", "+", "-", "*", "/", "%", "==", "!=",
    "<", "<=", ">", ">=", "in", "&&", "||", "!", "1", "2u", "3.5", "'a'", "b'b'", "null", "true", "false", "map",
    "filter", "all", "exists", "size", "string", "int", "dyn", "type", "has", "optional.of", "orValue", "sortBy",
    "lists.range(3)", "claims.g", "claims.n", "matches", "split", "format", "`a`", "'%s'", "timestamp", "duration",
    "r'\\'", "0x", "\x00", "é", "\ud800", "//", "\n", "@", "transformMap", "optMap", "join", "__dot__", "class",
    "google.protobuf.Value",
)  # fmt: skip
CLAIMS = {"g": ["a", "b"], "n": {"m": 1.0}, "x": None, "s": "text"}
SEED = 20_261
COUNT = 4_000


def test_no_other_error() -> None:
    source = random.Random(SEED)
    environment = claims_environment()
    started = time.monotonic()
    compiled = 0
    for _ in range(COUNT):
        text = source.choice(("", " ")).join(source.choices(PIECES, k=source.randint(1, 14)))
        try:
            program = environment.compile(text)
            compiled += 1
            program(claims=CLAIMS)
        except (cel.CompileError, cel.EvalError):
            pass
        except Exception as error:
            raise AssertionError(f"{text!r}: {error!r}") from error
    print(f"seed {SEED}, {COUNT} texts, {compiled} compiled, {time.monotonic() - started:.1f} s")
    assert compiled > 50


def test_no_other_error_when_whole_expressions_are_combined() -> None:
    source = random.Random(SEED)
    environment = claims_environment()
    leaves = ["claims.g", "claims.n", "claims.x", "claims.s", "1", "2.5", "'a'", "[1, 2]", "{'k': 1}", "null", "true"]
    shapes = [
        "dyn({a}) == dyn({b})", "dyn({a}) + dyn({b})", "dyn({a}) || dyn({b})", "dyn({a}).all(x, x == dyn({b}))",
        "dyn({a}).map(x, dyn({b}))", "[dyn({a}), dyn({b})]", "{{'k': dyn({a})}}.k", "dyn({a})[dyn({b})]", "dyn({a}).?k",
        "dyn({a}) in dyn({b})", "size(dyn({a}))", "string(dyn({a}))", "dyn({a}) ? dyn({b}) : dyn({a})", "!dyn({a})",
        "optional.of({a}).orValue(dyn({b}))", "dyn({a}) < dyn({b})", "dyn({a}).transformList(i, v, [i, v])",
        "has(dyn({a}).k)",
    ]  # fmt: skip
    for _ in range(1_500):
        text = source.choice(leaves)
        for _ in range(source.randint(1, 4)):
            text = source.choice(shapes).format(a=text, b=source.choice(leaves))
        try:
            environment.compile(text)(claims=CLAIMS)
        except (cel.CompileError, cel.EvalError) as error:
            assert "declared type" not in str(error), text
        except Exception as error:
            raise AssertionError(f"{text!r}: {error!r}") from error
