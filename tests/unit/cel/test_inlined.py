"""The statements of a program inside another function: they may use nothing but what is handed over with them."""

from __future__ import annotations

import ast
import builtins

from kubeauthn.cel import CompileError
from kubeauthn.cel.kubernetes import claims_environment, user_environment
from kubeauthn.cel.writer import COUNTERS
from tests.fuzz.cel import load


def unknown_names(lines: list[str], value: str, given: set[str]) -> set[str]:
    """Names that are read, and neither given, nor Python's, nor assigned before by the lines themselves."""
    body = ast.parse("\n".join(["def f():", f"    {COUNTERS}", *lines, f"    return {value}"]))
    names = [node for node in ast.walk(body) if isinstance(node, ast.Name)]
    made = {node.id for node in names if isinstance(node.ctx, ast.Store)}
    made |= {node.name for node in ast.walk(body) if isinstance(node, ast.ExceptHandler) and node.name}
    return {node.id for node in names} - made - given - set(dir(builtins))


def test_a_name_that_nobody_gives_is_seen():
    assert unknown_names(["    t1 = k1(V)"], "t1", {"k1", "first_limit"}) == {"V"}


def test_no_recorded_expression_reads_what_is_not_there():
    environments = {name: make() for name, make in (("claims", claims_environment), ("user", user_environment))}
    inlined = 0
    for case in load():
        environment = environments[case.get("env") or "claims"]
        try:
            program = environment.compile(case["expr"])
        except CompileError:
            continue
        part = environment.inline(program, "p1_")
        if part is not None:
            inlined += 1
            given = {*part.names, *part.variables.values()}
            assert not unknown_names(part.lines, part.value, given), case["expr"]
    assert inlined > 500
