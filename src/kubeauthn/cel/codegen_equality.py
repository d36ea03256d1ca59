"""`==` and `!=`. They cost a tenth of the size of the smaller side, rounded up."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .codegen_operands import operands
from .folding import known_now
from .library import costs
from .types import BOOL, DOUBLE, DYN, INT, NULL, STRING, UINT

if TYPE_CHECKING:
    from .ast import Call
    from .codegen import Generator, Value

__all__ = ["equality", "is_small"]

_SCALARS = frozenset((BOOL, INT, UINT, DOUBLE, NULL))


def equality(g: Generator, node: Call) -> Value:
    """`==` and `!=`; the cost is a tenth of the shorter side, rounded up."""
    equal = node.function == "_==_"
    # what a comparison costs when one side failed; with something empty nothing
    before = 1 if g.absorbing and not any(_is_empty(known_now(arg)) for arg in node.args) else 0
    g.charge(before)
    (a, left), (b, right) = operands(g, node.args, costs.comparison if before else None)
    operator = "==" if equal else "!="
    if left in _SCALARS and right in _SCALARS:
        if left is right and left is not NULL:
            result = g.store(f"{a} {operator} {b}")
        else:
            result = g.store(f"{'equals' if equal else 'differ'}({a}, {b})")
        g.charge(1 - before)
        return result, BOOL
    quick = _quick_equality(g, (a, left), (b, right), equal, before)
    if quick is not None:
        return quick, BOOL
    if left is STRING or right is STRING:
        return _text_equality(g, (a, left), (b, right), equal, before), BOOL
    g.may_fail()
    result = g.store(f"{'equals' if equal else 'differ'}({a}, {b})")
    g.charge_run_time(f"{'equality_cost' if equal else 'comparison_cost'}({a}, {b})" + (" - 1" if before else ""))
    return result, BOOL


def _quick_equality(g: Generator, one: Value, two: Value, equal: bool, before: int) -> str | None:
    """Something unknown against a constant bool, null or small whole number."""
    (other, known), (constant, _) = (one, two) if two[1] in _SCALARS else (two, one)
    if known is not DYN or other == constant:
        return None
    if constant in ("True", "False"):
        test = f"if {other} is True or {other} is False:"
        fast = f"{other} {'is' if equal else 'is not'} {constant}"
    elif constant == "None":
        test, fast = f"if {other} is None:", str(equal)
    elif is_small(constant):
        test = f"if type({other}) is float:"
        fast = f"{other} {'==' if equal else '!='} {constant}"
    else:
        return None
    g.may_fail()
    result = g.temporary()
    g.open(test)
    g.emit(f"{result} = {fast}")
    g.charge(1 - before)
    g.close()
    g.open("else:")
    g.emit(f"{result} = {'equals' if equal else 'differ'}({one[0]}, {two[0]})")
    g.charge_cheap(f"{'equality_cost' if equal else 'comparison_cost'}({one[0]}, {two[0]})", before)
    g.close()
    return result


def _text_equality(g: Generator, one: Value, two: Value, equal: bool, before: int) -> str:
    a, b = one[0], two[0]
    operator = "==" if equal else "!="
    doubtful = [atom for atom, known in (one, two) if known is not STRING]
    constant = g.text_of(b) if g.text_of(b) is not None else g.text_of(a)
    other = a if g.text_of(b) is not None else b
    if constant is not None and 0 < len(constant) <= 10:
        cost = f"(1 if {other} else 0)"
    elif constant is not None:
        size = len(constant)
        cost = f"({(size + 9) // 10} if len({other}) >= {size} else (len({other}) + 9) // 10)"
    else:
        cost = f"(min(len({a}), len({b})) + 9) // 10"
    if not doubtful:
        result = g.store(f"{a} {operator} {b}")
        g.charge_cheap(cost, before)
        return result
    # what is no string is compared, and paid for, elsewhere
    g.may_fail()
    result = g.temporary()
    g.open(f"if {' and '.join(f'type({atom}) is str' for atom in doubtful)}:")
    g.emit(f"{result} = {a} {operator} {b}")
    g.charge_cheap(cost, before)
    g.close()
    g.open("else:")
    g.emit(f"{result} = {'equals' if equal else 'differ'}({a}, {b})")
    g.charge_cheap(f"{'equality_cost' if equal else 'comparison_cost'}({a}, {b})", before)
    g.close()
    return result


def is_small(atom: str) -> bool:
    """A constant that a double holds exactly."""
    digits = atom.removeprefix("-")
    return digits.isdigit() and len(digits) < 16


def _is_empty(constant: object) -> bool:
    return isinstance(constant, (str, bytes, list, dict)) and not constant
