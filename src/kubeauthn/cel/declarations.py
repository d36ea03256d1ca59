"""What the names in an expression can mean: variables, functions, types with fields."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from types import MappingProxyType

from .overloads import Overload
from .runtime import lazy_class
from .types import Type, parse_type

__all__ = ["Declarations", "Signature"]


class Signature:
    """An overload with its types parsed."""

    __slots__ = ("generic", "overload", "params", "result")

    def __init__(self, overload: Overload) -> None:
        self.overload = overload
        self.params = tuple(parse_type(text) for text in overload.params)
        self.result = parse_type(overload.result)
        self.generic = tuple(_parameters((*self.params, self.result)))


def _parameters(types: Iterable[Type]) -> list[Type]:
    found: list[Type] = []
    waiting = list(types)
    while waiting:
        current = waiting.pop()
        if current.kind == "parameter" and current not in found:
            found.append(current)
        waiting.extend(current.params)
    return found


class Declarations:
    """Everything the checker may resolve a name to. Not changed once made."""

    __slots__ = ("_classes", "_signatures", "container", "fields", "functions", "type_names", "undefined", "variables")

    def __init__(
        self,
        variables: Mapping[str, Type],
        functions: Mapping[str, tuple[Overload, ...]],
        type_names: Mapping[str, Type],
        fields: Mapping[str, Mapping[str, Type]],
        container: str = "",
        undefined: Mapping[str, Type] = MappingProxyType({}),
    ) -> None:
        self.variables = variables
        self.functions = functions
        self.type_names = type_names  # names that are values of type `type`
        self.undefined = undefined  # names of types that the check knows and no program can use
        self.fields = fields  # object type → its fields
        self.container = container
        self._signatures: dict[str, tuple[Signature, ...]] = {}
        self._classes: dict[str, type] = {}

    def candidates(self, name: str) -> list[str]:
        """The full names that a name may mean, the innermost container first."""
        if name.startswith("."):
            return [name[1:]]
        if not self.container:
            return [name]
        parts = self.container.split(".")
        return [".".join((*parts[:count], name)) for count in range(len(parts), 0, -1)] + [name]

    def function(self, name: str) -> tuple[str, tuple[Signature, ...]] | None:
        """A function's full name and its overloads."""
        for candidate in self.candidates(name) if self.container or name.startswith(".") else (name,):
            found = self._signatures.get(candidate)
            if found is None:
                overloads = self.functions.get(candidate)
                if overloads is None:
                    continue
                found = tuple(Signature(overload) for overload in overloads)
                self._signatures[candidate] = found
            return candidate, found
        return None

    def object_class(self, name: str) -> type:
        """The Python class of the objects of a type."""
        found = self._classes.get(name)
        if found is None:
            found = self._classes.setdefault(name, lazy_class(name))
        return found
