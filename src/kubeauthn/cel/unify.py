"""Whether one type can stand for another, and what type parameters become on the way."""

from __future__ import annotations

from collections.abc import Sequence

from .types import DYN, NULL, Type, list_of, map_of, opaque, type_of_type

__all__ = ["Bindings", "assignable", "assignable_all", "is_dyn", "is_dyn_or_error", "most_general", "substitute"]

Bindings = dict[Type, Type]

_SCALARS = frozenset((
    "bool", "bytes", "double", "int", "string", "uint", "any", "duration", "timestamp", "struct",
))  # fmt: skip
_NULLABLE = frozenset(("opaque", "struct", "any", "duration", "timestamp"))


def is_dyn(of: Type) -> bool:
    return of.kind == "dyn" or of.kind == "any"


def is_dyn_or_error(of: Type) -> bool:
    return of.kind == "dyn" or of.kind == "any" or of.kind == "error"


def assignable(bindings: Bindings, one: Type, two: Type) -> Bindings | None:
    """The bindings with which `one` fits `two`, or None."""
    if one is two and not one.has_parameters:
        return bindings
    trial = bindings.copy()
    return trial if _fits(trial, one, two) else None


def assignable_all(bindings: Bindings, ones: Sequence[Type], twos: Sequence[Type]) -> Bindings | None:
    """The same for lists of types."""
    if len(ones) != len(twos):
        return None
    trial: Bindings | None = None
    for one, two in zip(ones, twos, strict=True):
        if one is two and not one.has_parameters:
            continue
        if trial is None:
            # most overloads that do not fit differ in a plain type: find that before copying anything
            if not one.has_parameters and not two.has_parameters and not _fits(bindings, one, two):
                return None
            trial = bindings.copy()
        if not _fits(trial, one, two):
            return None
    return bindings if trial is None else trial


def _fits(bindings: Bindings, one: Type, two: Type) -> bool:
    if two.kind == "parameter":
        valid, known = _valid_substitution(bindings, one, two)
        if valid:
            return True
        if known:
            return False
    if one.kind == "parameter":
        return _valid_substitution(bindings, two, one)[0]
    if is_dyn_or_error(one) or is_dyn_or_error(two):
        return True
    if one.kind == "null":
        return _takes_null(two)
    if two.kind == "null":
        return _takes_null(one)
    kind = one.kind
    if kind in _SCALARS:
        return one.kind == two.kind and one.name == two.name
    if kind == "type":
        return two.kind == "type"
    if kind in ("opaque", "list", "map"):
        return (
            two.kind == kind
            and one.name == two.name
            and len(one.params) == len(two.params)
            and all(_fits(bindings, p1, p2) for p1, p2 in zip(one.params, two.params, strict=True))
        )
    return False


def _takes_null(of: Type) -> bool:
    return of.kind in _NULLABLE or of.nullable or of is NULL


def _valid_substitution(bindings: Bindings, one: Type, two: Type) -> tuple[bool, bool]:
    """Whether the parameter `two` can be `one`, and whether it was bound before."""
    if one is two:
        return True, True
    bound = bindings.get(two)
    if bound is not None:
        if _is_exactly(one, bound):
            return True, True
        if _fits(bindings, one, bound):
            general = most_general(one, bound)
            if _absent(bindings, two, general):
                bindings[two] = general
            return True, True
        return False, True
    if _absent(bindings, two, one):
        bindings[two] = one
        return True, False
    return False, False


def _is_exactly(one: Type, two: Type) -> bool:
    """The same type; to cel-go a wrapper is the same as the scalar in it."""
    if one is two:
        return True
    if one.kind != two.kind or one.name != two.name or len(one.params) != len(two.params):
        return False
    return all(map(_is_exactly, one.params, two.params))


def _absent(bindings: Bindings, sought: Type, within: Type) -> bool:
    if sought is within:
        return False
    if within.kind == "parameter":
        bound = bindings.get(within)
        return bound is None or _absent(bindings, sought, bound)
    return all(_absent(bindings, sought, part) for part in within.params)


def most_general(one: Type, two: Type) -> Type:
    return one if _less_specific(one, two) else two


def _less_specific(one: Type, two: Type) -> bool:
    if is_dyn(one) or one.kind == "parameter":
        return True
    if is_dyn(two) or two.kind == "parameter" or one.kind != two.kind:
        return False
    if one.kind == "type":
        return True
    if one.kind in ("opaque", "list", "map"):
        return (
            one.name == two.name
            and len(one.params) == len(two.params)
            and all(_less_specific(p1, p2) for p1, p2 in zip(one.params, two.params, strict=True))
        )
    return one.kind == two.kind and one.name == two.name


def substitute(bindings: Bindings, of: Type, *, to_dyn: bool = False) -> Type:
    """The type with its bound parameters replaced; with `to_dyn` the unbound ones become dyn."""
    if not of.has_parameters:
        return of
    bound = bindings.get(of)
    if bound is not None:
        return substitute(bindings, bound, to_dyn=to_dyn)
    kind = of.kind
    if kind == "parameter":
        return DYN if to_dyn else of
    params = tuple(substitute(bindings, part, to_dyn=to_dyn) for part in of.params)
    if kind == "list":
        return list_of(params[0])
    if kind == "map":
        return map_of(params[0], params[1])
    if kind == "type":
        return type_of_type(params[0])
    return opaque(of.name, params)
