"""Optional values: optional.of, orValue, first, last, and looking into what may be absent."""

from __future__ import annotations

from typing import Any

from ..errors import EvalError
from ..old_optionals import settled
from ..overloads import Overload
from ..values import MISSING, NONE, Optional, is_zero
from .indexing import index, optional_index, optional_select

__all__ = ["LATEST", "OVERLOADS", "TYPES", "either", "overloads", "value_or"]

TYPES = ("optional_type",)
LATEST = 2


def _of(value: object) -> Optional:
    return Optional(value)


def _of_non_zero(value: object) -> Optional:
    return NONE if is_zero(value) else Optional(value)


def _none() -> Optional:
    return NONE


def _value(optional: Optional) -> object:
    if optional.value is MISSING:
        raise EvalError("optional.none() dereference")
    return settled(optional.value)


def _has_value(optional: Optional) -> bool:
    return optional.value is not MISSING


def either(optional: Any, other: object) -> object:
    """optional.or(other). The compiler evaluates `other` only where it is needed."""
    if type(optional) is not Optional:
        raise EvalError("no such overload")
    return optional if optional.value is not MISSING else other


def value_or(optional: Any, default: object) -> object:
    """optional.orValue(default). The compiler evaluates `default` only where it is needed."""
    if type(optional) is not Optional:
        raise EvalError("no such overload")
    return optional.value if optional.value is not MISSING else default


def _unwrap(optionals: list[Optional]) -> list[object]:
    return [settled(optional.value) for optional in optionals if optional.value is not MISSING]


def _first(elements: list[object]) -> Optional:
    return Optional(elements[0]) if elements else NONE


def _last(elements: list[object]) -> Optional:
    return Optional(elements[-1]) if elements else NONE


_K, _V, _O = "<K>", "<V>", "optional_type(<V>)"
_LIST, _MAP = "list(<V>)", "map(<K>, <V>)"
_OPTIONAL_LIST, _OPTIONAL_MAP = f"optional_type({_LIST})", f"optional_type({_MAP})"

_FIRST_VERSION = (
    Overload("optional_of", "optional.of", (_V,), _O, _of, unguarded=True),
    Overload("optional_ofNonZeroValue", "optional.ofNonZeroValue", (_V,), _O, _of_non_zero, unguarded=True),
    Overload("optional_none", "optional.none", (), _O, _none, unguarded=True),
    Overload("optional_value", "value", (_O,), _V, _value, member=True),
    Overload("optional_hasValue", "hasValue", (_O,), "bool", _has_value, member=True),
    Overload("optional_or_optional", "or", (_O, _O), _O, either, member=True, unguarded=True),
    Overload("optional_orValue_value", "orValue", (_O, _V), _V, value_or, member=True, unguarded=True),
    Overload("select_optional_field", "_?._", ("dyn", "string"), _O, optional_select, unguarded=True),
    Overload("list_optindex_optional_int", "_[?_]", (_LIST, "int"), _O, optional_index, unguarded=True),
    Overload(
        "optional_list_optindex_optional_int", "_[?_]", (_OPTIONAL_LIST, "int"), _O, optional_index, unguarded=True
    ),
    Overload("map_optindex_optional_value", "_[?_]", (_MAP, _K), _O, optional_index, unguarded=True),
    Overload("optional_map_optindex_optional_value", "_[?_]", (_OPTIONAL_MAP, _K), _O, optional_index, unguarded=True),
    Overload("optional_list_index_int", "_[_]", (_OPTIONAL_LIST, "int"), _O, index, unguarded=True),
    Overload("optional_map_index_value", "_[_]", (_OPTIONAL_MAP, _K), _O, index, unguarded=True),
)

_SINCE_2 = (
    Overload("list_last", "last", (_LIST,), _O, _last, member=True),
    Overload("list_first", "first", (_LIST,), _O, _first, member=True),
    Overload("optional_unwrap", "optional.unwrap", (f"list({_O})",), _LIST, _unwrap),
    Overload("optional_unwrapOpt", "unwrapOpt", (f"list({_O})",), _LIST, _unwrap, member=True),
)


def overloads(version: int) -> tuple[Overload, ...]:
    """The library as it was in that version. Version 1 brought only a macro, optFlatMap."""
    return (*_FIRST_VERSION, *_SINCE_2) if version >= 2 else _FIRST_VERSION


OVERLOADS = overloads(LATEST)
