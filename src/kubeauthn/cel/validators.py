"""Faults that the types do not show: constants that can never be converted, literals that mix types."""

from __future__ import annotations

from collections.abc import Iterator

from .ast import Call, ListLiteral, Literal, MapLiteral, Node
from .dispatch import bind
from .errors import EvalError
from .source import Source
from .types import Type, format_type, optional_of

__all__ = ["validate"]

# Arguments of these may be of any types side by side.
_EXEMPT = frozenset(("format",))


def validate(source: Source, root: Node) -> None:
    """Every check that Kubernetes has had since 1.29. Faults go to the source."""
    for node, exempt in _walk(root):
        if isinstance(node, Call):
            _check_call(source, node)
        elif isinstance(node, ListLiteral) and not exempt:
            _check_list(source, node)
        elif isinstance(node, MapLiteral) and not exempt:
            _check_map(source, node)


def _walk(root: Node) -> Iterator[tuple[Node, bool]]:
    """Every node, parents first, and whether it is inside a call that takes mixed literals."""
    waiting = [(root, False)]
    while waiting:
        node, exempt = waiting.pop()
        yield node, exempt
        exempt = exempt or (isinstance(node, Call) and node.function in _EXEMPT)
        waiting.extend((child, exempt) for child in reversed(node.children()))


def _check_call(source: Source, node: Call) -> None:
    if node.function == "format" and node.target is not None:
        from .format_check import check_format_call  # few expressions format anything

        check_format_call(source, node)
        return
    if not node.args or not isinstance(node.args[0], Literal):
        return
    argument = node.args[0]
    if node.function in ("duration", "timestamp") and len(node.args) == 1 and node.overloads:
        try:
            bind(node.function, node.overloads)(argument.value)
        except EvalError:
            source.report(argument.offset, f"invalid {node.function} argument")
    elif node.function == "matches" and isinstance(argument.value, str):
        from .regex import RegexError, compile_pattern  # google-re2 is only loaded when there is a pattern

        try:
            compile_pattern(argument.value)
        except RegexError:
            source.report(argument.offset, "invalid matches argument")


def _check_list(source: Source, node: ListLiteral) -> None:
    first: Type | None = None
    for index, element in enumerate(node.elements):
        of = _type(source, element, optional=index in node.optional)
        if of is None:
            return
        if first is None:
            first = of
        elif not _are_equivalent(of, first):
            _mismatch(source, element, first, of)
            return


def _check_map(source: Source, node: MapLiteral) -> None:
    keys: Type | None = None
    values: Type | None = None
    for entry in node.entries:
        key, value = _type(source, entry.key), _type(source, entry.value, optional=entry.optional)
        if key is None or value is None:
            return
        if keys is None or values is None:
            keys, values = key, value
            continue
        if not _are_equivalent(key, keys):
            _mismatch(source, entry.key, keys, key)
        if not _are_equivalent(value, values):
            _mismatch(source, entry.value, values, value)


def _are_equivalent(one: Type, other: Type) -> bool:
    """The same, but for a wrapper of a scalar, which counts as the scalar, and for the names of parameters."""
    if one is other:
        return True
    if one.kind != other.kind or len(one.params) != len(other.params):
        return False
    if one.kind != "parameter" and one.name != other.name:
        return False
    return all(map(_are_equivalent, one.params, other.params))


def _type(source: Source, node: Node, *, optional: bool = False) -> Type | None:
    """What an entry is of; None after a report of one that may be absent and is not known to be an optional, of which
    cel-go takes the parameter without a look: kube-apiserver panics."""
    assert node.type is not None  # noqa: S101 - the tree has been checked
    if not optional:
        return node.type
    if not node.type.params:
        _mismatch(source, node, optional_of(node.type), node.type)
        return None
    return node.type.params[0]


def _mismatch(source: Source, node: Node, expected: Type, found: Type) -> None:
    source.report(node.offset, f"expected type '{format_type(expected)}' but found '{format_type(found)}'")
