"""Overloads chosen at run time, where the checker saw dyn."""

from __future__ import annotations

import pytest

from kubeauthn.cel.dispatch import bind, guard_for
from kubeauthn.cel.errors import EvalError
from kubeauthn.cel.library import basics, conversions, kubernetes_lists, operators, strings
from kubeauthn.cel.values import CelMap, Duration, Optional, UInt


def bound(function: str, *modules):
    rows = [row for module in modules for row in module.OVERLOADS if row.function == function]
    return bind(function, rows)


@pytest.mark.parametrize(
    ("type_text", "fitting", "other"),
    [
        ("int", [1], [True, UInt(1), 1.0, None]),
        ("uint", [UInt(1)], [1]),
        ("bool", [True], [1]),
        ("list(int)", [[], [1], (1,), [1, "only the first is looked at"]], [["a"], "a", {}]),
        ("list(<A>)", [[], ["a"]], ["a"]),
        ("list(list(dyn))", [[[]], []], [[1]]),
        ("map(string, int)", [{}, {"a": 1}, CelMap()], [{"a": "b"}, CelMap([(1, 1)]), []]),
        ("map(<K>, list(string))", [{"a": ["b"]}], [{"a": "b"}]),
        ("optional_type(<V>)", [Optional()], [None]),
        ("google.protobuf.Duration", [Duration(1)], [1]),
        ("null_type", [None], [0]),
    ],
)
def test_guards(type_text, fitting, other) -> None:
    guard = guard_for(type_text)
    assert all(guard(value) for value in fitting)
    assert not any(guard(value) for value in other)


@pytest.mark.parametrize("type_text", ["dyn", "any", "<A>"])
def test_types_that_take_everything_have_no_guard(type_text) -> None:
    assert guard_for(type_text) is None


def test_the_overload_is_found_by_the_arguments() -> None:
    string = bound("string", conversions)
    assert [string(value) for value in (1, UInt(2), 1.5, True, b"x")] == ["1", "2", "1.5", "true", "x"]
    index_of = bound("indexOf", strings, kubernetes_lists)
    assert index_of("abc", "c") == 2
    assert index_of(["a", "b"], "b") == 1


@pytest.mark.parametrize(
    ("function", "modules", "arguments", "message"),
    [
        ("timestamp", (conversions,), (1.0,), "no such overload: timestamp(double)"),
        ("string", (conversions,), (None,), "no such overload: string(null_type)"),
        ("split", (strings,), (1, "a"), "no such overload: split(int, string)"),
        ("join", (strings,), ([1],), "no such overload: join(list)"),
        ("split", (strings,), ("a",), "no such overload: split(string)"),
        # These look at their arguments themselves.
        ("_+_", (operators,), (1, 1.0), "no such overload"),
        ("size", (basics,), (1,), "no such overload: size"),
    ],
)
def test_no_overload(function, modules, arguments, message) -> None:
    with pytest.raises(EvalError) as caught:
        bound(function, *modules)(*arguments)
    assert caught.value.message == message
