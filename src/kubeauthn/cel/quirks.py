"""Where Kubernetes, or the CEL library it uses, goes its own way."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .overloads import Overload
    from .types import Type

__all__ = ["SPECIFICATION", "Quirks"]


class Quirks:
    """Differences from the language's specification. An environment of your own has none."""

    __slots__ = ("cel_go", "escaped_names", "free_has", "hidden_types", "lazy", "names_matches", "old_cel_go",
                 "overloads", "undefined_types")  # fmt: skip

    def __init__(
        self,
        *,
        lazy: Mapping[str, str] | None = None,
        escaped_names: bool = False,
        free_has: bool = False,
        cel_go: bool = False,
        old_cel_go: bool = False,
        names_matches: bool = False,
        hidden_types: Iterable[str] = (),
        undefined_types: Mapping[str, Type] | None = None,
        overloads: Iterable[Overload] = (),
    ) -> None:
        """`lazy`: variables that are objects only in name, with their type (see `runtime.LazyObject`).

        `escaped_names`: `a__dot__b` finds the key `a.b`. `free_has`: `has(x)` costs nothing itself. `cel_go`: maps
        take any key and let the last of two equal ones count, an optional select from a number finds nothing, and null
        beside an optional makes a list of nulls, as in cel-go; the specification wants errors and optionals.
        `old_cel_go`: as cel-go was until 0.26 (see `old_optionals.py`): fields are not quoted with backticks, `or` and
        `orValue` of what is no optional are that, and opening an optional loses the type of what is in it.
        `names_matches`: the error of a `matches` whose text is no string names the function, as since cel-go 0.26.
        `hidden_types`: names that libraries have for types and expressions have not. `undefined_types`: names that the
        check knows and no program can use. `overloads`: rows in the place of the libraries' own.
        """
        self.lazy = dict(lazy or {})
        self.escaped_names = escaped_names
        self.free_has = free_has
        self.cel_go = cel_go
        self.old_cel_go = old_cel_go
        self.names_matches = names_matches
        self.hidden_types = frozenset(hidden_types)
        self.undefined_types = dict(undefined_types or {})
        self.overloads = tuple(overloads)


SPECIFICATION = Quirks()
