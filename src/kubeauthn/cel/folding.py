"""Values that are known before the expression runs.

Kubernetes folds list and map literals of constants and the conversions of constants; what then fails to convert is
an error of the expression, not of a token. Such constants are free.
"""

from __future__ import annotations

from . import well_known
from .ast import Call, Ident, ListLiteral, Literal, MapLiteral, Node
from .dispatch import bind
from .errors import EvalError
from .values import MISSING, Optional, TypeValue, UInt, make_map

__all__ = ["NOT_CONSTANT", "fold", "has_good_keys", "known_now"]


class _NotConstant:
    __slots__ = ()


NOT_CONSTANT = _NotConstant()
_CONVERSIONS = frozenset((
    "bool", "bytes", "double", "duration", "dyn", "int", "string", "timestamp", "type", "uint",
))  # fmt: skip


def known_now(node: Node) -> object:
    """What `fold` says, and NOT_CONSTANT of what fails: that is said when its turn comes."""
    try:
        return fold(node)
    except EvalError:
        return NOT_CONSTANT


def fold(node: Node) -> object:
    """The value of a constant node, or NOT_CONSTANT. Raises EvalError where a conversion fails."""
    if isinstance(node, Literal):
        return node.value
    if isinstance(node, Ident):
        if node.type_value:
            if node.undefined:
                raise EvalError(f"reference to undefined type: {node.name}")
            return TypeValue(node.name)
        return well_known.CONSTANTS.get(node.name, NOT_CONSTANT) if node.is_global else NOT_CONSTANT
    if isinstance(node, ListLiteral):
        return _fold_list(node)
    if isinstance(node, MapLiteral):
        return _fold_map(node)
    if isinstance(node, Call) and node.function == "@in" and _is_in_empty_list(node):
        return False
    if isinstance(node, Call) and node.function in _CONVERSIONS and node.target is None and len(node.args) == 1:
        argument = fold(node.args[0])
        if argument is not NOT_CONSTANT and node.overloads:
            return bind(node.function, node.overloads)(argument)
    return NOT_CONSTANT


def _is_in_empty_list(node: Call) -> bool:
    """Whatever is sought is not even looked at."""
    ranged = node.args[1] if len(node.args) == 2 else None
    return isinstance(ranged, ListLiteral) and not ranged.elements


def _fold_list(node: ListLiteral) -> object:
    values: list[object] = []
    for index, element in enumerate(node.elements):
        value = fold(element)
        if value is NOT_CONSTANT:
            return NOT_CONSTANT
        if index in node.optional:
            if type(value) is not Optional:
                return NOT_CONSTANT
            if value.value is MISSING:
                continue
            value = value.value
        values.append(value)
    return values


def _fold_map(node: MapLiteral) -> object:
    pairs: list[tuple[object, object]] = []
    for entry in node.entries:
        key = fold(entry.key)
        value = NOT_CONSTANT if key is NOT_CONSTANT else fold(entry.value)  # a fault of the key comes first
        if value is NOT_CONSTANT or entry.optional:
            return NOT_CONSTANT
        pairs.append((key, value))
    return make_map(pairs)


def has_good_keys(node: MapLiteral) -> bool:
    """Whether no constant key of a map is of a wrong type or there twice, as the specification wants it."""
    seen: set[object] = set()
    for entry in node.entries:
        key = fold(entry.key)
        if key is NOT_CONSTANT:
            continue
        if type(key) not in (str, int, bool, UInt):
            return False
        identity = (bool, key) if type(key) is bool else key
        if identity in seen:
            return False
        seen.add(identity)
    return True
