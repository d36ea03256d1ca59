"""Lists and maps inside a variable, told apart from those that an expression makes.

Kubernetes puts a wrapper around those of the claims and of the user: it makes maps answer to escaped names and hides
that something empty is. Looking up keeps the wrapper; a loop over a list and a sum take it away. An expression that
cannot tell the difference (see `shows_origin`) is compiled without any of this.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from .ast import Call, Literal, Node, Select, walk
from .map_building import check_hashable, is_unhashable, protect
from .old_optionals import reopened
from .values import NONE, CelMap, Optional, is_zero

__all__ = ["Outside", "shows_origin"]

_NON_ZERO = "optional.ofNonZeroValue"
_INDEXES = frozenset(("_[_]", "_[?_]"))
_KEY_KINDS = frozenset(("any", "dyn", "string", "parameter"))


def shows_origin(node: Node) -> bool:
    """Whether it can matter to an expression where a list or a map came from."""
    for part in walk(node):
        if isinstance(part, Select) and "__" in part.field:
            return True
        if isinstance(part, Literal) and type(part.value) is str and "__" in part.value:
            return True
        if isinstance(part, Call) and (part.function == _NON_ZERO or _has_unknown_key(part)):
            return True
    return False


def _has_unknown_key(call: Call) -> bool:
    if call.function not in _INDEXES or len(call.args) != 2 or isinstance(call.args[1], Literal):
        return False
    key = call.args[1].type
    return key is None or key.kind in _KEY_KINDS


class Outside:
    """The lists and maps inside the variables of one evaluation."""

    __slots__ = ("_ids", "_plain", "_variables")

    def __init__(self, variables: Mapping[str, object]) -> None:
        self._variables = variables
        self._ids: set[int] | None = None
        self._plain: dict[int, object] = {}

    def holds(self, value: object) -> bool:
        """Whether a value is one of them."""
        kind = type(value)
        if kind is not list and kind is not dict:
            return False
        if self._ids is None:
            self._ids = self._all_ids()
        return id(value) in self._ids

    def _all_ids(self) -> set[int]:
        waiting: list[Any] = [value for value in self._variables.values() if isinstance(value, dict | list)]
        found: set[int] = set()
        while waiting:
            value = waiting.pop()
            # of claims that cannot be read this takes what there is
            parts = dict.values(value) if isinstance(value, dict) else value
            inside = [part for part in parts if type(part) is list or type(part) is dict]
            found.update(map(id, inside))
            waiting += inside
        return found

    def plain(self, value: Any) -> Any:
        """The value without its wrapper; so is what is in it."""
        if not self.holds(value):
            return value
        copy = self._plain.get(id(value))
        if copy is None:
            made: object
            if type(value) is list:
                made = [self.plain(element) for element in value]
            else:
                made = protect({key: self.plain(element) for key, element in value.items()})
            copy = self._plain[id(value)] = made
        return copy

    def check_sought(self, key: object, container: Any) -> None:
        """Raises for a key on which Go panics where it is sought in a map that the expression made. The maps inside
        a variable have strings for keys, wrapped or not, and no key of another type is sought in them at all."""
        kind = type(container)
        if (kind is dict or kind is CelMap) and container and is_unhashable(key):
            given = any(container is value for value in (*self._variables.values(), *self._plain.values()))
            if not given and not self.holds(container):
                check_hashable(key)

    def iterate(self, value: Any) -> Any:
        """What a loop with one variable runs over: not the list that looking up would find."""
        return self.plain(value) if type(value) is list else value

    def iterate_pairs(self, value: Any) -> Any:
        """The same with two variables, where it is the map."""
        return self.plain(value) if type(value) is dict else value

    def bound(self, value: Any) -> Any:
        """A value that gets a name: cel-go begins an empty list or map anew, to be able to add to it."""
        return value if value or not self.holds(value) else type(value)()

    def non_zero(self, value: object) -> Optional:
        """optional.ofNonZeroValue."""
        return NONE if is_zero(value) and not self.holds(value) else Optional(value)

    def reopened(self, value: Any) -> Any:
        """See `old_optionals`: what is in an optional loses its wrapper."""
        if type(value) is Optional and self.holds(value.value):
            return Optional(self.plain(value.value))
        return reopened(value)

    def sum(self, add: Callable[[Any, Any], object], left: Any, right: Any) -> object:
        """`left + right`: beside an empty list, the other one itself."""
        if type(left) is list and type(right) is list and not left:
            return right
        return add(self.plain(left), right)

    def flattened(self, value: Any, seen: dict[int, object] | None = None) -> Any:
        """A list that is to be made flat, which is a loop over every list in it."""
        if type(value) is not list:
            return value
        if self.holds(value):
            return self.plain(value)
        seen = {} if seen is None else seen
        copy = seen.get(id(value))
        if copy is None:
            copy = seen[id(value)] = [self.flattened(element, seen) for element in value]
        return copy
