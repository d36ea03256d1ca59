"""Comprehensions. The loops that the macros make are known by their shape and written as plain Python loops.

What a round costs beside the parts the user wrote follows from the macro's expansion: see each function.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from . import codegen_logic as logic
from .ast import Call, Comprehension, Ident, ListLiteral, Literal, MapLiteral, Node, walk
from .folding import NOT_CONSTANT, fold
from .library.costs import LIST_ASSERTED
from .macros import SORT_INPUT
from .types import BOOL, DYN, INT, STRING, Type, list_of

if TYPE_CHECKING:
    from .codegen import Generator, Value

__all__ = ["comprehension"]


def comprehension(g: Generator, node: Comprehension) -> Value:
    step = node.step
    if isinstance(node.iter_range, ListLiteral) and not node.iter_range.elements and _is(node.condition, False):
        return _bind(g, node)
    if isinstance(step, Call) and _is_accu(node, step.args[0]) and len(step.args) == 2:
        if step.function == "_&&_" and _is(node.init, True) and _is_accu(node, node.result):
            return _quantifier(g, node, step.args[1], stop="False", round_cost=3, leave_cost=2)
        if step.function == "_||_" and _is(node.init, False) and _is_accu(node, node.result):
            return _quantifier(g, node, step.args[1], stop="True", round_cost=4, leave_cost=3)
    keep: Node | None = None
    if isinstance(step, Call) and step.function == "_?_:_" and _is_accu(node, step.args[2]):
        keep, step = step.args[0], step.args[1]
    if _is(node.condition, True) and isinstance(step, Call) and step.args and _is_accu(node, step.args[0]):
        if step.function == "_+_" and keep is not None and type(fold(node.init)) is int:
            return _exists_one(g, node, keep)
        if _is_accu(node, node.result):
            element = step.args[1]
            if step.function == "_+_" and isinstance(element, ListLiteral) and len(element.elements) == 1:
                return _collect(g, node, keep, element.elements[0])
            if step.function == "cel.@mapInsert" and isinstance(node.init, MapLiteral):
                return _insert(g, node, keep, step.args[1:])
    return _general(g, node)


def _is(node: Node, value: object) -> bool:
    return isinstance(node, Literal) and node.value is value


def _is_accu(node: Comprehension, part: Node) -> bool:
    return isinstance(part, Ident) and part.name == node.accu


def _bind(g: Generator, node: Comprehension) -> Value:
    """A name for a value. One that is never used is never computed."""
    parts = list(walk(node.result))
    if not any(isinstance(part, Ident) and part.name == node.accu for part in parts):
        value: Value = "None", DYN
    elif node.accu == SORT_INPUT and g.cel_go and isinstance(node.result, Call) and len(node.result.overloads) == 1:
        value = logic.asserted(g, lambda: [g.value(node.init)], LIST_ASSERTED)[0]
    elif any(_may_not_run(part) for part in parts):
        value = g.temporary(), DYN
        g.emit(f"{value[0]} = MISSING")
        g.compute_when_used(value[0], lambda: _bound(g, node.init)[0])
    else:
        value = _bound(g, node.init)
    g.scopes.append({node.accu: value})
    result = g.value(node.result)
    g.scopes.pop()
    return result


def _bound(g: Generator, node: Node) -> Value:
    value = g.value(node)
    return (g.store(f"outside.bound({value[0]})"), DYN) if g.tracks_origin and value[1] is DYN else value


def _may_not_run(node: Node) -> bool:
    """Whether a part of the node may be left out when it is evaluated."""
    return isinstance(node, Comprehension) or (isinstance(node, Call) and node.function in _LEAVE_OUT)


_LEAVE_OUT = frozenset(("_&&_", "_||_", "_?_:_", "_[_]", "_[?_]", "_?._", "@in", "or", "orValue"))


class _Loop:
    """The head of a Python loop, and its end."""

    def __init__(self, g: Generator, node: Comprehension) -> None:
        self.g = g
        self.node = node
        atom, known = g.value(node.iter_range)
        g.flush()
        first, second = self._types(known)
        scope: dict[str, Value] = {node.iter_var: (g.temporary(), first)}
        if node.iter_var2:
            scope[node.iter_var2] = (g.temporary(), second)
        self.names = ", ".join(name for name, _ in scope.values())
        self.scope = scope
        g.may_fail()
        if known.kind == "list" and not node.iter_var2:
            self.iterator = g.store(f"iter({atom})")
        elif known.kind == "list":
            self.iterator = g.store(f"enumerate({atom})")
        else:
            iterate = "iterate_pairs" if node.iter_var2 else "iterate"
            ranged = f"outside.{iterate}({atom})" if g.tracks_origin else atom
            self.iterator = g.store(f"{iterate}({ranged})")

    def _types(self, known: Type) -> tuple[Type, Type]:
        if known.kind == "list":
            element = _believable(known.params[0])
            return (INT, element) if self.node.iter_var2 else (element, DYN)
        if known.kind == "map":
            return (STRING if known.params[0] is STRING else DYN), _believable(known.params[1])
        return DYN, DYN

    def open(self) -> None:
        g = self.g
        g.open(f"for {self.names} in {self.iterator}:")
        g.blocks += 1
        g.scopes.append(self.scope)
        self.mark = len(g.lines)

    def close(self, *, costs: bool = False) -> None:
        """`costs`: it is known that every round costs something."""
        g = self.g
        g.flush()
        always = "    " * g.indent + "c += "
        body = g.lines[self.mark :]
        if any(_may_take_long(line) for line in body):
            # comparing lists or searching a text can cost 1 and take long
            g.emit("rounds += 1")
            g.emit("if c > lim or not rounds & 3: lim, dl = tick(c, dl)")
        elif not costs and not any(line.startswith(always) for line in body):
            # a round that may cost nothing: the clock is looked at all the same
            g.emit("rounds += 1")
            g.emit("if not rounds & 4095: lim, dl = tick(c, dl)")
        else:
            g.emit("if c > lim: lim, dl = tick(c, dl)")
        g.can_fail = True
        g.scopes.pop()
        g.blocks -= 1
        g.close()


def _may_take_long(line: str) -> bool:
    """Whether a line calls a library's function, an equality, or a part that was moved out."""
    moved_out = line.endswith("()") and line.lstrip().startswith("f")
    return moved_out or "= k" in line or any(word in line for word in ("equals(", "differ(", "reopened("))


def _believable(known: Type) -> Type:
    return DYN if known.kind in ("any", "dyn", "opaque") or known.has_parameters else known


def _quantifier(
    g: Generator, node: Comprehension, predicate: Node, *, stop: str, round_cost: int, leave_cost: int
) -> Value:
    """`all` and `exists`: errors are kept until an element decides the matter.

    A round: the condition (2 for all, 3 for exists) and the accumulator (1). Leaving early with elements left: the
    condition once more.
    """
    other = "True" if stop == "False" else "False"
    loop = _Loop(g, node)
    result = g.store(other)
    error = g.temporary()
    before = len(g.lines)
    loop.open()
    g.charge(round_cost)
    outer, g.lines = g.lines, []
    outer_fail, g.can_fail = g.can_fail, False
    g.absorbing += 1
    g.blocks += 1
    g.indent += 1
    atom, known = g.value(predicate)
    if known is not BOOL and not atom.isidentifier():
        atom = g.store(atom)
    g.flush()
    g.indent -= 1
    g.blocks -= 1
    g.absorbing -= 1
    absorb = g.can_fail or known is not BOOL
    written, g.lines = g.lines, outer
    g.can_fail = g.can_fail or outer_fail
    if absorb:
        g.emit("try:")
        g.lines += written
        g.indent += 1
        _leave(g, atom, result, stop, loop.iterator, leave_cost, f"; {error} = None")
        if known is not BOOL:
            g.emit(f"if {atom} is not {other}: raise no_overload()")
        g.indent -= 1
        g.emit("except LimitError: raise")
        g.emit(f"except ABSORBED as {error}x:")
        g.emit(f"    if {error} is None: {error} = {error}x")
    else:
        g.lines += [line[4:] for line in written]
        _leave(g, atom, result, stop, loop.iterator, leave_cost, "")
    loop.close(costs=True)
    g.charge(1)
    if absorb:
        g.lines.insert(before, "    " * g.indent + f"{error} = None")
        g.may_fail()
        g.emit(f"if {error} is not None: raise {error}")
    return result, BOOL


def _leave(g: Generator, atom: str, result: str, stop: str, iterator: str, leave_cost: int, more: str) -> None:
    g.emit(f"if {atom} is {stop}:")
    g.emit(f"    if next({iterator}, MISSING) is not MISSING: c += {leave_cost}")
    g.emit(f"    {result} = {stop}{more}; break")


def _exists_one(g: Generator, node: Comprehension, predicate: Node) -> Value:
    """A match costs 2 (accumulator and addition), the comparison at the end 2."""
    loop = _Loop(g, node)
    count = g.store("0")
    loop.open()
    condition = g.boolean(g.value(predicate))
    g.flush()
    g.emit(f"if {condition}: {count} += 1; c += 2")
    loop.close()
    g.charge(2)
    return g.store(f"{count} == 1"), BOOL


def _collect(g: Generator, node: Comprehension, keep: Node | None, element: Node) -> Value:
    """`map`, `filter`, `transformList`: accumulator 1, list 10 (a constant one is free), addition 1; at the end 1."""
    loop = _Loop(g, node)
    result = g.store("[]")
    loop.open()
    if keep is not None:
        condition = g.boolean(g.value(keep))
        g.open(f"if {condition}:")
    g.charge(2 if fold(element) is not NOT_CONSTANT else 12)
    atom, known = g.value(element)
    g.flush()
    g.emit(f"{result}.append({atom})")
    if keep is not None:
        g.close()
    loop.close()
    g.charge(1)
    return result, list_of(_believable(known))


def _insert(g: Generator, node: Comprehension, keep: Node | None, parts: list[Node]) -> Value:
    """`transformMap` and `transformMapEntry`: accumulator 1, insertion 1; at the end 1."""
    loop = _Loop(g, node)
    entries = g.store("{}")
    loop.open()
    if keep is not None:
        condition = g.boolean(g.value(keep))
        g.open(f"if {condition}:")
    g.charge(2)
    atoms = [g.value(part)[0] for part in parts]
    if g.tracks_origin and len(atoms) == 1:
        atoms = [g.store(f"outside.plain({atoms[0]})")]
    g.may_fail()
    g.emit(f"{'insert' if len(atoms) == 2 else 'insert_all'}({entries}, {', '.join(atoms)})")
    if keep is not None:
        g.close()
    loop.close()
    g.charge(1)
    return g.store(f"protect(inserted({entries}))" if g.unescape else f"inserted({entries})"), DYN


def _general(g: Generator, node: Comprehension) -> Value:
    """Any other loop. An error inside ends it."""
    loop = _Loop(g, node)
    accu, _ = g.value(node.init)
    result = g.store(accu)
    scope: dict[str, Value] = {node.accu: (result, DYN)}
    g.scopes.append(scope)
    loop.open()
    condition, _ = g.value(node.condition)
    g.flush()
    g.emit(f"if {condition} is False: break")
    atom, _ = g.value(node.step)
    g.emit(f"{result} = {atom}")
    loop.close()
    value = g.value(node.result)
    g.scopes.pop()
    return value
