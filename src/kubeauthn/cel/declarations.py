"""What the names in an expression can mean: variables, functions, types with fields."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from types import MappingProxyType

from .objects import lazy_class, record_class
from .overloads import Overload
from .types import Type, parse_type, struct, with_structs
from .value_types import UInt

__all__ = ["Declarations", "Signature"]


_ZEROS: dict[str, object] = {
    "string": "", "int": 0, "uint": UInt(0), "double": 0.0, "bool": False, "bytes": b"", "list": [], "map": {},
}  # fmt: skip


class Signature:
    """An overload with its types parsed."""

    __slots__ = ("generic", "overload", "params", "result")

    def __init__(self, overload: Overload, structs: Mapping[str, Type]) -> None:
        self.overload = overload
        self.params = tuple(with_structs(parse_type(text), structs) for text in overload.params)
        self.result = with_structs(parse_type(overload.result), structs)
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

    __slots__ = ("_classes", "_signatures", "_structs", "container", "fields", "functions", "type_names", "undefined",
                 "variables")  # fmt: skip

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
        self._structs = {name: struct(name) for name in fields}
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
                found = tuple(Signature(overload, self._structs) for overload in overloads)
                self._signatures[candidate] = found
            return candidate, found
        return None

    def object_class(self, name: str, *, lazy: bool) -> type:
        """The Python class of the objects of a type. `lazy`: as Kubernetes has them, see `runtime.LazyObject`."""
        found = self._classes.get(name)
        if found is None:
            found = self._classes.setdefault(name, lazy_class(name) if lazy else self._record_class(name))
        return found

    def _record_class(self, name: str) -> type:
        fields = self.fields[name].items()
        return record_class(name, {field: None if of.nullable else _ZEROS.get(of.kind) for field, of in fields})
