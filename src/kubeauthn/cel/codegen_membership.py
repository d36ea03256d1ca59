"""`in`: what is sought among constants, and what cannot be sought at all."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .ast import Call
from .codegen_attributes import is_from_outside
from .errors import EvalError
from .folding import fold
from .overloads import Overload
from .types import BOOL, BYTES, DYN, STRING, Type
from .values import UInt

if TYPE_CHECKING:
    from .codegen import Generator, Value

__all__ = ["in_constants", "refuse_unhashable"]

_PRIMITIVES = frozenset((str, bool, int, UInt, float))


def in_constants(g: Generator, node: Call, overloads: tuple[Overload, ...]) -> Value | None:
    """`x in [constants]`: free, and in an empty list not even x is looked at. None if it is not that."""
    if len(overloads) != 1 or overloads[0].id != "in_list":
        return None
    try:
        elements = fold(node.args[1])
    except EvalError:
        g.value(node.args[0])  # what fails on the left is said first
        raise
    if not isinstance(elements, list):
        return None
    if not elements:
        return "False", BOOL
    if any(type(element) not in _PRIMITIVES for element in elements):
        return None
    atom, known = g.value(node.args[0])
    if _may_be_unhashable(g, node, known):  # cel-go makes a Go map of the constants
        g.may_fail()
        g.emit(f"check_hashable({atom})")
    if all(type(element) is str for element in elements):
        texts = g.hand_over(frozenset(elements))
        if known is STRING:
            return g.store(f"{atom} in {texts}"), BOOL
        return g.store(f"type({atom}) is str and {atom} in {texts}"), BOOL
    contains = g.hand_over(g.bound("@in", overloads))
    g.may_fail()
    return g.store(f"{contains}({atom}, {g.hand_over(elements)})"), BOOL


def refuse_unhashable(g: Generator, node: Call, values: list[Value]) -> None:
    """Before something is sought in what may be a map: see `Outside.check_sought`."""
    (sought, known), (container, of) = values
    if of.kind != "list" and _may_be_unhashable(g, node, known):
        g.may_fail()
        g.emit(f"outside.check_sought({sought}, {container})")


def _may_be_unhashable(g: Generator, node: Call, known: Type) -> bool:
    return g.cel_go and known in (DYN, BYTES) and not is_from_outside(g, node.args[0])
