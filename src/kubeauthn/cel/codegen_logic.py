"""`&&` and `||`: an operand that decides the matter makes the others' errors forgotten, whichever side they are on."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from .ast import Call, MapLiteral, Node, walk
from .folding import NOT_CONSTANT, fold
from .types import BOOL

if TYPE_CHECKING:
    from .codegen import Generator, Value

__all__ = ["asserted", "kept", "logical", "not_strictly_false", "operands"]


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


def asserted(g: Generator, write: Callable[[], list[Value]], wanted: str) -> list[Value]:
    """What `write` writes. An error in it is the end of the whole evaluation: see `costs.ASSERTED`."""
    g.flush()
    g.emit("try:")
    g.indent += 1
    g.blocks += 1
    head = len(g.lines)
    values = write()
    g.flush()
    if len(g.lines) == head:
        g.emit("pass")
    g.blocks -= 1
    g.indent -= 1
    g.emit("except LimitError: raise")
    g.emit(f"except ABSORBED: raise wrong_argument('*types.Err', {wanted!r}) from None")
    return values


def kept(g: Generator, write: Callable[[], Value], error: str) -> Value:
    """What `write` writes, with its error kept in `error` for later."""
    g.flush()
    g.emit(f"{error} = None")
    g.emit("try:")
    g.indent += 1
    g.blocks += 1
    value = write()
    g.flush()
    g.emit("pass")
    g.blocks -= 1
    g.indent -= 1
    g.emit("except LimitError: raise")
    g.emit(f"except ABSORBED as {error}x: {error} = {error}x")
    return value


_ENDING = frozenset(("flatten", "distinct", "sort", "@sortByAssociatedKeys", "lists.range"))


def _may_end(node: Node) -> bool:
    """Whether a part of the node can end the whole evaluation: Go panics there, or the cost is soon too high."""
    return any(
        (isinstance(part, Call) and part.function in _ENDING)
        or (isinstance(part, MapLiteral) and not all(_is_good_key(entry.key) for entry in part.entries))
        for part in walk(node)
    )


def _is_good_key(key: Node) -> bool:
    return key.type is not None and key.type.kind in ("bool", "int", "string", "uint") and not isinstance(key, Call)


def operands(g: Generator, parts: list[Node], *, by_size: bool = False) -> list[Value]:
    """The arguments. cel-go computes the second of two operands even when the first has failed: that shows in the cost
    where the error may be forgotten, and where the second one ends the whole evaluation. `by_size`: with something
    empty on the other side, a call that failed has cost nothing."""
    by_size = by_size and bool(g.absorbing)
    forgotten = g.absorbing or (g.cel_go and len(parts) == 2 and _may_end(parts[1]))
    if not forgotten or len(parts) != 2 or fold(parts[1]) is not NOT_CONSTANT or g.too_deep():
        return [g.value(part) for part in parts]
    outer, g.lines = g.lines, []
    failed_before, g.can_fail = g.can_fail, False
    g.indent += 1
    g.blocks += 1
    first = g.value(parts[0])
    g.flush()
    g.indent -= 1
    g.blocks -= 1
    written, g.lines = g.lines, outer
    if not g.can_fail and not by_size:
        g.can_fail = failed_before
        g.lines += [line[4:] for line in written]
        return [first, g.value(parts[1])]
    error = g.temporary()
    g.emit(f"{error} = None")
    g.emit("try:")
    g.lines += written
    g.emit("except LimitError: raise")
    g.emit(f"except ABSORBED as {error}x: {error} = {error}x")
    g.emit("try:")
    g.indent += 1
    g.blocks += 1
    second = g.value(parts[1])
    g.flush()
    if by_size:
        g.emit(f"if {error} is not None and not size_of({second[0]}): c -= 1")
    g.emit(f"if {error} is not None: raise {error}")
    g.indent -= 1
    g.blocks -= 1
    g.emit("except LimitError: raise")
    g.emit("except ABSORBED:")
    g.emit(f"    if {error} is not None: raise {error} from None")
    if by_size:
        g.emit(f"    if not size_of({first[0]}): c -= 1")
    g.emit("    raise")
    return [first, second]
