"""How many members a value has when it is written out.

Parts of a value may be shared: thirty doublings make a list of a few objects that prints as a billion. They are counted
here in the time that the few objects take.
"""

from __future__ import annotations

from typing import Any

from .errors import LimitError
from .limits import MAX_WRITTEN_MEMBERS
from .values import CelMap, Optional

__all__ = ["check_members"]


def check_members(value: Any) -> None:
    """Raises LimitError for a value that is too long to be written out."""
    kind = type(value)
    if kind in (list, tuple, dict, CelMap, Optional) and _count(value, {}) > MAX_WRITTEN_MEMBERS:
        raise LimitError(f"a value with more than {MAX_WRITTEN_MEMBERS} members is not written out")


def _count(value: Any, known: dict[int, int]) -> int:
    kind = type(value)
    if kind is list or kind is tuple:
        children = value
    elif kind is CelMap or isinstance(value, dict):
        children = value.values()
    elif kind is Optional and value.present:
        children = (value.value,)
    else:
        return 1
    found = known.get(id(value))
    if found is None:
        found = known[id(value)] = 1 + sum(_count(child, known) for child in children)
    return found
