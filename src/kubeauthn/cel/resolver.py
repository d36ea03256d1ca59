"""Names resolved without a type check, for environments that have none."""

from __future__ import annotations

from . import well_known
from .ast import Call, Comprehension, Ident, ListLiteral, MapLiteral, Node, Select, Struct
from .declarations import Declarations

__all__ = ["resolve"]


def resolve(node: Node, declarations: Declarations) -> Node:
    """The tree with variables, types and functions found by name; the rest is left to run time."""
    return _Resolver(declarations).visit(node)


class _Resolver:
    def __init__(self, declarations: Declarations) -> None:
        self.declarations = declarations
        self.locals: list[str] = []

    def visit(self, node: Node) -> Node:
        if isinstance(node, Ident):
            return self.ident(node, node.name)
        if isinstance(node, Select):
            return self.select(node)
        if isinstance(node, Call):
            return self.call(node)
        if isinstance(node, ListLiteral):
            node.elements = [self.visit(element) for element in node.elements]
        elif isinstance(node, MapLiteral):
            for entry in node.entries:
                entry.key, entry.value = self.visit(entry.key), self.visit(entry.value)
        elif isinstance(node, Struct):
            node.name = next((c for c in self.declarations.candidates(node.name) if c in well_known.FIELDS), node.name)
            for field in node.fields:
                field.value = self.visit(field.value)
        elif isinstance(node, Comprehension):
            self.comprehension(node)
        return node

    def is_name(self, name: str) -> bool:
        return (
            name in self.declarations.variables or name in self.declarations.type_names or name in well_known.CONSTANTS
        )

    def ident(self, node: Ident, name: str) -> Node:
        if name in self.locals:
            return node
        for candidate in self.declarations.candidates(name):
            if self.is_name(candidate):
                node.type_value = candidate in self.declarations.type_names
                node.name, node.is_global = candidate, True
                return node
        node.name, node.is_global = name.removeprefix("."), True
        return node

    def select(self, node: Select) -> Node:
        parts: list[str] = []
        inner: Node = node
        while isinstance(inner, Select) and not inner.test_only:
            parts.insert(0, inner.field)
            inner = inner.operand
        if isinstance(inner, Ident) and inner.name not in self.locals and parts:
            for candidate in self.declarations.candidates(".".join((inner.name, *parts))):
                if self.is_name(candidate):
                    found = Ident(node.offset, candidate)
                    found.type_value = candidate in self.declarations.type_names
                    found.is_global = True
                    return found
        node.operand = self.visit(node.operand)
        return node

    def call(self, node: Call) -> Node:
        if node.target is not None:
            prefix = _dotted(node.target)
            found = self.declarations.function(f"{prefix}.{node.function}") if prefix else None
            if found is not None:
                node.function, node.target = found[0], None
            else:
                node.target = self.visit(node.target)
        if node.target is None:
            found = self.declarations.function(node.function)
            if found is not None:
                node.function = found[0]
        node.args = [self.visit(arg) for arg in node.args]
        return node

    def comprehension(self, node: Comprehension) -> None:
        node.iter_range = self.visit(node.iter_range)
        node.init = self.visit(node.init)
        names = [node.accu, node.iter_var, node.iter_var2]
        self.locals += names
        node.condition = self.visit(node.condition)
        node.step = self.visit(node.step)
        node.result = self.visit(node.result)
        del self.locals[-len(names) :]


def _dotted(node: Node) -> str:
    parts: list[str] = []
    while isinstance(node, Select) and not node.test_only:
        parts.insert(0, node.field)
        node = node.operand
    return ".".join((node.name, *parts)) if isinstance(node, Ident) else ""
