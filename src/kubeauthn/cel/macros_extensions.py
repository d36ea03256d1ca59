"""Macros of the optional libraries: `cel.bind`, `math.least` and `math.greatest`, `cel.block`."""

from __future__ import annotations

from collections.abc import Mapping

from .ast import Call, Ident, ListLiteral, Literal, MapLiteral, Node
from .macros import Expander, MacroError, MacroKey, bind

__all__ = ["BINDING_MACROS", "BLOCK_MACROS", "MATH_MACROS"]


def _called_on(name: str, target: Node | None) -> bool:
    return isinstance(target, Ident) and target.name == name


def _cel_bind(at: int, target: Node | None, args: list[Node]) -> Node | None:
    if not _called_on("cel", target):
        return None
    if not isinstance(args[0], Ident):
        raise MacroError(args[0].offset, "cel.bind() variable names must be simple identifiers")
    return bind(at, args[0].name, args[1], args[2])


def _extreme(name: str, function: str) -> Expander:
    def expand(at: int, target: Node | None, args: list[Node]) -> Node | None:
        if target is None or not _called_on("math", target):
            return None
        if not args:
            raise MacroError(target.offset, f"math.{name}() requires at least one argument")
        if len(args) == 1:
            only = args[0]
            numbers = isinstance(only, ListLiteral) and only.elements and all(map(_may_be_number, only.elements))
            if not numbers and (isinstance(only, ListLiteral) or not _may_be_number(only)):
                raise MacroError(only.offset, f"math.{name}() invalid single argument value")
            return Call(at, function, args)
        for arg in args:
            if not _may_be_number(arg):
                raise MacroError(arg.offset, f"math.{name}() simple literal arguments must be numeric")
        return Call(at, function, args if len(args) == 2 else [ListLiteral(at, args)])

    return expand


def _may_be_number(node: Node) -> bool:
    if isinstance(node, Literal):
        return isinstance(node.value, (int, float)) and not isinstance(node.value, bool)
    return not isinstance(node, (ListLiteral, MapLiteral))


def _block(at: int, target: Node | None, args: list[Node]) -> Node | None:
    """`cel.block([a, b], body)`: the elements get names, each may use those before it."""
    if not _called_on("cel", target):
        return None
    if not isinstance(args[0], ListLiteral):
        raise MacroError(args[0].offset, "cel.block requires a list literal as its first argument")
    body = args[1]
    for index in range(len(args[0].elements) - 1, -1, -1):
        body = bind(at, f"@index{index}", args[0].elements[index], body)
    return body


def _numbered(prefix: str) -> Expander:
    def expand(at: int, target: Node | None, args: list[Node]) -> Node | None:
        if not _called_on("cel", target):
            return None
        numbers = [arg.value for arg in args if isinstance(arg, Literal) and type(arg.value) is int and arg.value >= 0]
        if len(numbers) != len(args):
            raise MacroError(at, "cel.index and cel.iterVar take non-negative integer literals")
        return Ident(at, prefix + ":".join(str(number) for number in numbers))

    return expand


BINDING_MACROS: Mapping[MacroKey, Expander] = {("bind", 3, True): _cel_bind}
MATH_MACROS: Mapping[MacroKey, Expander] = {
    ("least", -1, True): _extreme("least", "math.@min"),
    ("greatest", -1, True): _extreme("greatest", "math.@max"),
}
BLOCK_MACROS: Mapping[MacroKey, Expander] = {
    ("block", 2, True): _block,
    ("index", 1, True): _numbered("@index"),
    ("iterVar", 2, True): _numbered("@it:"),
    ("accuVar", 2, True): _numbered("@ac:"),
}
