"""The arguments of a call, and what it has cost when one of them failed.

cel-go reckons a call of one or two arguments even when one of them failed, and one of more if it was the last; an error
has the size of one element there. That shows where the error is forgotten.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from .ast import Call, MapLiteral, Node, walk
from .errors import EvalError
from .folding import NOT_CONSTANT, fold, known_now
from .library import costs
from .overloads import CostFunction
from .values import MISSING

if TYPE_CHECKING:
    from .codegen import Generator, Value

__all__ = ["arguments", "asserted", "cost_of_failing", "in_order", "operands"]


def cost_of_failing(cost: CostFunction | None, parts: list[Node]) -> int:
    """What a call has cost whose argument failed, as far as that is known now: `operands` adds the rest."""
    count = len(parts)
    if cost is None or costs.ASSERTED.get(cost, (count,))[0] < count:
        return 1
    if count == 1:
        return cost((MISSING,), MISSING)
    known = [known_now(part) for part in parts]
    if (known[0] is NOT_CONSTANT) is (known[1] is NOT_CONSTANT):
        return 1
    return cost(tuple(MISSING if value is NOT_CONSTANT else value for value in known), MISSING)


def arguments(g: Generator, parts: list[Node], cost: CostFunction | None, charged: int) -> list[Value]:
    """One argument or two, of a call that costs this, some of which is `charged` already; see `costs.ASSERTED`."""
    position, wanted = costs.ASSERTED.get(cost, (0, "")) if cost is not None and g.cel_go else (0, "")
    if not wanted or position >= len(parts):
        constant = any(_is_constant(part) for part in parts)
        return operands(g, parts, None if constant else cost)
    values: list[Value] = []
    error = ""
    if wanted == costs.INT_ASSERTED:
        error = g.temporary()
        values.append(_kept(g, lambda: g.value(parts[0]), error))
        parts = parts[1:]
    values += asserted(g, lambda: operands(g, parts), wanted)
    atom = values[position][0]
    g.may_fail()
    g.emit(f"assert_argument({atom if atom.isidentifier() else g.store(atom)}, {wanted!r})")
    if error:
        g.open(f"if {error} is not None:")
        rest = f" - {charged}" if charged else ""
        g.charge_run_time(f"{g.hand_over(cost)}((None, {atom}), None){rest}")  # an error counts as one element
        g.emit(f"raise {error}")
        g.close()
    return values


def in_order(g: Generator, parts: list[Node], cost: CostFunction | None) -> list[Value]:
    """The first that fails is the last that is computed."""
    if not g.absorbing or _is_constant(parts[-1]) or g.too_deep():
        return [g.value(part) for part in parts]
    values = [g.value(part) for part in parts[:-1]]
    g.flush()
    g.emit("try:")
    g.indent += 1
    g.blocks += 1
    head = len(g.lines)
    last = g.value(parts[-1])
    g.flush()
    if len(g.lines) == head:
        g.emit("pass")
    g.blocks -= 1
    g.indent -= 1
    g.emit("except LimitError: raise")
    g.emit("except ABSORBED:")
    computed = ", ".join(atom for atom, _ in values)
    g.emit(f"    c += {f'cost_before({g.hand_over(cost)}, ({computed}, MISSING))' if cost is not None else 1}")
    g.emit("    raise")
    return [*values, last]


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


def _kept(g: Generator, write: Callable[[], Value], error: str) -> Value:
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


def operands(g: Generator, parts: list[Node], cost: CostFunction | None = None) -> list[Value]:
    """One argument or two. cel-go computes the second even when the first has failed: that shows in the cost where the
    error may be forgotten, and where the second one ends the whole evaluation. `cost`: what a call that failed costs,
    of which 1 is paid already.
    """
    forgotten = g.absorbing or (g.cel_go and len(parts) == 2 and _may_end(parts[1]))
    if not forgotten or len(parts) != 2 or _is_constant(parts[1]) or g.too_deep():
        return [g.value(part) for part in parts]
    priced = g.hand_over(cost) if cost is not None and g.absorbing else ""
    first, first_lines, first_fails = _aside(g, parts[0])
    if not first_fails and not priced:
        g.lines += [line[4:] for line in first_lines]
        return [first, g.value(parts[1])]
    second, second_lines, second_fails = _aside(g, parts[1])
    error = g.temporary() if first_fails else ""
    if error:
        g.emit(f"{error} = None")
        g.emit("try:")
        g.lines += first_lines
        g.emit("except LimitError: raise")
        g.emit(f"except ABSORBED as {error}x: {error} = {error}x")
    else:
        g.lines += [line[4:] for line in first_lines]
    if not second_fails:
        g.lines += [line[4:] for line in second_lines]
    else:
        g.emit("try:")
        g.lines += second_lines
        g.emit("except LimitError: raise")
        g.emit("except ABSORBED:")
        if priced:
            known = f"{first[0]} if {error} is None else MISSING" if error else first[0]
            g.emit(f"    c += cost_before({priced}, ({known}, MISSING)) - 1")
        if error:
            g.emit(f"    if {error} is not None: raise {error} from None")
        g.emit("    raise")
    if error:
        g.open(f"if {error} is not None:")
        if priced:
            g.emit(f"c += cost_before({priced}, (MISSING, {second[0]})) - 1")
        g.emit(f"raise {error}")
        g.close()
    return [first, second]


def _aside(g: Generator, part: Node) -> tuple[Value, list[str], bool]:
    """A value, the lines that compute it in a block of their own, and whether they may fail."""
    outer, g.lines = g.lines, []
    failed_before, g.can_fail = g.can_fail, False
    g.indent += 1
    g.blocks += 1
    value = g.value(part)
    g.flush()
    g.indent -= 1
    g.blocks -= 1
    lines, g.lines = g.lines, outer
    fails, g.can_fail = g.can_fail, g.can_fail or failed_before
    return value, lines, fails


def _is_constant(node: Node) -> bool:
    """Also one that fails: computed in its turn, it says so."""
    try:
        return fold(node) is not NOT_CONSTANT
    except EvalError:
        return True
