"""cel-expr-python in a process of its own: it can abort, and then only this ends.

Reads expressions as JSON strings, line by line, and answers each with a line: ["value", V], ["error"] or ["compile"].
"""

from __future__ import annotations

import json
import math
import subprocess
import sys
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[3]


def plain(value: Any) -> Any:
    """A value in a form that JSON keeps exactly and in which types are told apart by the static type alone."""
    if isinstance(value, bool) or value is None or isinstance(value, str):
        return value
    if isinstance(value, float):
        return ["double", "nan" if math.isnan(value) else value.hex()]
    if isinstance(value, int):
        return ["integer", str(int(value))]
    if isinstance(value, (bytes, bytearray)):
        return ["bytes", bytes(value).hex()]
    if isinstance(value, (list, tuple)):
        return ["list", [plain(element) for element in value]]
    return ["map", sorted([plain(key), plain(value[key])] for key in value)]


def ask(texts: list[str], *, seconds: float) -> list[list[Any] | None]:
    """The peer's answers; None where it ended without one."""
    answers: list[list[Any] | None] = []
    while len(answers) < len(texts):
        done = subprocess.run(
            [sys.executable, "-m", "tests.unit.cel.peer"],
            input="".join(json.dumps(text) + "\n" for text in texts[len(answers) :]),
            capture_output=True,
            text=True,
            cwd=ROOT,
            timeout=seconds,
        )
        answers += [json.loads(line) for line in done.stdout.splitlines()]
        if len(answers) < len(texts):
            if "ModuleNotFoundError" in done.stderr:
                raise ImportError(done.stderr)
            answers.append(None)
    return answers


def main() -> None:
    from cel_expr_python import cel
    from cel_expr_python.ext import ext_optional, ext_strings

    from tests.unit.cel.generate import VARIABLES, values

    kind = cel.Type
    scalar = {"int": kind.INT, "uint": kind.UINT, "double": kind.DOUBLE, "string": kind.STRING, "bool": kind.BOOL,
              "bytes": kind.BYTES}  # fmt: skip

    def peer_type(text: str) -> Any:
        if text.startswith("list("):
            return kind.List(scalar[text[5:-1]])
        if text.startswith("map("):
            return kind.Map(kind.STRING, scalar[text[:-1].rpartition(" ")[2]])
        return scalar[text]

    environment = cel.NewEnv(
        variables={name: peer_type(text) for name, text in VARIABLES.items()},
        extensions=[ext_optional.ExtOptional(), ext_strings.ExtStrings()],
    )
    data = values()
    for line in sys.stdin:
        try:
            program = environment.compile(json.loads(line))
        except RuntimeError:
            print('["compile"]', flush=True)
            continue
        found = program.eval(data=data)
        answer = ["error"] if found.type() == kind.ERROR else ["value", plain(found.plain_value())]
        print(json.dumps(answer), flush=True)


if __name__ == "__main__":
    main()
