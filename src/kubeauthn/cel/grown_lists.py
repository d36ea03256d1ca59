"""Empty lists that get a name: cel-go adds to such a list in place.

`optional.of([]).optMap(x, [x + [1], x])` is `[[1], [1]]` there: a name for an empty list is a list that can grow, and
`+` lets it. An expression in which no list gets a name, or none is added to, is compiled without any of this.
"""

from __future__ import annotations

from typing import Any

from .ast import Call, Comprehension, Literal, Node, walk
from .errors import EvalError
from .macros import SORT_INPUT
from .values import CelMap, Optional

__all__ = ["TO_ITSELF", "Grown", "grows_lists"]

TO_ITSELF = "a list that grows is added to itself"
"""cel-go counts it wrongly then, panics where it is read, or runs in circles until the process ends."""
_LISTS = "add_list"


def grows_lists(node: Node) -> bool:
    """Whether an expression gives a value a name and adds lists."""
    names = adds = False
    own: set[int] = set()  # sums that a macro made
    for part in walk(node):
        if isinstance(part, Comprehension):
            names = names or (_is_name(part) and part.accu != SORT_INPUT)
            own.update(map(id, _steps(part)))
        elif isinstance(part, Call) and part.function == "_+_" and id(part) not in own:
            adds = adds or any(row.id == _LISTS for row in part.overloads or ())
        if names and adds:
            return True
    return False


def _is_name(node: Comprehension) -> bool:
    return isinstance(node.condition, Literal) and node.condition.value is False


def _steps(node: Comprehension) -> tuple[Node, ...]:
    """The step of a loop, and what it is if a condition holds."""
    step = node.step
    return (step, step.args[1]) if isinstance(step, Call) and step.function == "_?_:_" else (step,)


class Grown:
    """The lists of one evaluation that began empty and have a name."""

    __slots__ = ("_lists",)

    def __init__(self) -> None:
        self._lists: dict[int, list[Any]] = {}  # kept, so that no other list gets the same id

    def bound(self, value: Any) -> Any:
        """A value that gets a name."""
        if (type(value) is not list and type(value) is not tuple) or value:
            return value
        made: list[Any] = []
        self._lists[id(made)] = made
        return made

    def takes(self, left: Any, right: Any) -> bool:
        """Whether `left + right` is the business of `add`."""
        if type(right) is not list and type(right) is not tuple:
            return False
        return id(left) in self._lists or (type(left) is list and not left and id(right) in self._lists)

    def add(self, left: Any, right: Any) -> Any:
        if id(left) not in self._lists:
            return right  # beside an empty list, the other one itself
        if (left is right and left) or _holds(right, left):
            raise EvalError(TO_ITSELF)
        left.extend(right)
        return left

    def settled(self, value: Any) -> Any:
        """What a named value is used for, when that is done: it does not grow any more."""
        return list(value) if id(value) in self._lists else value


def _holds(value: Any, sought: list[Any]) -> bool:
    """Whether a list is somewhere inside a value."""
    waiting, seen = [value], {id(value)}
    while waiting:
        current = waiting.pop()
        if isinstance(current, Optional):
            parts: Any = (current.value,)
        elif isinstance(current, dict | CelMap):
            parts = current.values()
        else:
            parts = current if isinstance(current, list | tuple) else ()
        for part in parts:
            if part is sought:
                return True
            if isinstance(part, list | tuple | dict | CelMap | Optional) and id(part) not in seen:
                seen.add(id(part))
                waiting.append(part)
    return False
