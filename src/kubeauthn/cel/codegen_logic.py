"""`&&` and `||`: an operand that decides the matter makes the others' errors forgotten, whichever side they are on."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .ast import Call, Node
from .types import BOOL

if TYPE_CHECKING:
    from .codegen import Generator, Value

__all__ = ["logical", "not_strictly_false"]


def logical(g: Generator, node: Call) -> Value:
    """All terms inside a loop that runs once: `break` leaves it with the answer."""
    stop, other = ("False", "True") if node.function == "_&&_" else ("True", "False")
    result = g.temporary()
    error = g.temporary()
    g.flush()
    head = len(g.lines)
    g.emit("while True:")
    g.indent += 1
    g.blocks += 2
    failed_before = g.can_fail
    error_possible = False
    last = len(node.args) - 1
    for index, term in enumerate(node.args):
        error_possible = _term(g, term, result, error, stop, other, last=index == last, errors=error_possible)
    g.blocks -= 2
    g.can_fail = g.can_fail or failed_before
    if error_possible:
        g.emit(f"if {error} is not None: raise {error}")
        g.can_fail = True
        g.lines.insert(head, "    " * (g.indent - 1) + f"{error} = None")
    g.emit(f"{result} = {other}")
    g.emit("break")
    g.indent -= 1
    return result, BOOL


def _term(
    g: Generator, term: Node, result: str, error: str, stop: str, other: str, *, last: bool, errors: bool
) -> bool:
    """One term. Returns whether an error may now be waiting for the terms that follow."""
    outer, g.lines = g.lines, []
    outer_fail, g.can_fail = g.can_fail, False
    absorb = not last or errors
    g.absorbing += absorb
    g.indent += absorb
    atom, known = g.value(term)
    if known is not BOOL and not atom.isidentifier():
        atom = g.store(atom)
    g.flush()
    g.indent -= absorb
    g.absorbing -= absorb
    can_fail = g.can_fail or known is not BOOL
    written, g.lines = g.lines, outer
    g.can_fail = outer_fail or can_fail
    decided = f"if {atom} is {stop}: {result} = {stop}; break"
    wrong = f"if {atom} is not {other}: raise no_overload()"
    if not absorb or not can_fail:
        g.lines += [line[4:] for line in written] if absorb else written
        g.emit(decided)
        if known is not BOOL:
            g.emit(wrong)
        return errors
    g.emit("try:")
    g.lines += written
    g.indent += 1
    g.emit(decided)
    if known is not BOOL:
        g.emit(wrong)
    g.indent -= 1
    g.emit("except LimitError: raise")
    caught = g.temporary()
    g.emit(f"except ABSORBED as {caught}x:")
    g.emit(f"    if {error} is None: {error} = {caught}x")
    return True


def not_strictly_false(g: Generator, node: Call) -> Value:
    """False only for false; an error counts as true."""
    result = g.temporary()
    g.flush()
    g.emit("try:")
    g.indent += 1
    g.absorbing += 1
    g.blocks += 1
    atom, _ = g.value(node.args[0])
    g.flush()
    g.emit(f"{result} = {atom} is not False")
    g.blocks -= 1
    g.absorbing -= 1
    g.indent -= 1
    g.emit("except LimitError: raise")
    g.emit(f"except ABSORBED: {result} = True")
    g.charge(1)
    return result, BOOL
