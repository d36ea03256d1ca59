"""Lists and objects that kube-apiserver does not take for groups and extra values, followed to where they come out.

It takes a list of CEL's own: of a literal, a sum, a loop, a claim. One that a function written in Go hands over as it
is (`split`, `findAll`, a URL's query, a format) it does not, however it is passed on, nor an object. Judged by the
tree alone: what a claim holds is not known.
"""

from __future__ import annotations

from kubeauthn.cel.ast import Call, Comprehension, Ident, ListLiteral, MapLiteral, Node, Select

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

OBJECT = "an object"
_LIST_MAKERS = frozenset(("split", "findAll", "validate"))
_QUERY = "getQuery"
_HANDED_ON = frozenset(("dyn", "value", "or", "orValue", "optional.of", "optional.ofNonZeroValue"))
"""Calls that come to one of what they are given. An optional is taken for what is in it."""
_ONE_OF_IT = frozenset(("_[_]", "_[?_]", "_?._"))
_MADE_ANEW = frozenset(("_+_", "slice", "sort", "reverse", "distinct"))
"""Calls whose list is CEL's own, with what was in the lists that they are given."""
_DEEPEST = 200

Origins = frozenset[tuple[str, int]]
"""What made a list or object, and in how many others it is."""
_NONE: Origins = frozenset()


def origin_of_value(node: Node) -> str:
    """What made the list or object that an expression may come to and kube-apiserver refuses; "" if nothing did."""
    found = sorted(maker for maker, depth in _origins(node, {}, 0) if depth == 0)
    return found[0] if found else ""


def _origins(node: Node, names: Mapping[str, Origins], level: int) -> Origins:
    """Of what is too deep nothing is said. How many nodes there are, the compiler has seen to."""
    if level > _DEEPEST:
        return _NONE

    def of(*parts: Node) -> Origins:
        return _NONE.union(*(_origins(part, names, level + 1) for part in parts))

    if isinstance(node, Ident):
        return names.get(node.name, _NONE)
    if isinstance(node, Select):
        return _NONE if node.test_only else _outer(of(node.operand))
    if isinstance(node, ListLiteral):
        return _inner(of(*node.elements))
    if isinstance(node, MapLiteral):
        return _inner(of(*(entry.value for entry in node.entries))) | {(OBJECT, 0)}
    if isinstance(node, Comprehension):
        return _of_loop(node, names, level)
    return _of_call(node, of) if isinstance(node, Call) else _NONE


def _of_call(node: Call, of: Callable[..., Origins]) -> Origins:
    if node.function in _LIST_MAKERS:
        return frozenset({(node.function, 0)})
    if node.function == _QUERY:
        return frozenset({(_QUERY, 0), (_QUERY, 1)})
    if node.function in _HANDED_ON:
        return of(*node.children())
    if node.function == "_?_:_":
        return of(*node.args[1:])
    if node.function in _ONE_OF_IT:
        return _outer(of(node.args[0]))
    return _inside(of(*node.children())) if node.function in _MADE_ANEW else _NONE


def _of_loop(node: Comprehension, names: Mapping[str, Origins], level: int) -> Origins:
    """Also of what a macro binds to a name, which is a loop over nothing."""
    ranged = _origins(node.iter_range, names, level + 1)
    if not node.iter_var2 and str(node.iter_range.type).startswith("map("):
        ranged = _NONE  # its keys
    inside = {**names, node.iter_var: _NONE, node.iter_var2 or node.iter_var: _outer(ranged)}
    inside[node.accu] = _origins(node.init, names, level + 1)
    inside[node.accu] |= _origins(node.step, inside, level + 1)
    return _origins(node.result, inside, level + 1)


def _inner(origins: Iterable[tuple[str, int]]) -> Origins:
    return frozenset((maker, depth + 1) for maker, depth in origins)


def _outer(origins: Iterable[tuple[str, int]]) -> Origins:
    return frozenset((maker, depth - 1) for maker, depth in origins if depth)


def _inside(origins: Iterable[tuple[str, int]]) -> Origins:
    return frozenset((maker, depth) for maker, depth in origins if depth)
