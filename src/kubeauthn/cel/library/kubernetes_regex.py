"""Kubernetes' functions of regular expressions: find and findAll."""

from __future__ import annotations

from typing import Any

from .. import regex
from ..deadline import NEVER
from ..errors import EvalError
from ..overloads import Implementation, Overload
from ..values import no_such_overload
from . import costs

__all__ = ["OVERLOADS", "TYPES"]

TYPES: tuple[str, ...] = ()


def _refused(function: str, text: object, pattern: object, *rest: object) -> EvalError:
    # A pattern that is written out was compiled before, and what is left of the call says less.
    return no_such_overload() if type(pattern) is str else no_such_overload(function, text, pattern, *rest)


def _find(text: Any, pattern: Any) -> str:
    if type(text) is not str or type(pattern) is not str:
        raise _refused("find", text, pattern)
    try:
        return regex.find(text, pattern)
    except regex.RegexError as error:
        raise EvalError(f"Illegal regex: {error.message}") from None


def _find_all(text: Any, pattern: Any, *limits: Any, deadline: float = NEVER) -> list[str]:
    if type(text) is not str or type(pattern) is not str or any(type(limit) is not int for limit in limits):
        raise _refused("findAll", text, pattern, *limits)
    try:
        return regex.find_all(text, pattern, *limits, deadline=deadline)
    except regex.RegexError as error:
        raise EvalError(f"Illegal regex: {error.message}") from None


def _row(id: str, function: str, params: tuple[str, ...], result: str, implementation: Implementation) -> Overload:
    return Overload(
        id,
        function,
        params,
        result,
        implementation,
        member=True,
        cost=costs.pattern_scan,
        cost_by_name=True,
        unguarded=True,
        timed=function == "findAll",
    )


OVERLOADS = (
    _row("string_find_string", "find", ("string", "string"), "string", _find),
    _row("string_find_all_string", "findAll", ("string", "string"), "list(string)", _find_all),
    _row("string_find_all_string_int", "findAll", ("string", "string", "int"), "list(string)", _find_all),
)
