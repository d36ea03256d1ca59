"""Comprehensions. The loops that the macros make are known by their shape and written as plain Python loops.

What a round costs beside the parts the user wrote follows from the macro's expansion: see each function.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from .ast import Call, Comprehension, Ident, ListLiteral, Literal, MapLiteral, Node, Select, walk
from .codegen_operands import asserted
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
    elif node.accu == SORT_INPUT and g.cel_go and _is_of_one_overload(node.result):
        value = asserted(g, lambda: [g.value(node.init)], LIST_ASSERTED)[0]
    elif any(_may_not_run(part) for part in parts):
        value = g.temporary(), DYN
        g.emit(f"{value[0]} = MISSING")
        g.compute_when_used(value[0], lambda: _bound(g, node.init)[0])
    else:
        value = _bound(g, node.init)
    g.scopes.append({node.accu: value})
    result = g.value(node.result)
    g.scopes.pop()
    if g.grows_lists and _may_be_list(result[1]):
        return g.store(f"grown.settled({result[0]})"), result[1]
    return result


def _is_of_one_overload(node: Node) -> bool:
    return isinstance(node, Call) and len(node.overloads or ()) == 1


def _bound(g: Generator, node: Node) -> Value:
    value = g.value(node)
    if g.tracks_origin and value[1] is DYN:
        value = g.store(f"outside.bound({value[0]})"), DYN
    return (g.store(f"grown.bound({value[0]})"), value[1]) if g.grows_lists and _may_be_list(value[1]) else value


def _may_be_list(known: Type) -> bool:
    return known is DYN or known.kind == "list"


def _may_not_run(node: Node) -> bool:
    """Whether a part of the node may be left out when it is evaluated."""
    return isinstance(node, Comprehension) or (isinstance(node, Call) and node.function in _LEAVE_OUT)


_INDEXES = frozenset(("_[_]", "_[?_]", "_?._"))
_LEAVE_OUT = frozenset(("_&&_", "_||_", "_?_:_", "_[_]", "_[?_]", "_?._", "@in", "or", "orValue"))


class _Loop:
    """The head of a Python loop, and its end."""

    def __init__(self, g: Generator, node: Comprehension) -> None:
        self.g = g
        self.node = node
        atom, known = g.value(node.iter_range)
        g.flush()
        # a loop over the claims themselves runs over their values, whatever the check takes them for
        first, second = (DYN, DYN) if _has_whole(g, node.iter_range) else self._types(known)
        scope: dict[str, Value] = {node.iter_var: (g.temporary(), first)}
        if node.iter_var2:
            scope[node.iter_var2] = (g.temporary(), second)
        self.names = ", ".join(name for name, _ in scope.values())
        if _has_whole(g, node.iter_range):
            g.may_be_errors.update(name for name, _ in scope.values())
        self.scope = scope
        g.may_fail()
        if g.grows_lists:
            atom = g.store(f"grown.settled({atom})")
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


def _has_whole(g: Generator, node: Node) -> bool:
    """Whether the claims as a whole are in it: their loops have errors for elements."""
    if isinstance(node, Ident):
        return node.is_global and node.name in g.lazy
    parts = node.children()
    if isinstance(node, Select) or (isinstance(node, Call) and node.function in _INDEXES):
        parts = tuple(part for part in parts if not isinstance(part, Ident))
    return any(_has_whole(g, part) for part in parts)


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


class _Errors:
    """What goes wrong in a loop. cel-go goes on: the last error of a condition is that of the loop, else the first one
    of what is computed where it holds; what comes later can still cost too much."""

    def __init__(self, g: Generator) -> None:
        self._g = g
        self._lines, self._before, self._indent = g.lines, len(g.lines), g.indent
        self._error = g.temporary()
        self._used = False

    def condition(self, node: Node) -> str:
        g = self._g
        result = g.temporary()

        def write() -> Value:
            atom = g.boolean(g.value(node))
            g.flush()
            g.emit(f"{result} = {atom}")
            return result, BOOL

        self._guarded(write, f"{result} = False; {self._error} = {self._error}x")
        return result

    def element(self, write: Callable[[], Value]) -> Value:
        return self._guarded(write, f"{self._error} = {self._error} or {self._error}x")

    def open_if_none(self) -> None:
        """A part that is left out once there is an error; the name of the result is looked at all the same."""
        if self._g.cel_go:
            self._used = True
            self._g.open(f"if {self._error} is None:")

    def close_if_none(self) -> None:
        if self._g.cel_go:
            self._g.close()
            self._g.emit("else: c += 1")

    def _guarded(self, write: Callable[[], Value], otherwise: str) -> Value:
        """What `write` writes, in a try block where it can fail."""
        g = self._g
        g.flush()
        outer, g.lines = g.lines, []
        failed_before, g.can_fail = g.can_fail, False
        g.indent += 1
        g.blocks += 1
        value = write()
        g.flush()
        g.indent -= 1
        g.blocks -= 1
        written, g.lines = g.lines, outer
        fails, g.can_fail = g.can_fail, g.can_fail or failed_before
        if not (fails and g.cel_go):
            g.lines += [line[4:] for line in written]
            return value
        self._used = True
        g.emit("try:")
        g.lines += written
        g.emit("except LimitError: raise")
        # what the round has cost is not noted then, unless somebody may ask
        g.emit(f"except ABSORBED as {self._error}x: {otherwise}{'' if g.absorbing else '; c += 1'}")
        return value

    def raised(self) -> None:
        """After the loop."""
        g = self._g
        if self._used:
            self._lines.insert(self._before, "    " * self._indent + f"{self._error} = None")
            g.may_fail()
            g.emit(f"if {self._error} is not None: raise {self._error}")


def _exists_one(g: Generator, node: Comprehension, predicate: Node) -> Value:
    """A match costs 2 (accumulator and addition), the comparison at the end 2."""
    loop = _Loop(g, node)
    count = g.store("0")
    errors = _Errors(g)
    loop.open()
    condition = errors.condition(predicate)
    g.flush()
    g.emit(f"if {condition}: {count} += 1; c += 2")
    loop.close()
    g.charge(2)
    errors.raised()
    return g.store(f"{count} == 1"), BOOL


def _collect(g: Generator, node: Comprehension, keep: Node | None, element: Node) -> Value:
    """`map`, `filter`, `transformList`: accumulator 1, list 10 (a constant one is free), addition 1; at the end 1."""
    loop = _Loop(g, node)
    result = g.store("[]")
    errors = _Errors(g)
    loop.open()
    if keep is not None:
        g.open(f"if {errors.condition(keep)}:")
    g.charge(2 if fold(element) is not NOT_CONSTANT else 12)

    def write() -> Value:
        value = g.value(element)
        g.flush()
        g.emit(f"{result}.append({value[0]})")
        return value

    known = errors.element(write)[1]
    if keep is not None:
        g.close()
    loop.close()
    g.charge(1)
    errors.raised()
    return result, list_of(_believable(known))


def _insert(g: Generator, node: Comprehension, keep: Node | None, parts: list[Node]) -> Value:
    """`transformMap` and `transformMapEntry`: accumulator 1, insertion 1; at the end 1."""
    loop = _Loop(g, node)
    entries = g.store("{}")
    errors = _Errors(g)
    loop.open()
    if keep is not None:
        g.open(f"if {errors.condition(keep)}:")
    alone = len(parts) == 2  # a call of three arguments, which stops at the first that is an error
    if alone:
        errors.open_if_none()
    g.charge(2)

    def write() -> Value:
        atoms = [g.value(part)[0] for part in parts]
        if g.tracks_origin and len(atoms) == 1:
            atoms = [g.store(f"outside.plain({atoms[0]})")]
        g.may_fail()
        g.flush()
        g.emit(f"{'insert' if len(atoms) == 2 else 'insert_all'}({entries}, {', '.join(atoms)})")
        return entries, DYN

    errors.element(write)
    if alone:
        errors.close_if_none()
    if keep is not None:
        g.close()
    loop.close()
    g.charge(1)
    errors.raised()
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
