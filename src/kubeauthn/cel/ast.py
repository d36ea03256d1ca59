"""The tree of a parsed expression, and a way to walk it.

Macros are expanded: `has(a.b)` is a `Select` with `test_only`, `x.all(…)` a `Comprehension`. After the check every
node has a `type`, every call its `overloads`, and a qualified name that is one variable has become one `Ident`.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .overloads import Overload
    from .types import Type

__all__ = [
    "Call",
    "Comprehension",
    "Entry",
    "Field",
    "Ident",
    "ListLiteral",
    "Literal",
    "MapLiteral",
    "Node",
    "Select",
    "Struct",
    "repeated_nodes",
    "walk",
]


class Node:
    """A part of an expression. `offset` counts code points from the start of the text, -1 where there is no place."""

    __slots__ = ("offset", "type")

    def __init__(self, offset: int) -> None:
        self.offset = offset
        self.type: Type | None = None

    def children(self) -> tuple[Node, ...]:
        """The parts this node is made of, in the order in which they are written."""
        return ()


class Literal(Node):
    """A constant: None, bool, int, UInt, float, str or bytes."""

    __slots__ = ("value",)

    def __init__(self, offset: int, value: object) -> None:
        super().__init__(offset)
        self.value = value


class Ident(Node):
    """A name. After the check `name` is fully qualified; `is_global` tells it from an iteration variable so named."""

    __slots__ = ("is_global", "name", "type_value", "undefined")

    def __init__(self, offset: int, name: str) -> None:
        super().__init__(offset)
        self.name = name
        self.is_global = False
        self.type_value = False  # the name of a type, such as `int`
        self.undefined = False  # one that the check knows and no program can use


class Select(Node):
    """`operand.field`, or `has(operand.field)`."""

    __slots__ = ("field", "operand", "test_only")

    def __init__(self, offset: int, operand: Node, field: str, test_only: bool = False) -> None:
        super().__init__(offset)
        self.operand = operand
        self.field = field
        self.test_only = test_only

    def children(self) -> tuple[Node, ...]:
        return (self.operand,)


class Call(Node):
    """A function, method or operator; operators have cel-go's names: `_+_`, `_[_]`, `_?._`, `@in`."""

    __slots__ = ("args", "function", "overloads", "target")

    def __init__(self, offset: int, function: str, args: list[Node], target: Node | None = None) -> None:
        super().__init__(offset)
        self.function = function
        self.target = target
        self.args = args
        self.overloads: tuple[Overload, ...] | None = None  # what the check found to fit; None: not checked

    def children(self) -> tuple[Node, ...]:
        return (*(() if self.target is None else (self.target,)), *self.args)


class ListLiteral(Node):
    """`[a, ?b]`; `optional` holds the indexes of the elements with a question mark."""

    __slots__ = ("elements", "optional")

    def __init__(self, offset: int, elements: list[Node], optional: frozenset[int] = frozenset()) -> None:
        super().__init__(offset)
        self.elements = elements
        self.optional = optional

    def children(self) -> tuple[Node, ...]:
        return tuple(self.elements)


class Entry:
    """`key: value` or `?key: value` of a map."""

    __slots__ = ("key", "offset", "optional", "value")

    def __init__(self, offset: int, key: Node, value: Node, optional: bool) -> None:
        self.offset = offset
        self.key = key
        self.value = value
        self.optional = optional


class MapLiteral(Node):
    """`{k: v}`."""

    __slots__ = ("entries",)

    def __init__(self, offset: int, entries: list[Entry]) -> None:
        super().__init__(offset)
        self.entries = entries

    def children(self) -> tuple[Node, ...]:
        return tuple(part for entry in self.entries for part in (entry.key, entry.value))


class Field:
    """`name: value` or `?name: value` of an object."""

    __slots__ = ("name", "offset", "optional", "value")

    def __init__(self, offset: int, name: str, value: Node, optional: bool) -> None:
        self.offset = offset
        self.name = name
        self.value = value
        self.optional = optional


class Struct(Node):
    """`Type{field: value}`."""

    __slots__ = ("fields", "name")

    def __init__(self, offset: int, name: str, fields: list[Field]) -> None:
        super().__init__(offset)
        self.name = name
        self.fields = fields

    def children(self) -> tuple[Node, ...]:
        return tuple(field.value for field in self.fields)


class Comprehension(Node):
    """A loop, as every macro that iterates becomes one.

    `accu` starts as `init`; while `condition` holds, each element runs `step`; the value is `result`.
    """

    __slots__ = ("accu", "condition", "init", "iter_range", "iter_var", "iter_var2", "result", "step")

    def __init__(
        self,
        offset: int,
        iter_range: Node,
        iter_var: str,
        iter_var2: str,
        accu: str,
        init: Node,
        condition: Node,
        step: Node,
        result: Node,
    ) -> None:
        super().__init__(offset)
        self.iter_range = iter_range
        self.iter_var = iter_var
        self.iter_var2 = iter_var2
        self.accu = accu
        self.init = init
        self.condition = condition
        self.step = step
        self.result = result

    def children(self) -> tuple[Node, ...]:
        return (self.iter_range, self.init, self.condition, self.step, self.result)


def walk(node: Node) -> Iterator[Node]:
    """The node and everything below it, parents first, in the order in which they are written."""
    waiting = [node]
    while waiting:
        current = waiting.pop()
        yield current
        waiting.extend(reversed(current.children()))


def repeated_nodes(node: Node) -> int:
    """How many nodes a walk meets that it has met before. Takes one look at each."""
    sizes: dict[int, int] = {}
    waiting = [node]
    while waiting:
        current = waiting[-1]
        children = current.children()
        unknown = [child for child in children if id(child) not in sizes]
        if unknown:
            waiting.extend(unknown)
        else:
            sizes[id(current)] = 1 + sum(sizes[id(child)] for child in children)
            waiting.pop()
    return sizes[id(node)] - len(sizes)
