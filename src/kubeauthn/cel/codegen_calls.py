"""Calls and operators. Where the operands' types are known the operation is written out; else a function looks."""

from __future__ import annotations

from typing import TYPE_CHECKING

from . import codegen_equality as equality
from . import codegen_logic as logic
from . import codegen_membership as membership
from .ast import Call
from .codegen_attributes import attribute, conditional, is_from_outside, optional_raw
from .codegen_operands import arguments, cost_of_failing, in_order
from .dispatch import describing, naming_matches
from .library import costs
from .overloads import CostFunction, Implementation, Overload
from .types import BOOL, BYTES, DOUBLE, DYN, INT, NULL, STRING, UINT, Type, list_of, parse_type

if TYPE_CHECKING:
    from .codegen import Generator, Value

__all__ = ["call"]

_SIZED = frozenset(("string", "bytes", "list", "map"))
_SCALARS = frozenset((BOOL, INT, UINT, DOUBLE, NULL))
_COMPARISONS = {"_<_": "<", "_<=_": "<=", "_>_": ">", "_>=_": ">="}
_INT_RANGE = "-9223372036854775808 <= {0} <= 9223372036854775807"
_PYTHON = {"string": "str", "int": "int", "double": "float", "bool": "bool", "bytes": "bytes"}
_KINDS = {"string": STRING, "int": INT, "double": DOUBLE, "bool": BOOL, "bytes": BYTES}
_COST_TEXTS: dict[CostFunction, str] = {
    costs.first_scan: "(len({0}) + 9) // 10",
    costs.first_scan_twice: "(len({0}) * 2 + 9) // 10",
    costs.second_scan: "(len({0}) + 9) // 10",
}
_ONE_FUNCTION = frozenset(("size", "-_", *_COMPARISONS))
_ARITHMETIC = frozenset(("_+_", "_-_", "_*_", "_/_", "_%_"))
"""Operators of which cel-go has one function for all types: what the operands are decides, not the overload."""
_ONE_FOR_ALL_TYPES = _ONE_FUNCTION | _ARITHMETIC | {"@in", "@sortByAssociatedKeys"}
_IN_ORDER = frozenset(("format",))
"""Functions that cel-go calls as it calls one of three arguments."""
_FROM_RESULT: frozenset[CostFunction] = frozenset((costs.result_scan_twice, costs.allocated_list))


def call(g: Generator, node: Call) -> Value:
    function = node.function
    if function == "_&&_" or function == "_||_":
        return logic.logical(g, node)
    if function == "_?_:_":
        return conditional(g, node)
    if function in ("_[_]", "_[?_]", "_?._"):
        return attribute(g, node, top=True)
    if function == "_==_" or function == "_!=_":
        return equality.equality(g, node)
    if function == "@not_strictly_false":
        return logic.not_strictly_false(g, node)
    if function in ("or", "orValue") and node.target is not None and len(node.args) == 1:
        return _optional_or(g, node)
    if function == "optional.ofNonZeroValue" and g.unescape and len(node.args) == 1:
        g.charge(1)
        outside = is_from_outside(g, node.args[0])
        atom, _ = g.value(node.args[0])
        return g.store(f"non_zero({atom})" if outside else f"outside.non_zero({atom})"), DYN
    overloads = _overloads(g, node)
    if not overloads:
        # only without a type check: such a call fails when it is reached
        g.may_fail()
        g.emit(f"raise EvalError({f'no such overload: {function}'!r})")
        return "None", DYN
    parts = node.args if node.target is None else [node.target, *node.args]
    if function == "@in":
        member = membership.in_constants(g, node, overloads)
        if member is not None:
            return member
    resolved = node.overloads or overloads
    cost = resolved[0].cost if len(resolved) == 1 or resolved[0].cost_by_name else None
    # where several functions are left, cel-go looks at one argument after the other
    by_name = len(parts) == 2 and len(resolved) > 1 and function not in _ONE_FOR_ALL_TYPES
    early = len(parts) <= 2 and not g.has_constant_pattern(node) and function not in _IN_ORDER and not by_name
    failing = cost_of_failing(cost, parts) if early and (cost is None or g.absorbing) else 0
    g.charge(failing)
    values = arguments(g, parts, cost, failing) if early else in_order(g, parts, cost)
    inlined = _inline(g, function, values, overloads)
    if inlined is None:
        return _general(g, node, values, overloads, cost, failing)
    value, cost_text = inlined
    if cost is None:
        g.charge(0 if early else 1)
    elif cost_text.isdigit():
        g.charge(int(cost_text) - failing)
    else:
        g.charge_run_time(f"{cost_text} - {failing}" if failing else cost_text)
    return value


def _overloads(g: Generator, node: Call) -> tuple[Overload, ...]:
    # of some, cel-go has one function for all types; it is what the overload costs that it goes by
    one_function = g.cel_go and node.function in _ONE_FUNCTION
    if node.overloads and not (one_function and node.overloads[0].cost is None):
        return node.overloads
    count = len(node.args) + (node.target is not None)
    return tuple(
        row
        for row in g.declarations.functions.get(node.function, ())
        if row.member is (node.target is not None) and len(row.params) == count
    )


def _general(
    g: Generator,
    node: Call,
    values: list[Value],
    overloads: tuple[Overload, ...],
    cost: CostFunction | None,
    failing: int,
) -> Value:
    row = overloads[0]
    atoms = passed = ", ".join(atom for atom, _ in values)
    sure = len(overloads) == 1 and all(
        _certainly(known, parse_type(text)) for (_, known), text in zip(values, row.params, strict=True)
    )
    g.prepare(node)
    if not sure and g.cel_go and g.has_constant_pattern(node) and not is_from_outside(g, node.target or node.args[0]):
        # a pattern that was compiled before looks at what a value is in Go, and that of a type is its name
        passed = f"text_of_type({values[0][0]}){atoms.removeprefix(values[0][0])}"
    elif not sure and not g.absorbing and len(overloads) == 1 and _inline_guards(g, node, row, values):
        values = [(atom, _KINDS.get(text, known)) for (atom, known), text in zip(values, row.params, strict=True)]
        sure = True
    if sure and row.implementation is not None:
        target = g.hand_over(row.implementation)
    else:
        target = g.hand_over(_bound(g, node, overloads))
    if node.function == "@in":
        membership.refuse_unhashable(g, node, values)
    paid = str(failing) if failing else ""
    passed_to_cost = f"({atoms},)" if values else "()"
    g.may_fail()
    if row.timed:
        g.emit("if not dl: lim, dl = tick(c, dl)")
        passed += ", deadline=dl"
    if cost is None:
        g.charge(1 - failing)
        if g.absorbing:
            g.flush()
    elif cost not in _FROM_RESULT:
        # before the call, so that one that costs too much is not made
        g.charge_run_time(_minus(_cost_text(g, cost, values, passed_to_cost, sure), paid))
    elif g.absorbing:
        # paid even if the call fails, and settled when it has not
        at_failure = g.store(f"cost_before({g.hand_over(cost)}, {passed_to_cost})")
        g.charge_run_time(_minus(at_failure, paid))
        paid = at_failure
    if g.tracks_origin and node.function == "_+_":
        result = g.store(_grown(g, values[0][0], values[1][0], f"outside.sum({target}, {atoms})"))
    elif g.tracks_origin and node.function == "flatten":
        result = g.store(f"{target}(outside.flattened({values[0][0]}), {', '.join(atom for atom, _ in values[1:])})")
    elif node.function == "_+_" and len(values) == 2:
        result = g.store(_grown(g, values[0][0], values[1][0], f"{target}({passed})"))
    else:
        result = g.store(f"{target}({passed})")
    if node.function == "_+_" and all(known is DYN or known.kind == "list" for _, known in values):
        _make_room(g, result)
    if cost is not None and cost in _FROM_RESULT:
        text = f"{g.hand_over(cost)}({passed_to_cost}, {result})"
        if cost is costs.result_scan_twice and sure and parse_type(row.result) is STRING:
            text = f"(len({result}) * 2 + 9) // 10"
        g.charge_run_time(_minus(text, paid))
    known = parse_type(row.result) if len(overloads) == 1 else DYN
    if node.function in _ARITHMETIC and not sure:
        known = DYN
    if known.kind == "list" and row.unguarded and not sure:
        known = list_of(DYN)  # of whatever the argument was made of
    return result, DYN if known.has_parameters or known.kind in ("any", "dyn") else _simple(known)


def _bound(g: Generator, node: Call, overloads: tuple[Overload, ...]) -> Implementation:
    bound = g.bound(node.function, overloads)
    if g.has_constant_pattern(node):
        return bound
    if node.function == "matches" and g.names_matches:
        return naming_matches(bound)
    return describing(node.function, bound) if node.function in ("find", "findAll") else bound


def _minus(text: str, paid: str) -> str:
    return f"{text} - {paid}" if paid else text


def _inline_guards(g: Generator, node: Call, row: Overload, values: list[Value]) -> bool:
    """Test the doubtful arguments here, where that is a matter of Python types; the slow way says what is wrong."""
    doubtful = []
    for (atom, known), text in zip(values, row.params, strict=True):
        if _certainly(known, parse_type(text)):
            continue
        if text not in _PYTHON or known is not DYN:
            return False
        doubtful.append(f"type({atom}) is not {_PYTHON[text]}")
    if row.unguarded and len(doubtful) == len(values) > 1:
        return False  # of two that are something else there may be a sum, or an order
    g.may_fail()
    slow = g.hand_over(_bound(g, node, (row,)))
    # the callee refuses them itself
    g.emit(f"if {' or '.join(doubtful)}: {slow}({', '.join(atom for atom, _ in values)}); raise no_overload()")
    return True


def _cost_text(g: Generator, cost: CostFunction, values: list[Value], arguments: str, sure: bool) -> str:
    if sure and values:
        template = _COST_TEXTS.get(cost)
        position = 1 if cost is costs.second_scan else 0
        if template is not None and len(values) > position and values[position][1].kind in ("string", "bytes", "list"):
            return template.format(values[position][0])
        return f"{g.hand_over(cost)}({arguments}, None)"
    return f"cost_before({g.hand_over(cost)}, {arguments})"


def _simple(known: Type) -> Type:
    """What may be believed of a library's result: its kind, and what a list is made of."""
    return known if known.kind != "opaque" else DYN


def _certainly(known: Type, wanted: Type) -> bool:
    """Whether a value of a known type always passes for a parameter."""
    if wanted.kind in ("dyn", "any", "parameter"):
        return True
    if known.kind != wanted.kind or known.name != wanted.name or known.kind in ("opaque", "struct"):
        return False
    return all(_certainly(one, two) for one, two in zip(known.params, wanted.params, strict=True))


def _inline(
    g: Generator, function: str, values: list[Value], overloads: tuple[Overload, ...]
) -> tuple[Value, str] | None:
    """The operation written out, and its cost; None where a function has to do it."""
    if len(values) == 2:
        (a, left), (b, right) = values
        if function == "_+_":
            return _add(g, a, left, b, right, overloads)
        if function in ("_-_", "_*_"):
            return _arithmetic(g, function, a, left, b, right, overloads)
        if function in _COMPARISONS:
            return _compare(g, function, a, left, b, right, overloads)
        if function in ("startsWith", "endsWith") and right is STRING:
            method = f"({a}).{function.lower()}({b})"
            scanned = a if g.old_cel_go else b
            known_text = g.text_of(scanned)
            cost = f"(len({scanned}) + 9) // 10" if known_text is None else str((len(known_text) + 9) // 10)
            return (_checked(g, method, [(a, left)], "str", overloads, function, f"{a}, {b}"), BOOL), cost
        if function == "split" and g.text_of(b) and not g.absorbing and len(overloads) == 1:
            text = _checked(g, f"({a}).split({b})", [(a, left)], "str", overloads, function, f"{a}, {b}")
            return (text, parse_type(overloads[0].result)), _COST_TEXTS[costs.first_scan_twice].format(a)
        if function == "contains" and right is STRING and overloads[0].id == "contains_string":
            cost = f"((len({a}) + 9) // 10) * ((len({b}) + 9) // 10)"
            return (_checked(g, f"{b} in {a}", [(a, left)], "str", overloads, function, f"{a}, {b}"), BOOL), cost
    elif len(values) == 1:
        atom, known = values[0]
        if function == "!_":
            if known is BOOL:
                return (g.store(f"not {atom}"), BOOL), "1"
            return (_checked(g, f"not {atom}", [values[0]], "bool", overloads, function, atom), BOOL), "1"
        if function == "size" and known.kind in _SIZED:
            return (g.store(f"len({atom})"), INT), "1"
    return None


def _checked(
    g: Generator,
    text: str,
    doubtful: list[Value],
    python: str,
    overloads: tuple[Overload, ...],
    function: str,
    atoms: str,
) -> str:
    """The operation if the operands are of that Python type, else the function that says why not."""
    tests = [
        f"type({atom}) is {python}" for atom, known in doubtful if known.name != {"str": "string"}.get(python, python)
    ]
    if not tests:
        return g.store(text)
    g.may_fail()
    slow = g.hand_over(g.bound(function, overloads))
    return g.store(f"{text} if {' and '.join(tests)} else {slow}({atoms})")


def _add(
    g: Generator, a: str, left: Type, b: str, right: Type, overloads: tuple[Overload, ...]
) -> tuple[Value, str] | None:
    if len(overloads) == 1 and overloads[0].id == "add_string":
        text = _checked(g, f"{a} + {b}", [(a, left), (b, right)], "str", overloads, "_+_", f"{a}, {b}")
        if left is not STRING and right is not STRING:
            # of two that are no strings there may be a sum, too
            _make_room(g, text)
            price = g.hand_over(costs.add_texts)
            return (text, DYN), f"((len({text}) + 9) // 10 if type({text}) is str else {price}(({a}, {b}), None))"
        known = [g.text_of(atom) for atom in (a, b)]
        lengths = [f"len({atom})" for atom, constant in zip((a, b), known, strict=True) if constant is None]
        return (text, STRING), f"({' + '.join(lengths)} + {9 + sum(len(constant or '') for constant in known)}) // 10"
    if left is right and left is DOUBLE:
        return (g.store(f"{a} + {b}"), DOUBLE), "1"
    if left is right and left is INT:
        return _ranged(g, f"{a} + {b}"), "1"
    if left.kind == "list" and right.kind == "list":
        g.may_fail()
        result = g.store(_grown(g, a, b, f"[*{a}, *{b}]"))
        g.emit(f"room -= len({result})")
        g.emit("if room < 0: raise no_room()")
        return (result, left if left is right else list_of(DYN)), "1"
    return None


def _grown(g: Generator, a: str, b: str, otherwise: str) -> str:
    """A sum where the left one may be a list that grows: see `grown_lists`."""
    return f"grown.add({a}, {b}) if grown.takes({a}, {b}) else {otherwise}" if g.grows_lists else otherwise


def _make_room(g: Generator, result: str) -> None:
    """Bound the lists that `+` makes of operands that may be anything."""
    g.may_fail()
    g.emit(f"if type({result}) is list: room -= len({result})")
    g.emit("if room < 0: raise no_room()")


def _ranged(g: Generator, text: str) -> Value:
    g.may_fail()
    result = g.store(text)
    g.emit(f"if not {_INT_RANGE.format(result)}: raise int_overflow()")
    return result, INT


def _arithmetic(
    g: Generator, function: str, a: str, left: Type, b: str, right: Type, overloads: tuple[Overload, ...]
) -> tuple[Value, str] | None:
    text = f"{a} {function[1]} {b}"
    if left is right and left is DOUBLE:
        return (g.store(text), DOUBLE), "1"
    if left is right and left is INT:
        return _ranged(g, text), "1"
    if DYN in (left, right) and {left, right} <= {DYN, DOUBLE}:
        result = _checked(g, text, [(a, left), (b, right)], "float", overloads, function, f"{a}, {b}")
        return (result, DYN), "1"
    return None


def _compare(
    g: Generator, function: str, a: str, left: Type, b: str, right: Type, overloads: tuple[Overload, ...]
) -> tuple[Value, str] | None:
    operator = _COMPARISONS[function]
    text = f"{a} {operator} {b}"
    if left is right and (left is INT or left is UINT or left is BOOL):
        return (g.store(text), BOOL), "1"
    if left is right and (left is STRING or left is BYTES):
        return (g.store(text), BOOL), f"(min(len({a}), len({b})) + 9) // 10"
    if len(overloads) > 1 and {left, right} <= {DYN, DOUBLE, INT}:
        slow = g.hand_over(g.bound(function, overloads))
        tests = [
            f"type({atom}) is float and {atom} == {atom}" for atom, known in ((a, left), (b, right)) if known is not INT
        ]
        small = all(known is not INT or equality.is_small(atom) for atom, known in ((a, left), (b, right)))
        if tests and small:
            g.may_fail()
            return (g.store(f"{text} if {' and '.join(tests)} else {slow}({a}, {b})"), BOOL), "1"
    return None


def _optional_or(g: Generator, node: Call) -> Value:
    """`or` and `orValue`: free, and the alternative is only computed when it is wanted. Whether that of `or` is an
    optional is not looked at, as in cel-go."""
    assert node.target is not None  # noqa: S101 - the caller has looked
    raw = optional_raw(g, node.target)
    if raw is None:
        atom, _ = g.value(node.target)
        g.may_fail()
        raw = g.store(f"{'raw_or_self' if g.old_cel_go else 'raw_optional'}({atom})")
    else:
        atom = ""
    result = g.temporary()
    g.open(f"if {raw} is MISSING:")
    alternative, _ = g.value(node.args[0])
    g.emit(f"{result} = {alternative}")
    g.close()
    g.open("else:")
    if node.function == "or":
        g.emit(f"{result} = {atom or f'Optional({raw})'}")
    elif g.old_cel_go:
        g.may_fail()
        g.emit(f"{result} = settled({raw})")
    else:
        g.emit(f"{result} = {raw}")
    g.close()
    return result, DYN
