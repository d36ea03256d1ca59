"""Calls that the parser replaces: `has`, the comprehensions, and what libraries add.

An expander takes the place, the receiver and the arguments, and returns the replacement, or None to leave the call.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from .ast import Call, Comprehension, Ident, ListLiteral, Literal, MapLiteral, Node, Select, Struct

__all__ = [
    "LIST_MACROS", "OPTIONAL_MACROS", "SORT_INPUT", "STANDARD_MACROS", "TWO_VARIABLE_MACROS", "Expander", "MacroError",
    "MacroKey", "bind",
]  # fmt: skip

MacroKey = tuple[str, int, bool]  # name, number of arguments (-1: any), called on a receiver
Expander = Callable[[int, "Node | None", "list[Node]"], "Node | None"]

ACCUMULATOR = "@result"
_OLD_ACCUMULATOR = "__result__"
UNUSED = "#unused"
SORT_INPUT = "@__sortBy_input__"


class MacroError(Exception):
    """The arguments do not fit the macro."""

    def __init__(self, offset: int, message: str) -> None:
        super().__init__(message)
        self.offset = offset
        self.message = message


def _variable(node: Node, message: str) -> str:
    if not isinstance(node, Ident):
        raise MacroError(node.offset, message)
    if node.name in (ACCUMULATOR, _OLD_ACCUMULATOR):
        raise MacroError(node.offset, "iteration variable overwrites accumulator variable")
    return node.name


def _two_variables(args: list[Node]) -> tuple[str, str]:
    for arg in args[:2]:
        if not isinstance(arg, Ident):
            raise MacroError(arg.offset, "argument must be a simple name")
    first, second = args[0], args[1]
    assert isinstance(first, Ident)  # noqa: S101 - the loop above has seen to it; this tells the type checker
    assert isinstance(second, Ident)  # noqa: S101
    if first.name == second.name:
        raise MacroError(second.offset, f"duplicate variable name: {first.name}")
    return _variable(first, ""), _variable(second, "")


def _accu(at: int) -> Node:
    return Ident(at, ACCUMULATOR)


def _loop(
    at: int, over: Node | None, names: tuple[str, str], init: Node, condition: Node, step: Node, result: Node
) -> Node:
    assert over is not None  # noqa: S101 - registered for calls with a receiver only
    return Comprehension(at, over, names[0], names[1], ACCUMULATOR, init, condition, step, result)


def _has(at: int, target: Node | None, args: list[Node]) -> Node:
    argument = args[0]
    if not isinstance(argument, Select):
        raise MacroError(argument.offset, "invalid argument to has() macro")
    return Select(at, argument.operand, argument.field, test_only=True)


def _all(at: int, over: Node | None, names: tuple[str, str], predicate: Node) -> Node:
    condition = Call(at, "@not_strictly_false", [_accu(at)])
    step = Call(at, "_&&_", [_accu(at), predicate])
    return _loop(at, over, names, Literal(at, True), condition, step, _accu(at))


def _exists(at: int, over: Node | None, names: tuple[str, str], predicate: Node) -> Node:
    condition = Call(at, "@not_strictly_false", [Call(at, "!_", [_accu(at)])])
    step = Call(at, "_||_", [_accu(at), predicate])
    return _loop(at, over, names, Literal(at, False), condition, step, _accu(at))


def _exists_one(at: int, over: Node | None, names: tuple[str, str], predicate: Node) -> Node:
    more = Call(at, "_+_", [_accu(at), Literal(at, 1)])
    step = Call(at, "_?_:_", [predicate, more, _accu(at)])
    result = Call(at, "_==_", [_accu(at), Literal(at, 1)])
    return _loop(at, over, names, Literal(at, 0), Literal(at, True), step, result)


def _collect(at: int, over: Node | None, names: tuple[str, str], keep: Node | None, element: Node) -> Node:
    step: Node = Call(at, "_+_", [_accu(at), ListLiteral(at, [element])])
    if keep is not None:
        step = Call(at, "_?_:_", [keep, step, _accu(at)])
    return _loop(at, over, names, ListLiteral(at, []), Literal(at, True), step, _accu(at))


def _quantifier(make: Callable[[int, Node | None, tuple[str, str], Node], Node]) -> Expander:
    def expand(at: int, target: Node | None, args: list[Node]) -> Node:
        return make(at, target, (_variable(args[0], "argument must be a simple name"), ""), args[1])

    return expand


def _quantifier2(make: Callable[[int, Node | None, tuple[str, str], Node], Node]) -> Expander:
    def expand(at: int, target: Node | None, args: list[Node]) -> Node:
        return make(at, target, _two_variables(args), args[2])

    return expand


def _map(at: int, target: Node | None, args: list[Node]) -> Node:
    name = _variable(args[0], "argument is not an identifier")
    return _collect(at, target, (name, ""), args[1] if len(args) == 3 else None, args[-1])


def _filter(at: int, target: Node | None, args: list[Node]) -> Node:
    name = _variable(args[0], "argument is not an identifier")
    return _collect(at, target, (name, ""), args[1], args[0])


def _transform_list(at: int, target: Node | None, args: list[Node]) -> Node:
    return _collect(at, target, _two_variables(args), args[2] if len(args) == 4 else None, args[-1])


def _insert(at: int, target: Node | None, names: tuple[str, str], keep: Node | None, inserted: list[Node]) -> Node:
    step: Node = Call(at, "cel.@mapInsert", [_accu(at), *inserted])
    if keep is not None:
        step = Call(at, "_?_:_", [keep, step, _accu(at)])
    return _loop(at, target, names, MapLiteral(at, []), Literal(at, True), step, _accu(at))


def _transform_map(at: int, target: Node | None, args: list[Node]) -> Node:
    names = _two_variables(args)
    return _insert(at, target, names, args[2] if len(args) == 4 else None, [Ident(at, names[0]), args[-1]])


def _transform_map_entry(at: int, target: Node | None, args: list[Node]) -> Node:
    return _insert(at, target, _two_variables(args), args[2] if len(args) == 4 else None, [args[-1]])


def bind(at: int, name: str, value: Node, body: Node) -> Node:
    """`body` with `name` standing for `value`: a loop over nothing."""
    return Comprehension(at, ListLiteral(at, []), UNUSED, "", name, value, Literal(at, False), Ident(at, name), body)


def _sort_by(at: int, target: Node | None, args: list[Node]) -> Node:
    if isinstance(target, (Literal, MapLiteral, Struct)) or target is None:
        raise MacroError(
            at if target is None else target.offset,
            "sortBy can only be applied to a list, identifier, comprehension, call or select expression",
        )
    keys = _map(at, Ident(at, SORT_INPUT), args)
    return bind(at, SORT_INPUT, target, Call(at, "@sortByAssociatedKeys", [keys], Ident(at, SORT_INPUT)))


def _optional_map(flat: bool) -> Expander:
    label = "optFlatMap" if flat else "optMap"

    def expand(at: int, target: Node | None, args: list[Node]) -> Node:
        variable = args[0]
        if not isinstance(variable, Ident):
            raise MacroError(variable.offset, f"{label}() variable name must be a simple identifier")
        bound = bind(at, variable.name, Call(at, "value", [], target), args[1])
        some = bound if flat else Call(at, "optional.of", [bound])
        return Call(at, "_?_:_", [Call(at, "hasValue", [], target), some, Call(at, "optional.none", [])])

    return expand


STANDARD_MACROS: Mapping[MacroKey, Expander] = {
    ("has", 1, False): _has,
    ("all", 2, True): _quantifier(_all),
    ("exists", 2, True): _quantifier(_exists),
    ("exists_one", 2, True): _quantifier(_exists_one),
    ("map", 2, True): _map,
    ("map", 3, True): _map,
    ("filter", 2, True): _filter,
}
TWO_VARIABLE_MACROS: Mapping[MacroKey, Expander] = {
    ("all", 3, True): _quantifier2(_all),
    ("exists", 3, True): _quantifier2(_exists),
    ("existsOne", 3, True): _quantifier2(_exists_one),
    ("exists_one", 3, True): _quantifier2(_exists_one),
    ("transformList", 3, True): _transform_list,
    ("transformList", 4, True): _transform_list,
    ("transformMap", 3, True): _transform_map,
    ("transformMap", 4, True): _transform_map,
    ("transformMapEntry", 3, True): _transform_map_entry,
    ("transformMapEntry", 4, True): _transform_map_entry,
}
LIST_MACROS: Mapping[MacroKey, Expander] = {("sortBy", 2, True): _sort_by}
OPTIONAL_MACROS: Mapping[MacroKey, Expander] = {
    ("optMap", 2, True): _optional_map(flat=False),
    ("optFlatMap", 2, True): _optional_map(flat=True),
}
