"""Functions that the specification wants otherwise than cel-go has them: for environments without cel-go's quirks."""

from __future__ import annotations

from typing import Any

from .errors import EvalError
from .overloads import Implementation, Overload

__all__ = ["as_specified"]


def as_specified(row: Overload) -> Overload:
    """The overload as the specification has it."""
    replace = _CHANGED.get(row.id)
    if replace is None or row.implementation is None:
        return row
    return Overload(
        row.id,
        row.function,
        row.params,
        row.result,
        replace(row.implementation),
        member=row.member,
        cost=row.cost,
        non_strict=row.non_strict,
        unguarded=row.unguarded,
        cost_by_name=row.cost_by_name,
    )


def _only_the_part(total: Implementation) -> Implementation:
    """The milliseconds of a duration beside its seconds, not all of it in milliseconds."""

    def milliseconds(duration: Any) -> object:
        all_of_it: Any = total(duration)
        return abs(all_of_it) % 1000 * (1 if all_of_it >= 0 else -1)

    return milliseconds


def _within_text(search: Implementation) -> Implementation:
    """A start behind the end of the text is an error."""

    def checked(text: Any, part: Any, start: Any) -> object:
        if start > len(text):
            raise EvalError(f"index out of range: {start}")
        return search(text, part, start)

    return checked


_CHANGED = {
    "duration_to_milliseconds": _only_the_part,
    "string_index_of_string_int": _within_text,
    "string_last_index_of_string_int": _within_text,
}
