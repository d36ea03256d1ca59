"""Format strings that are known now: whether their clauses fit the arguments."""

from __future__ import annotations

from .ast import Call, ListLiteral, Literal, MapLiteral, Node
from .library.format_clauses import FormatError, expand
from .library.string_format import refusal
from .source import Source

__all__ = ["check_format_call"]

_PRINTABLE = frozenset((
    "list", "map", "int", "uint", "double", "bool", "string", "timestamp", "bytes", "duration", "type", "null", "dyn",
))  # fmt: skip
_KINDS = {
    "d": frozenset(("int", "uint", "dyn")),
    "f": frozenset(("double", "string", "dyn")),
    "e": frozenset(("double", "string", "dyn")),
    "b": frozenset(("int", "uint", "bool", "dyn")),
    "x": frozenset(("int", "uint", "string", "bytes", "dyn")),
    "o": frozenset(("int", "uint", "dyn")),
}


def check_format_call(source: Source, node: Call) -> None:
    """`'literal'.format([…])`: one fault at most, at the argument or at the call."""
    if not isinstance(node.target, Literal) or len(node.args) != 1 or not isinstance(node.args[0], ListLiteral):
        return
    text = node.target.value
    if not isinstance(text, str):
        return
    arguments = node.args[0].elements
    place = node.offset
    used = 0

    def clause(letter: str, precision: int | None, argument: int) -> str:
        nonlocal place, used
        used = argument + 1
        kinds = _KINDS.get(letter.lower())
        bad = _unprintable(arguments[argument]) if kinds is None else _unfit(arguments[argument], kinds)
        if bad is not None:
            place = bad.offset
            assert bad.type is not None  # noqa: S101 - the tree has been checked
            raise refusal(letter, bad.type.name)
        return ""

    try:
        expand(text, len(arguments), clause, checking=True)
    except FormatError as error:
        source.report(place, error.message)
        return
    if len(arguments) > used:
        source.report(
            node.offset, f"too many arguments supplied to string.format (expected {used}, got {len(arguments)})"
        )


def _unfit(node: Node, kinds: frozenset[str]) -> Node | None:
    return None if node.type is not None and node.type.kind in kinds else node


def _unprintable(node: Node) -> Node | None:
    """The first part that %s cannot print, looking into literals."""
    bad = _unfit(node, _PRINTABLE)
    if bad is None and isinstance(node, (ListLiteral, MapLiteral)):
        for part in node.children():
            bad = _unprintable(part)
            if bad is not None:
                return bad
    return bad
